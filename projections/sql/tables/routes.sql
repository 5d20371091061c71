-- one row for each round that ended
-- from: round-routed
SELECT
  seq, session, n, turn, round, attempt, time,
  data->>'$.effective_verdict' AS effective_verdict, -- null where there is no judgement
  (data->>'$.score')::DOUBLE AS groundedness_score, -- 0 to 1, null where there is no judgement
  data->>'$.route' AS route, -- `answer`, `disclaimer`, `extra_round`, `degraded`
  data->>'$.reason' AS reason -- why that way
FROM batch WHERE type = 'round-routed'
