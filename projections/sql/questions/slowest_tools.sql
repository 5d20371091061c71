-- Which evidence tools are slow, and which fail?
SELECT
  tool_name,
  count(*) AS calls,
  count(*) FILTER (status = 'error') AS errors,
  round(quantile_cont(latency_ms, 0.5), 1) AS p50_ms,
  round(quantile_cont(latency_ms, 0.95), 1) AS p95_ms,
  sum(bindings_passed)::BIGINT AS bindings_passed
FROM v_invocation
GROUP BY tool_name
ORDER BY p95_ms DESC, tool_name
