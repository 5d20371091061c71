-- one row for each session that was made from a moment of another
-- from: session-forked
SELECT
  seq, session, n, turn, round, attempt, time,
  doc->>'$.data.origin_session' AS origin_session, -- where it came from
  (doc->>'$.data.origin_n')::INTEGER AS origin_n, -- the last event it shares
  doc->>'$.data.origin_hash' AS origin_hash, -- that event's hash
  doc->>'$.data.who' AS who, -- who forked
  doc->>'$.data.why' AS why -- in words
FROM batch WHERE type = 'session-forked'
