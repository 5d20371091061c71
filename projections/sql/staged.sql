-- what arrived since the last commit, one row an event: $1 seq, $2 hash, $3 body, $4 payload (null: the body holds it)
CREATE OR REPLACE TEMP TABLE staged AS
SELECT
  seq,
  hash,
  envelope.* EXCLUDE (type, time, dataschema),
  split_part(envelope.type, 'verdictlog.', 2) AS type,
  split_part(envelope.dataschema, ':', 4)::INTEGER AS schema,
  envelope.time::TIMESTAMP AS time,
  strlen(body)::BIGINT AS size_bytes,
  body,
  payload
FROM (
  SELECT
    seq,
    hash,
    body,
    payload,
    json_transform(body, '{"id":"VARCHAR","type":"VARCHAR","time":"VARCHAR","dataschema":"VARCHAR","session":"VARCHAR","turn":"INTEGER","round":"INTEGER","attempt":"INTEGER","n":"INTEGER","cause":"VARCHAR","correlation":"VARCHAR","actor":"VARCHAR","prevhash":"VARCHAR","traceparent":"VARCHAR"}') AS envelope
  FROM (
    SELECT
      unnest($1::BIGINT[]) AS seq,
      unnest($2::VARCHAR[]) AS hash,
      unnest($3::VARCHAR[]) AS body,
      unnest($4::VARCHAR[]) AS payload
  )
)
