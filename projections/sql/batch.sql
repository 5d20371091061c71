-- what arrived, with the document that holds today's payload under `data`: tables select from here
CREATE OR REPLACE TEMP VIEW batch AS
SELECT
  *,
  CASE WHEN today IS NULL THEN body ELSE '{"data":' || today || '}' END AS doc
FROM staged
