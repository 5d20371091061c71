-- What does a verdict cost, in tokens, model calls and seconds?
SELECT
  coalesce(effective_verdict, 'no judgement') AS verdict,
  count(*) AS turns,
  round(avg(input_tokens + output_tokens), 1) AS tokens,
  round(avg(model_calls), 2) AS model_calls,
  round(median(seconds), 3) AS median_seconds
FROM v_turn
WHERE ended_at IS NOT NULL
GROUP BY ALL
ORDER BY verdict
