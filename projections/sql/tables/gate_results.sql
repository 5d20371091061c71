-- one row for each run of the gate
-- from: gate-judged
SELECT
  seq, session, n, turn, round, attempt, time,
  d.status AS status, -- `pass` or `fail`
  d.severity AS severity, -- `none`, `low_confid`, `reject`
  coalesce(len(d.checked_bindings), 0)::INTEGER AS bindings, -- bindings checked
  coalesce(len(d.failed_rules), 0)::INTEGER AS failed_rules, -- different rules that failed
  coalesce(len(d.warnings), 0)::INTEGER AS warnings, -- warnings given
  coalesce(len(d.errors), 0)::INTEGER AS errors, -- rules that could not run
  coalesce(len(d.confirmed_claims), 0)::INTEGER AS confirmed_claims -- claims that stay confirmed
FROM (
  SELECT *, from_json(doc, '{"data":{"result":{"status":"VARCHAR","severity":"VARCHAR","checked_bindings":["JSON"],"failed_rules":["VARCHAR"],"warnings":["JSON"],"errors":["JSON"],"confirmed_claims":["VARCHAR"]}}}').data.result AS d
  FROM batch WHERE type = 'gate-judged'
)
