-- one row for each scoring by rule
-- from: rules-scored
SELECT
  seq, session, n, turn, round, attempt, time,
  (doc->>'$.data.evaluation.score')::DOUBLE AS score, -- weighted, 0 to 1
  (doc->>'$.data.evaluation.coverage')::DOUBLE AS coverage, -- confirmed claims with a binding that passes
  (doc->>'$.data.evaluation.precision')::DOUBLE AS precision, -- bindings that carry id and raw_path
  (doc->>'$.data.evaluation.diversity')::DOUBLE AS diversity, -- evidence tools with a hit, of those planned
  (doc->>'$.data.evaluation.yield')::DOUBLE AS yield, -- evidence calls with a hit
  doc->>'$.data.evaluation.reason' AS reason -- why the score is 0
FROM batch WHERE type = 'rules-scored'
