-- one row for each gate rule that failed, with the model whose answer it was
SELECT
  failed_rules.session AS session, -- the session
  failed_rules.turn AS turn, -- question in the session
  failed_rules.round AS round, -- round of the turn
  failed_rules.attempt AS attempt, -- answer in the round, from 0
  failed_rules.time AS time, -- when the gate ran, UTC
  failed_rules.rule AS rule, -- rule id
  failed_rules.severity AS severity, -- severity of that run of the gate
  failed_rules.claims AS claims, -- claims it fired on
  failed_rules.message AS message, -- the first sentence about it
  executor.model AS model, -- model that wrote the answer
  executor.prompt_sha256 AS prompt_sha256 -- hash of its prompt
FROM failed_rules
ASOF LEFT JOIN (SELECT * FROM usage WHERE role = 'executor') AS executor
  ON executor.session = failed_rules.session
  AND executor.turn = failed_rules.turn
  AND executor.round = failed_rules.round
  AND executor.n <= failed_rules.n
