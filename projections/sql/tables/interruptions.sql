-- one row for each turn that was ended without a judgement
-- from: turn-failed, turn-cancelled
SELECT
  seq, session, n, turn, round, attempt, time,
  CASE type WHEN 'turn-cancelled' THEN 'cancelled' ELSE doc->>'$.data.reason' END AS reason, -- `cancelled`, `deadline`, `agent_failed`, `parked`
  doc->>'$.data.who' AS who, -- who cancelled
  coalesce(doc->>'$.data.detail', doc->>'$.data.why') AS detail -- in words
FROM batch WHERE type IN ('turn-failed', 'turn-cancelled')
