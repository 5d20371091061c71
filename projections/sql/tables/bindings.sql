-- one row for each binding as the answer gave it; actions' bindings under `action-<index>`
-- from: answer-drafted
SELECT
  seq, session, n, turn, round, attempt, time,
  claim_id AS claim_id, -- the claim, or `action-<index>`
  index AS index, -- place among the claim's bindings, from 0
  binding.source_invocation_id AS source_invocation_id, -- the call it points to
  binding.raw_path AS raw_path, -- the record it points to
  binding.tool_name AS tool_name, -- the tool it names
  binding.evidence_excerpt AS evidence_excerpt, -- the text it quotes
  binding.source_type AS source_type, -- first contract version only
  binding.source_id AS source_id, -- first contract version only
  binding.source_invocation_ids AS source_invocation_ids -- first contract version only
FROM (
  SELECT * EXCLUDE (bindings), unnest(bindings) AS binding, generate_subscripts(bindings, 1)::INTEGER - 1 AS index
  FROM (
    SELECT * EXCLUDE (owner),
      owner.claim_id AS claim_id,
      from_json(owner.evidence_bindings, '[{"tool_name":"VARCHAR","evidence_excerpt":"VARCHAR","source_invocation_id":"VARCHAR","raw_path":"VARCHAR","source_type":"VARCHAR","source_id":"VARCHAR","source_invocation_ids":["VARCHAR"]}]') AS bindings
    FROM (
      SELECT * EXCLUDE (claims, actions),
        unnest(list_concat(
          claims,
          list_transform(actions, lambda a, i: {'claim_id': 'action-' || (i - 1), 'evidence_bindings': a.evidence_bindings})
        )) AS owner
      FROM (
        SELECT *,
          from_json(doc->'$.data.structured.claims', '[{"claim_id":"VARCHAR","evidence_bindings":"JSON"}]') AS claims,
          from_json(doc->'$.data.structured.recommended_actions', '[{"evidence_bindings":"JSON"}]') AS actions
        FROM batch WHERE type = 'answer-drafted'
      )
    )
  )
)
