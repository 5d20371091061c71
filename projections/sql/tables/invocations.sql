-- one row for each evidence tool call
-- from: tool-invoked
SELECT
  seq, session, n, turn, round, attempt, time,
  data->>'$.invocation_id' AS invocation_id, -- unique in its session
  data->>'$.tool_name' AS tool_name, -- the tool
  data->'$.arguments' AS arguments, -- as called
  data->>'$.status' AS status, -- `success`, `no_data`, `error`
  data->>'$.evidence_kind' AS evidence_kind, -- `incident`, `knowledge`, `helper`
  data->>'$.topic' AS topic, -- the tool's own grouping key, null if unknown
  data->>'$.error' AS error, -- the tool's error text
  (data->>'$.latency_ms')::DOUBLE AS latency_ms, -- milliseconds of the call
  (data->>'$.retrieval_details.matched')::BIGINT AS matched, -- records that matched
  (data->>'$.retrieval_details.returned')::BIGINT AS returned, -- records shown to the agent
  (data->>'$.retrieval_details.truncated')::BOOLEAN AS truncated, -- more matched than was shown
  json_array_length(data, '$.retrieval_details.evidence_refs')::INTEGER AS refs, -- quotable refs; null in old data
  data->>'$.output_sha256' AS output_sha256, -- hash of the full output
  (data->>'$.output_size_bytes')::BIGINT AS output_size_bytes, -- bytes of the full output
  data->'$.redactions' AS redactions -- kind -> how many were replaced before recording
FROM batch WHERE type = 'tool-invoked'
