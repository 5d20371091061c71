-- a moment as a UTC timestamp: an offset is understood, without one it is UTC, a bare date is its first moment
CREATE MACRO utc(moment) AS
CASE
  WHEN regexp_matches(moment::VARCHAR, ':\d\d(\.\d+)?\s*(Z|[+-]\d\d(:?\d\d)?)$') THEN moment::VARCHAR::TIMESTAMPTZ AT TIME ZONE 'UTC'
  ELSE moment::VARCHAR::TIMESTAMP
END
