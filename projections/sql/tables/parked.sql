-- one row for each event a handler gave up on
-- from: handler-parked
SELECT
  seq, session, n, turn, round, attempt, time,
  id AS event_id, -- id of this entry, named by a resolution
  doc->>'$.data.consumer' AS consumer, -- the handler
  doc->>'$.data.event_id' AS parked_event_id, -- the event it could not handle
  (doc->>'$.data.event_seq')::BIGINT AS parked_event_seq, -- its position
  doc->>'$.data.error' AS error, -- what happened
  (doc->>'$.data.deliveries')::INTEGER AS deliveries -- how often it was tried
FROM batch WHERE type = 'handler-parked'
