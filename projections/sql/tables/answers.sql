-- one row for each answer a user got: a turn ends
-- from: answer-given
SELECT
  seq, session, n, turn, round, attempt, time,
  doc->>'$.data.kind' AS kind, -- `answer`, `disclaimer`, `degraded`
  doc->>'$.data.text' AS text, -- what the user read
  doc->>'$.data.fallback_reason' AS fallback_reason, -- why it was a fallback, null if it was none
  coalesce(json_array_length(doc, '$.data.citations'), 0)::INTEGER AS citations, -- lines it cites
  coalesce(from_json(doc->'$.data.gaps', '["VARCHAR"]'), []) AS gaps, -- what is not confirmed
  coalesce(from_json(doc->'$.data.missing_claims', '["VARCHAR"]'), []) AS missing_claims -- what has no evidence
FROM batch WHERE type = 'answer-given'
