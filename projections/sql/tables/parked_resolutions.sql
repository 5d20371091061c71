-- one row for each parked entry that somebody closed
-- from: parked-resolved
SELECT
  seq, session, n, turn, round, attempt, time,
  doc->>'$.data.parked_event' AS parked_event, -- event_id of the entry in `parked`
  doc->>'$.data.action' AS action, -- `retry` or `dismiss`
  doc->>'$.data.who' AS who, -- who closed it
  doc->>'$.data.why' AS why -- in words
FROM batch WHERE type = 'parked-resolved'
