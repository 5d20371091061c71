-- one row for each judgement of the Verifier
-- from: facts-verified
SELECT
  seq, session, n, turn, round, attempt, time,
  e.effective_verdict AS effective_verdict, -- worst of derived, model and the caps
  e.derived_verdict AS derived_verdict, -- from the facts' labels
  e.model_verdict AS model_verdict, -- the model's own, null if it gave none
  e.groundedness_score AS groundedness_score, -- 0 to 1
  e.model_score AS model_score, -- the model's own number, never used
  e.critical_fact_count AS critical_fact_count, -- counted by the runtime
  coalesce(len(e.facts_checked), 0)::INTEGER AS facts, -- facts judged
  coalesce([c.source FOR c IN e.caps], []) AS cap_sources, -- `gate`, `repair`, `parse`, `model`, `found`, `borrowed`
  coalesce(e.caps, []) AS caps, -- each cap with source, cap, reason
  e.executor_output_parse_status AS executor_output_parse_status, -- parse status of the answer judged
  coalesce(e.verifier_parse_status, 'valid') AS verifier_parse_status, -- `malformed` after two bad replies
  e.gatekeeper_result.severity AS gate_severity, -- severity the gate gave that answer
  e.rationale AS rationale, -- the judgement in words
  reply_event AS reply_event -- event id of the reply it came from
FROM (
  SELECT * EXCLUDE (d), d.evaluation AS e, d.reply_event AS reply_event
  FROM (
    SELECT *, from_json(doc, '{"data":{"reply_event":"VARCHAR","evaluation":{"effective_verdict":"VARCHAR","derived_verdict":"VARCHAR","model_verdict":"VARCHAR","groundedness_score":"DOUBLE","model_score":"DOUBLE","critical_fact_count":"INTEGER","facts_checked":["JSON"],"caps":[{"source":"VARCHAR","cap":"VARCHAR","reason":"VARCHAR"}],"executor_output_parse_status":"VARCHAR","verifier_parse_status":"VARCHAR","gatekeeper_result":{"severity":"VARCHAR"},"rationale":"VARCHAR"}}}').data AS d
    FROM batch WHERE type = 'facts-verified'
  )
)
