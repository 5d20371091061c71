-- one row for each rule that failed in a run of the gate
-- from: gate-judged
SELECT
  seq, session, n, turn, round, attempt, time,
  rule AS rule, -- rule id
  severity AS severity, -- severity of that run of the gate
  coalesce(list_distinct(list_sort([f.claim_id FOR f IN failures IF f.rule = rule AND f.claim_id IS NOT NULL])), []) AS claims, -- claims it fired on
  [f.message FOR f IN failures IF f.rule = rule][1] AS message -- the first sentence about it
FROM (
  SELECT *,
    unnest(from_json(doc->'$.data.result.failed_rules', '["VARCHAR"]')) AS rule,
    doc->>'$.data.result.severity' AS severity,
    from_json(doc->'$.data.result.failures', '[{"rule":"VARCHAR","claim_id":"VARCHAR","message":"VARCHAR"}]') AS failures
  FROM batch WHERE type = 'gate-judged'
)
