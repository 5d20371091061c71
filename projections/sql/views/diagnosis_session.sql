-- one row per session that was asked something: what is known now; question, verdict and answer are those of its latest turn
SELECT
  session, -- the session
  started_at, -- time of its first event, UTC
  asked_at, -- when the latest question was asked, UTC
  ended_at, -- when that was answered, UTC; null while the turn is open
  question, -- the latest question
  lang, -- its language
  turns, -- questions so far
  rounds, -- rounds of the latest turn so far
  effective_verdict, -- verdict of the latest round that ended; null before, and for a turn without judgement
  groundedness_score, -- score beside that verdict, 0 to 1
  route, -- route of the latest round that ended
  kind, -- kind of the answer: `answer`, `disclaimer`, `degraded`
  fallback_reason, -- why the answer is a fallback, null if it is none
  self_evaluation, -- each channel's latest value; null before the first
  n, -- events of the session so far
  seq, -- position of its newest event
  changed_at -- time of its newest event, UTC
FROM diagnosis_session_as_of(9223372036854775807, 'infinity'::TIMESTAMP)
