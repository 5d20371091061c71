-- one row for each repair report
-- from: answer-evaluated
SELECT
  seq, session, n, turn, round, attempt, time,
  (doc->>'$.data.report.supported')::BOOLEAN AS supported, -- every important item has evidence
  (doc->>'$.data.report.complete')::BOOLEAN AS complete, -- every part of the question is answered
  (doc->>'$.data.report.citations_aligned')::BOOLEAN AS citations_aligned, -- no binding supports another claim than its own
  (doc->>'$.data.report.coverage')::DOUBLE AS coverage, -- share of important items with evidence, 0 to 1
  doc->>'$.data.decision' AS decision, -- `accepted`, `repair`, `not_repairable`, `exhausted`
  coalesce(from_json(doc->'$.data.report.missing_claims', '["VARCHAR"]'), []) AS missing_claims, -- what has no evidence
  coalesce(from_json(doc->'$.data.report.unsupported_citations', '["VARCHAR"]'), []) AS unsupported_citations, -- bindings that failed
  doc->>'$.data.report.repair_request' AS repair_request -- what the Executor was asked to mend
FROM batch WHERE type = 'answer-evaluated'
