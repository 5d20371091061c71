-- one row for each session whose text was erased
-- from: text-erased
SELECT
  seq, session, n, turn, round, attempt, time,
  doc->>'$.data.who' AS who, -- who erased
  doc->>'$.data.why' AS why -- the reason given
FROM batch WHERE type = 'text-erased'
