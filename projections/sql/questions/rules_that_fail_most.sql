-- Which gate rules fail most, and in how many sessions?
SELECT
  rule,
  count(*) AS failures,
  count(DISTINCT session) AS sessions,
  sum(len(claims))::BIGINT AS claims
FROM v_failed_rule
GROUP BY rule
ORDER BY failures DESC, rule
