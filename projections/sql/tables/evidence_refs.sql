-- one row for each quotable record that a tool returned
-- from: tool-invoked
SELECT
  seq, session, n, turn, round, attempt, time,
  invocation_id AS invocation_id, -- the call it came from
  tool_name AS tool_name, -- the tool
  place AS place, -- place in the call's list, from 0
  ref.raw_path AS raw_path, -- where it stands in the output: `lines[12]`, `summary`, `error`
  ref.text AS text, -- the record as returned
  ref.source AS source -- file, URL or document, for people
FROM (
  SELECT * EXCLUDE (refs), unnest(refs) AS ref, generate_subscripts(refs, 1)::INTEGER - 1 AS place
  FROM (
    SELECT *,
      doc->>'$.data.invocation_id' AS invocation_id,
      doc->>'$.data.tool_name' AS tool_name,
      from_json(doc->'$.data.retrieval_details.evidence_refs', '[{"raw_path":"VARCHAR","text":"VARCHAR","source":"VARCHAR"}]') AS refs
    FROM batch WHERE type = 'tool-invoked'
  )
)
