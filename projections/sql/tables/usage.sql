-- one row for each model reply: what it cost and which prompt made it
-- from: agent-replied
SELECT
  seq, session, n, turn, round, attempt, time,
  id AS event_id, -- id of the event, named by `reply_event` elsewhere
  data->>'$.role' AS role, -- `planner`, `executor`, `verifier`
  (data->>'$.ordinal')::INTEGER AS ordinal, -- counts the role's replies in the round, from 0
  data->>'$.kind' AS kind, -- `first`, `reask`, `repair`
  data->>'$.model' AS model, -- model name, or `offline`, `scripted`
  data->>'$.prompt_sha256' AS prompt_sha256, -- hash of the prompt file
  data->>'$.finish_reason' AS finish_reason, -- as the endpoint said
  coalesce((data->>'$.usage.input_tokens')::BIGINT, 0) AS input_tokens, -- 0 where not reported
  coalesce((data->>'$.usage.output_tokens')::BIGINT, 0) AS output_tokens, -- 0 where not reported
  coalesce((data->>'$.usage.requests')::INTEGER, 0) AS requests, -- HTTP requests it took
  (data->>'$.latency_ms')::DOUBLE AS latency_ms, -- milliseconds of the call
  coalesce(json_array_length(data, '$.tool_calls'), 0)::INTEGER AS tool_calls, -- calls the reply asked for
  length(data->>'$.text')::BIGINT AS text_chars -- characters of the raw text
FROM batch WHERE type = 'agent-replied'
