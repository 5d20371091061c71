-- Do rule score and Verifier agree? Both of the last round, at the threshold 0.5.
SELECT
  rule_score >= 0.5 AS rules_say_good,
  groundedness_score >= 0.5 AS verifier_says_good,
  count(*) AS rounds,
  round(avg(rule_score), 4) AS mean_rule_score,
  round(avg(groundedness_score), 4) AS mean_groundedness
FROM (
  SELECT *
  FROM v_round
  WHERE rule_score IS NOT NULL AND groundedness_score IS NOT NULL
  QUALIFY row_number() OVER (PARTITION BY session, turn ORDER BY round DESC) = 1
)
GROUP BY ALL
ORDER BY rules_say_good, verifier_says_good
