-- Which Executor model invents most? Facts found fabricated, by the model whose answer was judged.
WITH writers AS (
  SELECT session, turn, round, arg_max(model, n) AS model
  FROM usage
  WHERE role = 'executor'
  GROUP BY session, turn, round
),
judged AS (
  SELECT session, turn, round, count(*) FILTER (fabricated) AS invented
  FROM v_fact
  GROUP BY session, turn, round
)
SELECT
  model,
  count(*) AS judgements,
  sum(invented)::BIGINT AS invented,
  round(count(*) FILTER (invented > 0) / count(*), 4) AS share_of_judgements
FROM judged
JOIN writers USING (session, turn, round)
GROUP BY model
ORDER BY invented DESC, model
