-- Does the extra round help? Verdict of the first round against the one the user got.
SELECT
  first.effective_verdict AS first_verdict,
  coalesce(v_verdict.effective_verdict, 'no judgement') AS final_verdict,
  count(*) AS turns,
  round(avg(v_verdict.groundedness_score - first.groundedness_score), 4) AS score_gain
FROM v_round AS first
LEFT JOIN v_verdict ON v_verdict.session = first.session AND v_verdict.turn = first.turn
WHERE first.round = 1 AND first.route = 'extra_round'
GROUP BY ALL
ORDER BY turns DESC, first_verdict, final_verdict
