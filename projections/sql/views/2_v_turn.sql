-- one row for each question: what it took, and how it ended
WITH rounds AS (
  SELECT
    session,
    turn,
    count(*)::INTEGER AS rounds,
    sum(attempts)::INTEGER AS attempts,
    sum(invocations)::INTEGER AS invocations,
    arg_max(route, round) AS route
  FROM v_round
  GROUP BY session, turn
),
spent AS (
  SELECT
    session,
    turn,
    sum(input_tokens)::BIGINT AS input_tokens,
    sum(output_tokens)::BIGINT AS output_tokens,
    count(*) AS model_calls
  FROM usage
  GROUP BY session, turn
)
SELECT
  questions.session AS session, -- the session
  questions.turn AS turn, -- question in the session
  questions.time AS asked_at, -- when it was asked, UTC
  answers.time AS ended_at, -- when it was answered, UTC; null while it is open
  epoch(answers.time - questions.time) AS seconds, -- from question to answer
  questions.question AS question, -- the user's text
  questions.lang AS lang, -- `zh-CN` or `en`
  questions.owner AS owner, -- `ours` or `external`
  questions.agents AS agents, -- `offline`, `openai`, `scripted`
  coalesce(rounds.rounds, 0) AS rounds, -- rounds so far
  coalesce(rounds.attempts, 0) AS attempts, -- answers drafted so far
  coalesce(rounds.invocations, 0) AS invocations, -- evidence calls so far
  coalesce(spent.model_calls, 0) AS model_calls, -- model replies so far
  coalesce(spent.input_tokens, 0) AS input_tokens, -- tokens given to models
  coalesce(spent.output_tokens, 0) AS output_tokens, -- tokens that came back
  v_verdict.effective_verdict AS effective_verdict, -- null while open, and for a turn without judgement
  v_verdict.groundedness_score AS groundedness_score, -- score beside it, 0 to 1
  rounds.route AS route, -- route of the last round that ended
  answers.kind AS kind, -- kind of the answer
  answers.fallback_reason AS fallback_reason, -- why the answer is a fallback, null if it is none
  answers.text AS answer -- what the user read
FROM questions
LEFT JOIN answers ON answers.session = questions.session AND answers.turn = questions.turn
LEFT JOIN rounds ON rounds.session = questions.session AND rounds.turn = questions.turn
LEFT JOIN spent ON spent.session = questions.session AND spent.turn = questions.turn
LEFT JOIN v_verdict ON v_verdict.session = questions.session AND v_verdict.turn = questions.turn
