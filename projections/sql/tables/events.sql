-- every event as it stands in the log; the newest row is the checkpoint
-- from: *
SELECT
  seq, session, n, turn, round, attempt, time,
  stored_type AS type, -- last token of the subject, `question-asked`
  schema AS schema, -- schema number of the payload as stored
  id AS id, -- deterministic event id (uuid5)
  actor AS actor, -- who decided it: a role, or a foreign producer
  cause AS cause, -- id of the event that led to it
  correlation AS correlation, -- request the event belongs to, `<session>/<turn>` unless given
  traceparent AS traceparent, -- W3C trace context, may be empty
  hash AS hash, -- SHA-256 of the body as stored
  prevhash AS prevhash, -- hash of the event before it in its session; 64 zeros for the first
  size_bytes AS size_bytes, -- bytes of the body
  body AS body, -- the stored CloudEvents JSON, byte for byte
  kept AS payload -- the payload, of that schema, where the body does not hold it: kept as a blob, or sealed; else null
FROM batch WHERE part = 0
