-- one row for each plan: a round of ours begins
-- from: plan-made
SELECT
  seq, session, n, turn, round, attempt, time,
  doc->'$.data.steps' AS steps, -- intended calls: tool_name, arguments, why
  from_json(doc->'$.data.planned_tools', '["VARCHAR"]') AS planned_tools, -- null where no plan was made
  (doc->>'$.data.narrow')::BOOLEAN AS narrow, -- the question asks to confirm one service, alert or symptom
  doc->>'$.data.note' AS note, -- the planner's remark
  (doc->>'$.data.borrowed')::BOOLEAN AS borrowed, -- a scripted source had run out: the round borrows the first one's answer
  doc->'$.data.retry_context' AS retry_context -- what the second round was told of the first
FROM batch WHERE type = 'plan-made'
