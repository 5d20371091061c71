-- one row for each value a channel of self_evaluation ever had
-- from: rules-scored, facts-verified, channel-written
SELECT
  seq, session, n, turn, round, attempt, time,
  CASE type
    WHEN 'rules-scored' THEN 'rule_evaluation'
    WHEN 'facts-verified' THEN 'verifier_evaluation'
    ELSE doc->>'$.data.channel'
  END AS channel, -- name of the channel
  CASE type WHEN 'channel-written' THEN coalesce(doc->'$.data.value', 'null'::JSON) ELSE doc->'$.data.evaluation' END AS value, -- the channel's value from this event on
  actor AS actor, -- who wrote it: our role, or `intake` for a third party
  CASE type WHEN 'channel-written' THEN nullif(doc->>'$.data.who', '') END AS who -- whom a third party names as its writer
FROM batch
WHERE type IN ('rules-scored', 'facts-verified')
  OR (type = 'channel-written' AND doc->>'$.data.channel' NOT IN ('rule_evaluation', 'verifier_evaluation'))
