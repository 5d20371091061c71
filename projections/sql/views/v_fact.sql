-- one row for each fact checked, with the verdict it was part of
SELECT
  facts.session AS session, -- the session
  facts.turn AS turn, -- question in the session
  facts.round AS round, -- round of the turn
  facts.time AS time, -- when it was judged, UTC
  facts.place AS place, -- place in the judgement, from 0
  facts.fact AS fact, -- the statement
  facts.is_critical AS is_critical, -- counts for the verdict
  facts.verification AS verification, -- the label
  facts.fabricated AS fabricated, -- an invented identifier or text
  facts.added_by AS added_by, -- `runtime` where the model did not give it
  facts.claim_id AS claim_id, -- the claim it is about
  facts.derivability AS derivability, -- `direct_observation`, `derived`, `not_derivable`
  facts.trace_refs AS trace_refs, -- items of the trace summary it rests on
  facts.detail AS detail, -- why
  verdicts.effective_verdict AS effective_verdict, -- verdict of that judgement
  usage.model AS verifier_model -- model that judged, null where no reply is named
FROM facts
JOIN verdicts ON verdicts.seq = facts.seq
LEFT JOIN usage ON usage.event_id = verdicts.reply_event AND usage.session = verdicts.session
