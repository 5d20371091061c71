-- what arrived since the last commit, a row for each thing an event says (nearly always one): $1 seq, $2 hash, $3 body,
-- $4 payload kept as a blob, $5 today's payload where the body lacks it, $6 its type where it is not the event's, $7 part
CREATE OR REPLACE TEMP TABLE staged AS
SELECT
  seq,
  hash,
  envelope.* EXCLUDE (type, time, dataschema),
  split_part(envelope.type, 'verdictlog.', 2) AS stored_type,
  coalesce(kind, stored_type) AS type,
  split_part(envelope.dataschema, ':', 4)::INTEGER AS schema,
  envelope.time::TIMESTAMP AS time,
  strlen(body)::BIGINT AS size_bytes,
  body,
  kept,
  today,
  part
FROM (
  SELECT
    seq,
    hash,
    body,
    kept,
    today,
    kind,
    part,
    json_transform(body, '{"id":"VARCHAR","type":"VARCHAR","time":"VARCHAR","dataschema":"VARCHAR","session":"VARCHAR","turn":"INTEGER","round":"INTEGER","attempt":"INTEGER","n":"INTEGER","cause":"VARCHAR","correlation":"VARCHAR","actor":"VARCHAR","prevhash":"VARCHAR","traceparent":"VARCHAR"}') AS envelope
  FROM (
    SELECT
      unnest($1::BIGINT[]) AS seq,
      unnest($2::VARCHAR[]) AS hash,
      unnest($3::VARCHAR[]) AS body,
      unnest($4::VARCHAR[]) AS kept,
      unnest($5::VARCHAR[]) AS today,
      unnest($6::VARCHAR[]) AS kind,
      unnest($7::INTEGER[]) AS part
  )
)
