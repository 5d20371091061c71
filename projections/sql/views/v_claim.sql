-- one row for each claim of each answer, with what the gate and the Verifier found
WITH checked AS (
  SELECT
    session, turn, round, attempt, claim_id,
    count(*) FILTER (status = 'pass') AS passed,
    count(*) FILTER (status = 'fail') AS failed
  FROM checked_bindings
  GROUP BY session, turn, round, attempt, claim_id
),
judged AS (
  SELECT session, turn, round, claim_id, arg_max({'label': verification, 'fabricated': fabricated}, (is_critical, n, place)) AS fact
  FROM facts
  WHERE claim_id IS NOT NULL
  GROUP BY session, turn, round, claim_id
)
SELECT
  claims.session AS session, -- the session
  claims.turn AS turn, -- question in the session
  claims.round AS round, -- round of the turn
  claims.attempt AS attempt, -- answer in the round, from 0
  claims.time AS time, -- when it was drafted, UTC
  claims.claim_id AS claim_id, -- as the Executor numbered it
  claims.claim_type AS claim_type, -- `observation`, `root_cause`, ...
  claims.claim_text AS claim_text, -- the statement
  claims.support_level AS support_level, -- as claimed
  claims.bindings AS bindings, -- bindings it gave
  coalesce(checked.passed, 0) AS bindings_passed, -- bindings the gate passed
  coalesce(checked.failed, 0) AS bindings_failed, -- bindings the gate failed
  judged.fact.label AS verification, -- the Verifier's label of the round's (critical) fact about it
  coalesce(judged.fact.fabricated, false) AS fabricated -- that fact was found invented
FROM claims
LEFT JOIN checked USING (session, turn, round, attempt, claim_id)
LEFT JOIN judged USING (session, turn, round, claim_id)
