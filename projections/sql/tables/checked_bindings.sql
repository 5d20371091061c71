-- one row for each binding as the gate found it
-- from: gate-judged
SELECT
  seq, session, n, turn, round, attempt, time,
  checked.claim_id AS claim_id, -- the claim, or `action-<index>`
  checked.index AS index, -- place among the claim's bindings, from 0
  checked.status AS status, -- `pass`, `fail`, `not_run`
  checked.severity AS severity, -- `none`, `low_confid`, `reject`
  coalesce(checked.failed_rules, []) AS failed_rules, -- rule ids
  coalesce(checked.warnings, []) AS warnings, -- rule ids
  checked.source_invocation_id AS source_invocation_id, -- the call, as resolved
  checked.raw_path AS raw_path, -- the record, as resolved
  checked.tool_name AS tool_name, -- the tool, as resolved
  checked.tier AS tier, -- how the excerpt matched: `exact`, `normalized`, ...; null if it did not
  checked.start AS start, -- offset of the hit in characters
  checked."end" AS "end", -- end of the hit in characters
  checked.text AS text, -- the source's own text
  checked.ref_sha256 AS ref_sha256, -- hash of the record
  checked.nearest_miss.text AS nearest_text, -- closest text of an excerpt that failed
  checked.nearest_miss.difference AS nearest_difference -- `digit`, `negation`, `entity`, `word`
FROM (
  SELECT *, unnest(from_json(doc->'$.data.result.checked_bindings', '[{"claim_id":"VARCHAR","index":"INTEGER","status":"VARCHAR","severity":"VARCHAR","failed_rules":["VARCHAR"],"warnings":["VARCHAR"],"source_invocation_id":"VARCHAR","raw_path":"VARCHAR","tool_name":"VARCHAR","tier":"VARCHAR","start":"BIGINT","end":"BIGINT","text":"VARCHAR","ref_sha256":"VARCHAR","nearest_miss":{"text":"VARCHAR","difference":"VARCHAR"}}]')) AS checked
  FROM batch WHERE type = 'gate-judged'
)
