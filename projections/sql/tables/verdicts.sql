-- one row for each judgement of the Verifier
-- from: facts-verified
SELECT
  seq, session, n, turn, round, attempt, time,
  data->>'$.evaluation.effective_verdict' AS effective_verdict, -- worst of derived, model and the caps
  data->>'$.evaluation.derived_verdict' AS derived_verdict, -- from the facts' labels
  data->>'$.evaluation.model_verdict' AS model_verdict, -- the model's own, null if it gave none
  (data->>'$.evaluation.groundedness_score')::DOUBLE AS groundedness_score, -- 0 to 1
  (data->>'$.evaluation.model_score')::DOUBLE AS model_score, -- the model's own number, never used
  (data->>'$.evaluation.critical_fact_count')::INTEGER AS critical_fact_count, -- counted by the runtime
  coalesce(json_array_length(data, '$.evaluation.facts_checked'), 0)::INTEGER AS facts, -- facts judged
  coalesce(data->>'$.evaluation.caps[*].source', [])::VARCHAR[] AS cap_sources, -- `gate`, `repair`, `parse`, `model`, `found`, `borrowed`
  coalesce(data->'$.evaluation.caps', '[]'::JSON) AS caps, -- each cap with source, cap, reason
  data->>'$.evaluation.executor_output_parse_status' AS executor_output_parse_status, -- parse status of the answer judged
  coalesce(data->>'$.evaluation.verifier_parse_status', 'valid') AS verifier_parse_status, -- `malformed` after two bad replies
  data->>'$.evaluation.gatekeeper_result.severity' AS gate_severity, -- severity the gate gave that answer
  data->>'$.evaluation.rationale' AS rationale, -- the judgement in words
  data->>'$.reply_event' AS reply_event -- event id of the reply it came from
FROM batch WHERE type = 'facts-verified'
