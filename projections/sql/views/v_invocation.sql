-- one row for each evidence call, with how much of it was quoted
SELECT
  invocations.session AS session, -- the session
  invocations.turn AS turn, -- question in the session
  invocations.round AS round, -- round of the turn
  invocations.time AS time, -- when it ended, UTC
  invocations.invocation_id AS invocation_id, -- unique in its session
  invocations.tool_name AS tool_name, -- the tool
  invocations.evidence_kind AS evidence_kind, -- `incident`, `knowledge`, `helper`
  invocations.status AS status, -- `success`, `no_data`, `error`
  invocations.error AS error, -- the tool's error text
  invocations.latency_ms AS latency_ms, -- milliseconds of the call
  invocations.matched AS matched, -- records that matched
  invocations.returned AS returned, -- records shown to the agent
  invocations.truncated AS truncated, -- more matched than was shown
  coalesce(quoted.bindings, 0) AS bindings_passed -- bindings to it that the gate passed
FROM invocations
LEFT JOIN (
  SELECT session, source_invocation_id, count(*) AS bindings
  FROM checked_bindings
  WHERE status = 'pass'
  GROUP BY session, source_invocation_id
) AS quoted ON quoted.session = invocations.session AND quoted.source_invocation_id = invocations.invocation_id
