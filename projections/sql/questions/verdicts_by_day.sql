-- How many verdicts of each kind were there, by day?
SELECT day, effective_verdict, count(*) AS turns
FROM v_verdict
GROUP BY day, effective_verdict
ORDER BY day, effective_verdict
