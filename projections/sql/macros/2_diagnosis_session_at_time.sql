-- one row per session, from the events up to a time; an offset is understood, without one it is UTC, a bare date is its first moment
CREATE MACRO diagnosis_session_at_time(moment) AS TABLE
SELECT * FROM diagnosis_session_as_of(9223372036854775807, utc(moment))
