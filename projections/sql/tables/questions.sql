-- one row for each question asked: a turn begins
-- from: question-asked
SELECT
  seq, session, n, turn, round, attempt, time,
  id AS event_id, -- id of the event
  data->>'$.question' AS question, -- the user's text
  data->>'$.lang' AS lang, -- `zh-CN` or `en`
  (data->>'$.deadline_s')::DOUBLE AS deadline_s, -- seconds until the turn is ended
  data->>'$.owner' AS owner, -- `ours` or `external`
  data->>'$.agents' AS agents, -- `offline`, `openai`, `scripted`
  (data->>'$.options.max_attempts')::INTEGER AS max_attempts, -- bound of evaluations in a round
  data->>'$.options.on_exhausted' AS on_exhausted, -- `cap` or `fallback`
  (data->>'$.options.max_rounds')::INTEGER AS max_rounds -- 1 or 2
FROM batch WHERE type = 'question-asked'
