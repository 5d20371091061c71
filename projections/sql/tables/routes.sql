-- one row for each round that ended
-- from: round-routed
SELECT
  seq, session, n, turn, round, attempt, time,
  doc->>'$.data.effective_verdict' AS effective_verdict, -- null where there is no judgement
  (doc->>'$.data.score')::DOUBLE AS groundedness_score, -- 0 to 1, null where there is no judgement
  doc->>'$.data.route' AS route, -- `answer`, `disclaimer`, `extra_round`, `degraded`
  doc->>'$.data.reason' AS reason -- why that way
FROM batch WHERE type = 'round-routed'
