-- one row for each run of the gate
-- from: gate-judged
SELECT
  seq, session, n, turn, round, attempt, time,
  doc->>'$.data.result.status' AS status, -- `pass` or `fail`
  doc->>'$.data.result.severity' AS severity, -- `none`, `low_confid`, `reject`
  coalesce(json_array_length(doc, '$.data.result.checked_bindings'), 0)::INTEGER AS bindings, -- bindings checked
  coalesce(json_array_length(doc, '$.data.result.failed_rules'), 0)::INTEGER AS failed_rules, -- different rules that failed
  coalesce(json_array_length(doc, '$.data.result.warnings'), 0)::INTEGER AS warnings, -- warnings given
  coalesce(json_array_length(doc, '$.data.result.errors'), 0)::INTEGER AS errors, -- rules that could not run
  coalesce(json_array_length(doc, '$.data.result.confirmed_claims'), 0)::INTEGER AS confirmed_claims -- claims that stay confirmed
FROM batch WHERE type = 'gate-judged'
