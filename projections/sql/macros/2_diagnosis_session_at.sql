-- one row per session, from the events up to a position of the log
CREATE MACRO diagnosis_session_at(upto) AS TABLE
SELECT * FROM diagnosis_session_as_of(upto::BIGINT, 'infinity'::TIMESTAMP)
