-- one row for each turn that ended with a judgement: the verdict its user got
SELECT
  answers.session AS session, -- the session
  answers.turn AS turn, -- question in the session
  answers.time AS time, -- when the answer was given, UTC
  answers.time::DATE AS day, -- that day, UTC
  routed.final.verdict AS effective_verdict, -- `PASS`, `LOW_CONFID`, `REJECT`
  routed.final.score AS groundedness_score, -- 0 to 1
  routed.rounds AS rounds, -- rounds it took
  routed.final.route AS route, -- route of the last round
  answers.kind AS kind, -- kind of the answer
  answers.fallback_reason AS fallback_reason -- why the answer is a fallback, null if it is none
FROM answers
JOIN (
  SELECT
    session,
    turn,
    max(round)::INTEGER AS rounds,
    arg_max({'verdict': effective_verdict, 'score': groundedness_score, 'route': route}, n) AS final
  FROM routes
  GROUP BY session, turn
) AS routed ON routed.session = answers.session AND routed.turn = answers.turn
ANTI JOIN interruptions ON interruptions.session = answers.session AND interruptions.turn = answers.turn
WHERE routed.final.verdict IS NOT NULL
