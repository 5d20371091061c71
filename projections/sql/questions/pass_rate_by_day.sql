-- What share of judged turns passed, by day?
SELECT
  day,
  count(*) AS judged,
  count(*) FILTER (effective_verdict = 'PASS') AS passed,
  round(passed / judged, 4) AS pass_rate
FROM v_verdict
GROUP BY day
ORDER BY day
