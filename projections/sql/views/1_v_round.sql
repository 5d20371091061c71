-- one row for each round: what it gathered, how it was judged, where it went
WITH began AS (
  SELECT session, turn, round, min(time) AS started_at
  FROM (
    SELECT session, turn, round, time FROM usage
    UNION ALL SELECT session, turn, round, time FROM plans
    UNION ALL SELECT session, turn, round, time FROM invocations
    UNION ALL SELECT session, turn, round, time FROM attempts
    UNION ALL SELECT session, turn, round, time FROM routes
  )
  WHERE round > 0
  GROUP BY session, turn, round
),
called AS (
  SELECT session, turn, round, count(*) AS calls, count(*) FILTER (status = 'error') AS errors
  FROM invocations
  GROUP BY session, turn, round
),
drafted AS (
  SELECT session, turn, round, count(*) AS answers, arg_max(parse_status, n) AS parse_status
  FROM attempts
  GROUP BY session, turn, round
),
gated AS (
  SELECT session, turn, round, arg_min(severity, n) AS first_severity, arg_max(severity, n) AS severity
  FROM gate_results
  GROUP BY session, turn, round
),
evaluated AS (
  SELECT session, turn, round, arg_max(decision, n) AS decision, arg_min(coverage, n) AS first_coverage, arg_max(coverage, n) AS coverage
  FROM evaluations
  GROUP BY session, turn, round
),
scored AS (
  SELECT session, turn, round, arg_max(score, n) AS rule_score
  FROM rule_scores
  GROUP BY session, turn, round
),
judged AS (
  SELECT session, turn, round, arg_max(effective_verdict, n) AS verdict, arg_max(groundedness_score, n) AS score
  FROM verdicts
  GROUP BY session, turn, round
),
routed AS (
  SELECT session, turn, round, arg_max(route, n) AS route, max(time) AS ended_at
  FROM routes
  GROUP BY session, turn, round
)
SELECT
  began.session AS session, -- the session
  began.turn AS turn, -- question in the session
  began.round AS round, -- 1, or 2 for an extra round
  began.started_at AS started_at, -- time of its first event, UTC
  routed.ended_at AS ended_at, -- when it was routed, UTC; null while it is open
  coalesce(called.calls, 0) AS invocations, -- evidence calls
  coalesce(called.errors, 0) AS failed_invocations, -- evidence calls that failed
  coalesce(drafted.answers, 0) AS attempts, -- answers drafted; more than one through repair
  drafted.parse_status AS parse_status, -- parse status of the last answer
  gated.first_severity AS first_gate_severity, -- severity the gate gave the first answer
  gated.severity AS gate_severity, -- severity the gate gave the last answer
  evaluated.first_coverage AS first_coverage, -- coverage of the first evaluation, 0 to 1
  evaluated.coverage AS coverage, -- coverage of the last evaluation, 0 to 1
  evaluated.decision AS decision, -- how the repair loop ended
  scored.rule_score AS rule_score, -- last score by rule, 0 to 1
  judged.verdict AS effective_verdict, -- the Verifier's verdict with all caps
  judged.score AS groundedness_score, -- score beside it, 0 to 1
  routed.route AS route -- `answer`, `disclaimer`, `extra_round`, `degraded`
FROM began
LEFT JOIN called USING (session, turn, round)
LEFT JOIN drafted USING (session, turn, round)
LEFT JOIN gated USING (session, turn, round)
LEFT JOIN evaluated USING (session, turn, round)
LEFT JOIN scored USING (session, turn, round)
LEFT JOIN judged USING (session, turn, round)
LEFT JOIN routed USING (session, turn, round)
