-- one row for each evidence tool call
-- from: tool-invoked
SELECT
  seq, session, n, turn, round, attempt, time,
  d.invocation_id AS invocation_id, -- unique in its session
  d.tool_name AS tool_name, -- the tool
  d.arguments AS arguments, -- as called
  d.status AS status, -- `success`, `no_data`, `error`
  d.evidence_kind AS evidence_kind, -- `incident`, `knowledge`, `helper`
  d.topic AS topic, -- the tool's own grouping key, null if unknown
  d.error AS error, -- the tool's error text
  d.latency_ms AS latency_ms, -- milliseconds of the call
  d.retrieval_details.matched AS matched, -- records that matched
  d.retrieval_details.returned AS returned, -- records shown to the agent
  d.retrieval_details.truncated AS truncated, -- more matched than was shown
  len(d.retrieval_details.evidence_refs)::INTEGER AS refs, -- quotable refs; null in old data
  d.output_sha256 AS output_sha256, -- hash of the full output
  d.output_size_bytes AS output_size_bytes, -- bytes of the full output
  d.redactions AS redactions -- kind -> how many were replaced before recording
FROM (
  SELECT *, from_json(doc, '{"data":{"invocation_id":"VARCHAR","tool_name":"VARCHAR","arguments":"JSON","status":"VARCHAR","evidence_kind":"VARCHAR","topic":"VARCHAR","error":"VARCHAR","latency_ms":"DOUBLE","retrieval_details":{"matched":"BIGINT","returned":"BIGINT","truncated":"BOOLEAN","evidence_refs":["JSON"]},"output_sha256":"VARCHAR","output_size_bytes":"BIGINT","redactions":"JSON"}}').data AS d
  FROM batch WHERE type = 'tool-invoked'
)
