-- one row for each Executor answer
-- from: answer-drafted
SELECT
  seq, session, n, turn, round, attempt, time,
  data->>'$.parse_status' AS parse_status, -- `valid`, `repaired_wrapper`, `malformed`, `truncated`, `refused`, `empty`
  data->>'$.parse_error' AS parse_error, -- what was wrong, and where
  data->>'$.reply_event' AS reply_event, -- event id of the reply it came from
  data->>'$.structured.answer_version' AS answer_version, -- contract version, null unless usable
  data->>'$.structured.diagnosis_summary' AS diagnosis_summary, -- the contract's summary
  coalesce(json_array_length(data, '$.structured.claims'), 0)::INTEGER AS claims, -- claims in the contract
  coalesce(json_array_length(data, '$.structured.recommended_actions'), 0)::INTEGER AS actions, -- recommended actions
  data->>'$.final_answer' AS final_answer -- what would be shown
FROM batch WHERE type = 'answer-drafted'
