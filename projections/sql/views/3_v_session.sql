-- one row for each session: its turns summed up
SELECT
  session AS session, -- the session
  min(asked_at) AS started_at, -- when its first question was asked, UTC
  max(ended_at) AS ended_at, -- when its last answer was given, UTC
  count(*)::INTEGER AS turns, -- questions
  (count(*) FILTER (ended_at IS NULL))::INTEGER AS open_turns, -- questions not answered yet
  sum(rounds)::INTEGER AS rounds, -- rounds of all turns
  sum(attempts)::INTEGER AS attempts, -- answers drafted
  sum(invocations)::INTEGER AS invocations, -- evidence calls
  sum(model_calls)::INTEGER AS model_calls, -- model replies
  sum(input_tokens)::BIGINT AS input_tokens, -- tokens given to models
  sum(output_tokens)::BIGINT AS output_tokens, -- tokens that came back
  arg_max(question, turn) AS question, -- the latest question
  arg_max_null(effective_verdict, turn) AS effective_verdict, -- verdict of the latest turn, null if it has none
  arg_max_null(kind, turn) AS kind -- kind of the latest turn's answer
FROM v_turn
GROUP BY session
