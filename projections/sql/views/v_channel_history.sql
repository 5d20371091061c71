-- one row for each value a channel ever had: who wrote it, from which event, until when it held
SELECT
  channels.session AS session, -- the session
  channels.channel AS channel, -- name of the channel
  channels.n AS n, -- event that wrote it
  channels.seq AS seq, -- that event's position in the log
  channels.time AS time, -- when it was written, UTC
  channels.actor AS actor, -- who wrote it: our role, or `intake` for a third party
  channels.who AS who, -- whom a third party names as its writer; null for our own channels
  events.id AS event_id, -- id of that event
  channels.value AS value, -- the value
  lead(channels.time) OVER later AS replaced_at, -- when a later value took its place, UTC; null for the latest
  lead(channels.n) OVER later IS NULL AS latest -- whether it is the value that holds now
FROM channels
JOIN events ON events.seq = channels.seq
WINDOW later AS (PARTITION BY channels.session, channels.channel ORDER BY channels.n)
