-- one row for each plan: a round of ours begins
-- from: plan-made
SELECT
  seq, session, n, turn, round, attempt, time,
  data->'$.steps' AS steps, -- intended calls: tool_name, arguments, why
  from_json(data->'$.planned_tools', '["VARCHAR"]') AS planned_tools, -- null where no plan was made
  (data->>'$.narrow')::BOOLEAN AS narrow, -- the question asks to confirm one service, alert or symptom
  data->>'$.note' AS note, -- the planner's remark
  (data->>'$.borrowed')::BOOLEAN AS borrowed, -- a scripted source had run out: the round borrows the first one's answer
  data->'$.retry_context' AS retry_context -- what the second round was told of the first
FROM batch WHERE type = 'plan-made'
