-- Which Executor prompt and model pass most often? (the prompt of a turn is its last Executor reply's)
WITH prompts AS (
  SELECT session, turn, arg_max({'prompt': prompt_sha256, 'model': model}, n) AS used
  FROM usage
  WHERE role = 'executor'
  GROUP BY session, turn
)
SELECT
  used.prompt AS prompt_sha256,
  used.model AS model,
  count(*) AS judged,
  count(*) FILTER (effective_verdict = 'PASS') AS passed,
  round(passed / judged, 4) AS pass_rate
FROM v_verdict
JOIN prompts USING (session, turn)
GROUP BY ALL
ORDER BY pass_rate DESC, judged DESC, prompt_sha256, model
