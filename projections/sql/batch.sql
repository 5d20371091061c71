-- what arrived, with the document that holds today's payload under `data`: tables select from here
CREATE OR REPLACE TEMP VIEW batch AS
SELECT
  *,
  CASE WHEN payload IS NULL THEN body ELSE '{"data":' || payload || '}' END AS doc
FROM staged
