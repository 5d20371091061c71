-- one row for each Executor answer
-- from: answer-drafted
SELECT
  seq, session, n, turn, round, attempt, time,
  d.parse_status AS parse_status, -- `valid`, `repaired_wrapper`, `malformed`, `truncated`, `refused`, `empty`
  d.parse_error AS parse_error, -- what was wrong, and where
  d.reply_event AS reply_event, -- event id of the reply it came from
  d.structured.answer_version AS answer_version, -- contract version, null unless usable
  d.structured.diagnosis_summary AS diagnosis_summary, -- the contract's summary
  coalesce(len(d.structured.claims), 0)::INTEGER AS claims, -- claims in the contract
  coalesce(len(d.structured.recommended_actions), 0)::INTEGER AS actions, -- recommended actions
  d.final_answer AS final_answer -- what would be shown
FROM (
  SELECT *, from_json(doc, '{"data":{"parse_status":"VARCHAR","parse_error":"VARCHAR","reply_event":"VARCHAR","structured":{"answer_version":"VARCHAR","diagnosis_summary":"VARCHAR","claims":["JSON"],"recommended_actions":["JSON"]},"final_answer":"VARCHAR"}}').data AS d
  FROM batch WHERE type = 'answer-drafted'
)
