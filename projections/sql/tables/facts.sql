-- one row for each fact that a judgement checked
-- from: facts-verified
SELECT
  seq, session, n, turn, round, attempt, time,
  place AS place, -- place in the judgement, from 0
  f.fact AS fact, -- the statement
  f.is_critical AS is_critical, -- counts for the verdict
  f.verification AS verification, -- `direct_evidence`, `indirect_support`, `no_evidence`, `contradicted`
  f.detail AS detail, -- why
  f.claim_id AS claim_id, -- the claim it is about
  f.derivability AS derivability, -- `direct_observation`, `derived`, `not_derivable`
  coalesce(f.fabricated, false) AS fabricated, -- an invented identifier or text
  note.added_by AS added_by, -- `runtime` where the model did not give it
  coalesce([r.trace_ref FOR r IN f.evidence_refs], []) AS trace_refs, -- items of the trace summary it rests on
  coalesce(note.recorded, []) AS recorded -- what the runtime changed in it
FROM (
  SELECT * EXCLUDE (found, notes), unnest(found) AS f, generate_subscripts(found, 1)::INTEGER - 1 AS place,
    notes[generate_subscripts(found, 1)] AS note
  FROM (
    SELECT *, from_json(doc->'$.data.evaluation.facts_checked', '[{"fact":"VARCHAR","is_critical":"BOOLEAN","verification":"VARCHAR","detail":"VARCHAR","claim_id":"VARCHAR","derivability":"VARCHAR","fabricated":"BOOLEAN","evidence_refs":[{"trace_ref":"VARCHAR","source_invocation_ids":["VARCHAR"]}]}]') AS found,
      from_json(doc->'$.data.evaluation.fact_notes', '[{"added_by":"VARCHAR","recorded":["VARCHAR"]}]') AS notes
    FROM batch WHERE type = 'facts-verified'
  )
)
