-- one row for each claim of each answer
-- from: answer-drafted
SELECT
  seq, session, n, turn, round, attempt, time,
  claim.claim_id AS claim_id, -- as the Executor numbered it
  place AS place, -- place in the contract, from 0
  coalesce(claim.claim_type, 'other') AS claim_type, -- `observation`, `root_cause`, ...
  claim.claim_text AS claim_text, -- the statement
  claim.support_level AS support_level, -- `direct`, `indirect`, `none`, as claimed
  coalesce(json_array_length(claim.evidence_bindings), 0)::INTEGER AS bindings -- bindings it gave
FROM (
  SELECT * EXCLUDE (found), unnest(found) AS claim, generate_subscripts(found, 1)::INTEGER - 1 AS place
  FROM (
    SELECT *, from_json(doc->'$.data.structured.claims', '[{"claim_id":"VARCHAR","claim_type":"VARCHAR","claim_text":"VARCHAR","support_level":"VARCHAR","evidence_bindings":"JSON"}]') AS found
    FROM batch WHERE type = 'answer-drafted'
  )
)
