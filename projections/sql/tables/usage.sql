-- one row for each model reply: what it cost and which prompt made it
-- from: agent-replied
SELECT
  seq, session, n, turn, round, attempt, time,
  id AS event_id, -- id of the event, named by `reply_event` elsewhere
  d.role AS role, -- `planner`, `executor`, `verifier`
  d.ordinal AS ordinal, -- counts the role's replies in the round, from 0
  d.kind AS kind, -- `first`, `reask`, `repair`
  d.model AS model, -- model name, or `offline`, `scripted`
  d.prompt_sha256 AS prompt_sha256, -- hash of the prompt file
  d.finish_reason AS finish_reason, -- as the endpoint said
  coalesce(d.usage.input_tokens, 0) AS input_tokens, -- 0 where not reported
  coalesce(d.usage.output_tokens, 0) AS output_tokens, -- 0 where not reported
  coalesce(d.usage.requests, 0) AS requests, -- HTTP requests it took
  d.latency_ms AS latency_ms, -- milliseconds of the call
  coalesce(len(d.tool_calls), 0)::INTEGER AS tool_calls, -- calls the reply asked for
  length(d.text) AS text_chars -- characters of the raw text
FROM (
  SELECT *, from_json(doc, '{"data":{"role":"VARCHAR","ordinal":"INTEGER","kind":"VARCHAR","model":"VARCHAR","prompt_sha256":"VARCHAR","finish_reason":"VARCHAR","usage":{"input_tokens":"BIGINT","output_tokens":"BIGINT","requests":"INTEGER"},"latency_ms":"DOUBLE","tool_calls":["JSON"],"text":"VARCHAR"}}').data AS d
  FROM batch WHERE type = 'agent-replied'
)
