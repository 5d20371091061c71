-- Does repair help? Gate and coverage of the first answer against the last, by how the loop ended.
SELECT
  decision,
  count(*) AS rounds,
  count(*) FILTER (first_gate_severity <> 'none' AND gate_severity = 'none') AS gate_mended,
  round(avg(coverage - first_coverage), 4) AS coverage_gain
FROM v_round
WHERE attempts > 1
GROUP BY decision
ORDER BY rounds DESC, decision
