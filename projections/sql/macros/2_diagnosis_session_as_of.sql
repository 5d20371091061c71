-- one row per session that was asked something, from the events up to a position and a time (UTC)
CREATE MACRO diagnosis_session_as_of(upto_seq, upto_time) AS TABLE
WITH seen AS (
  SELECT
    session,
    min(time) AS started_at,
    max(time) AS changed_at,
    max(n) AS n,
    max(seq) AS seq,
    max(turn) AS turn
  FROM events
  WHERE seq <= upto_seq AND time <= upto_time
  GROUP BY session
  HAVING max(turn) > 0
),
asked AS (
  SELECT session, turn, any_value(time) AS asked_at, any_value(question) AS question, any_value(lang) AS lang
  FROM questions
  WHERE seq <= upto_seq AND time <= upto_time
  GROUP BY session, turn
),
began AS (
  SELECT session, turn, max(round)::INTEGER AS rounds
  FROM events
  WHERE seq <= upto_seq AND time <= upto_time AND round > 0
  GROUP BY session, turn
),
routed AS (
  SELECT
    session,
    turn,
    arg_max({'verdict': effective_verdict, 'score': groundedness_score, 'route': route}, n) AS final
  FROM routes
  WHERE seq <= upto_seq AND time <= upto_time
  GROUP BY session, turn
),
answered AS (
  SELECT session, turn, arg_max({'at': time, 'kind': kind, 'fallback': fallback_reason}, n) AS given
  FROM answers
  WHERE seq <= upto_seq AND time <= upto_time
  GROUP BY session, turn
),
interrupted AS (
  SELECT DISTINCT session, turn
  FROM interruptions
  WHERE seq <= upto_seq AND time <= upto_time
),
latest AS (
  SELECT session, channel, arg_max(value, n) AS value
  FROM channels
  WHERE seq <= upto_seq AND time <= upto_time
  GROUP BY session, channel
),
assembled AS (
  SELECT
    session,
    ('{' || string_agg(to_json(channel)::VARCHAR || ':' || value::VARCHAR, ',' ORDER BY channel) || '}')::JSON AS self_evaluation
  FROM latest
  GROUP BY session
)
SELECT
  seen.session,
  seen.started_at,
  asked.asked_at,
  answered.given.at AS ended_at,
  asked.question,
  asked.lang,
  seen.turn AS turns,
  coalesce(began.rounds, 0) AS rounds,
  CASE WHEN interrupted.session IS NULL THEN routed.final.verdict END AS effective_verdict,
  CASE WHEN interrupted.session IS NULL THEN routed.final.score END AS groundedness_score,
  routed.final.route AS route,
  answered.given.kind AS kind,
  answered.given.fallback AS fallback_reason,
  assembled.self_evaluation,
  seen.n,
  seen.seq,
  seen.changed_at
FROM seen
LEFT JOIN asked ON asked.session = seen.session AND asked.turn = seen.turn
LEFT JOIN began ON began.session = seen.session AND began.turn = seen.turn
LEFT JOIN routed ON routed.session = seen.session AND routed.turn = seen.turn
LEFT JOIN answered ON answered.session = seen.session AND answered.turn = seen.turn
LEFT JOIN interrupted ON interrupted.session = seen.session AND interrupted.turn = seen.turn
LEFT JOIN assembled ON assembled.session = seen.session
