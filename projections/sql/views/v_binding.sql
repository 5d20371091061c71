-- one row for each binding that was checked: what the answer gave, what the gate found
SELECT
  checked.session AS session, -- the session
  checked.turn AS turn, -- question in the session
  checked.round AS round, -- round of the turn
  checked.attempt AS attempt, -- answer in the round, from 0
  checked.time AS time, -- when it was checked, UTC
  checked.claim_id AS claim_id, -- the claim, or `action-<index>`
  checked.index AS index, -- place among the claim's bindings, from 0
  bindings.source_invocation_id AS given_invocation_id, -- the call the answer pointed to
  bindings.raw_path AS given_raw_path, -- the record the answer pointed to
  bindings.evidence_excerpt AS evidence_excerpt, -- the text the answer quoted
  checked.source_invocation_id AS source_invocation_id, -- the call, as resolved
  checked.raw_path AS raw_path, -- the record, as resolved
  checked.tool_name AS tool_name, -- the tool, as resolved
  checked.status AS status, -- `pass`, `fail`, `not_run`
  checked.severity AS severity, -- `none`, `low_confid`, `reject`
  checked.tier AS tier, -- how the excerpt matched, null if it did not
  checked.failed_rules AS failed_rules, -- rule ids
  checked.warnings AS warnings, -- rule ids
  checked.text AS text, -- the source's own text
  checked.nearest_text AS nearest_text, -- closest text of an excerpt that failed
  checked.nearest_difference AS nearest_difference -- `digit`, `negation`, `entity`, `word`
FROM checked_bindings AS checked
LEFT JOIN bindings USING (session, turn, round, attempt, claim_id, index)
