-- one row for each model reply: role, model, prompt, tokens, time
SELECT
  session AS session, -- the session
  turn AS turn, -- question in the session
  round AS round, -- round of the turn
  attempt AS attempt, -- answer in the round, from 0
  time AS time, -- when the reply was stored, UTC
  time::DATE AS day, -- that day, UTC
  role AS role, -- `planner`, `executor`, `verifier`
  kind AS kind, -- `first`, `reask`, `repair`
  model AS model, -- model name, or `offline`, `scripted`
  prompt_sha256 AS prompt_sha256, -- hash of the prompt file
  input_tokens AS input_tokens, -- 0 where not reported
  output_tokens AS output_tokens, -- 0 where not reported
  latency_ms AS latency_ms, -- milliseconds of the call
  finish_reason AS finish_reason -- as the endpoint said
FROM usage
