-- one row for each question asked: a turn begins
-- from: question-asked
SELECT
  seq, session, n, turn, round, attempt, time,
  id AS event_id, -- id of the event
  doc->>'$.data.question' AS question, -- the user's text
  doc->>'$.data.lang' AS lang, -- `zh-CN` or `en`
  (doc->>'$.data.deadline_s')::DOUBLE AS deadline_s, -- seconds until the turn is ended
  doc->>'$.data.owner' AS owner, -- `ours` or `external`
  doc->>'$.data.agents' AS agents, -- `offline`, `openai`, `scripted`
  (doc->>'$.data.options.max_attempts')::INTEGER AS max_attempts, -- bound of evaluations in a round
  doc->>'$.data.options.on_exhausted' AS on_exhausted, -- `cap` or `fallback`
  (doc->>'$.data.options.max_rounds')::INTEGER AS max_rounds -- 1 or 2
FROM batch WHERE type = 'question-asked'
