"""What the user reads: the answer as it is, behind the disclaimer, or withheld (TPL, ROU, rulings 9, 14, 15, 22).

Every sentence comes from the template files. A withheld answer prints confirmed facts, gaps and next steps and
nothing that the Executor wrote and no record shows, in any field.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Literal, TypedDict

from handlers import flow
from handlers.confirmed import confirmed_facts
from handlers.coverage import passes, supports
from handlers.gaps import Gap, Wording
from handlers.gating import contract_of
from handlers.replies import usable_user_answer
from prompts import Templates, templates
from streams.contract import Citation, Contract, Fact, GateResult, VerifierEvaluation
from streams.events import AnswerDrafted, FallbackReason, Route
from streams.session import Round, Turn

WITHOUT_JUDGEMENT = frozenset({"cancelled", "deadline", "parked", "agent_failed"})


class Response(TypedDict):
    """The fields of `answer-given`."""

    kind: Literal["answer", "disclaimer", "degraded"]
    text: str
    citations: tuple[Citation, ...]
    gaps: tuple[str, ...]
    missing_claims: tuple[str, ...]
    fallback_reason: FallbackReason | None


def respond(turn: Turn, number: int, route: Route, reason: FallbackReason | None) -> Response:
    """What goes out at the end of round `number` of `turn`, whose route is not `extra_round`.

    A borrowed round answers with the first round's answer (ruling 21). A turn that ended without a judgement
    (ruling 15) uses none, even if an earlier round had one.
    """
    answered = flow.answered_round(turn, number)
    verification = turn.round(number).verification if reason not in WITHOUT_JUDGEMENT else None
    view = _View(turn, answered, verification.evaluation if verification is not None else None, reason)
    if route == "answer":
        return _response("answer", view.body(), view.citations(), reason=reason)
    return view.marked() if route == "disclaimer" else view.withheld()


def _response(
    kind: Literal["answer", "disclaimer", "degraded"],
    text: str,
    citations: Iterable[Citation] = (),
    gaps: Iterable[Gap] = (),
    missing: Iterable[Gap] = (),
    reason: FallbackReason | None = None,
) -> Response:
    return Response(
        kind=kind,
        text=text,
        citations=tuple(citations),
        gaps=_texts(gaps),
        missing_claims=_texts(missing),
        fallback_reason=reason,
    )


def _texts(gaps: Iterable[Gap]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(gap.text for gap in gaps))


def render_answer(contract: Contract, lang: str, confirmed: Collection[str] | None = None) -> str:
    """The contract as a text for people (TPL-4): claims, hypotheses, actions, what is missing.

    `confirmed` has the ids of the claims that the gate found evidence for; None: those that say so and bind a record.
    """
    say = templates(lang)
    shown: list[str] = []
    unproved: list[str] = []
    for claim in contract.claims:
        bound = claim.support_level != "none" and bool(claim.evidence_bindings)
        holds = bound if confirmed is None else bound and claim.claim_id in confirmed
        (shown if holds else unproved).append(claim.claim_text)
    for hypothesis in contract.hypotheses:
        text, basis = hypothesis.hypothesis_text, hypothesis.basis
        unproved.append(say("answer/hypothesis", text=text, basis=basis) if basis.strip() else text)
    actions = [
        say("answer/action", text=action.action_text, reason=action.reason)
        if action.reason.strip()
        else action.action_text
        for action in contract.recommended_actions
    ]
    lacking = [*contract.missing_info, *(need for h in contract.hypotheses for need in h.needed_evidence)]
    sections = {"confirmed": shown, "hypotheses": unproved, "actions": actions, "gaps": lacking}
    return _sections(say, sections) or say("answer/nothing")


def render_facts(facts: Sequence[Fact], gaps: Sequence[str], lang: str) -> str:
    """The checked facts and the gaps, for an answer that may not be shown itself (TPL-5)."""
    say = templates(lang)
    direct = [fact.fact for fact in facts if fact.verification == "direct_evidence"]
    indirect = [fact.fact for fact in facts if fact.verification == "indirect_support"]
    return _sections(say, {"facts": direct, "indirect": indirect, "gaps": gaps}) or say("answer/nothing")


def _sections(say: Templates, sections: Mapping[str, Sequence[str]]) -> str:
    blocks = [
        f"{say(f'answer/{name}')}\n{_listed(kept)}" for name, texts in sections.items() if (kept := _lines(texts))
    ]
    return "\n\n".join(blocks)


def _lines(texts: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(line for text in texts if (line := " ".join(text.split()))))


def _listed(texts: Iterable[str]) -> str:
    return "\n".join(f"- {text}" for text in texts)


class _View:
    """One round's end as the texts need it."""

    def __init__(
        self, turn: Turn, rnd: Round, evaluation: VerifierEvaluation | None, reason: FallbackReason | None
    ) -> None:
        self.question = turn.question.question
        self.lang = turn.question.lang
        self.say = templates(self.lang)
        self.evaluation = evaluation
        self.reason = reason
        attempt = rnd.attempts[-1] if rnd.attempts else None
        self.draft: AnswerDrafted | None = attempt.draft if attempt is not None else None
        self.gate: GateResult | None = attempt.gate.result if attempt is not None and attempt.gate is not None else None
        self.contract = contract_of(self.draft) if self.draft is not None else None
        self.wording = Wording(self.question, self.contract, self.say)
        self.missing = self._missing(turn, rnd)
        self.gaps = self._gaps()

    def _missing(self, turn: Turn, rnd: Round) -> tuple[Gap, ...]:
        """The last report's missing claims, of a loop that ended without acceptance or a turn that broke off."""
        if self.evaluation is not None and flow.loop_end(rnd, turn.question.options) is None:
            return ()
        reports = [e.report for attempt in rnd.attempts for e in attempt.evaluations]
        return tuple(self.wording.gap(text) for text in reports[-1].missing_claims) if reports else ()

    def _gaps(self) -> tuple[Gap, ...]:
        """The critical facts that have no evidence; without a judgement what the last report missed, else the question."""
        if self.evaluation is None:
            return self.missing or self.wording.whole()
        return tuple(
            self.wording.gap(fact.fact, fact.claim_id)
            for fact in self.evaluation.facts_checked
            if fact.is_critical and fact.verification == "no_evidence"
        )

    def body(self) -> str:
        """The answer itself: the user's text, or the contract rendered (ruling 9); of a malformed one its prose."""
        if self.contract is not None:
            held = supports(self.contract, self.gate) if self.gate is not None else ()
            confirmed = None if self.gate is None else {s.claim.claim_id for s in held if s.supporting}
            return usable_user_answer(self.contract, self.lang) or render_answer(self.contract, self.lang, confirmed)
        if self.draft is not None and self.draft.prose:
            return self.draft.final_answer
        facts = self.evaluation.facts_checked if self.evaluation is not None else ()
        return render_facts(facts, _texts(self.gaps), self.lang)

    def citations(self) -> tuple[Citation, ...]:
        """Every passing binding, in the source's own text (ROU-1, ROU-2)."""
        cited = (
            Citation(
                claim_id=b.claim_id, source_invocation_id=b.source_invocation_id, raw_path=b.raw_path, excerpt=b.text
            )
            for b in (self.gate.checked_bindings if self.gate is not None else ())
            if passes(b) and b.source_invocation_id is not None and b.raw_path is not None and b.text is not None
        )
        return tuple({(c.claim_id, c.source_invocation_id, c.raw_path, c.excerpt): c for c in cited}.values())

    def _named(self) -> tuple[str, ...]:
        """What is missing, in words: never nothing (REP-6)."""
        return _texts((*self.missing, *self.gaps)) or (self.say("gaps/citations"),)

    def marked(self) -> Response:
        """The disclaimer, then the answer; where the evidence was insufficient, what is missing (TPL-1, REP-6)."""
        blocks = [self.say("disclaimer/low_confid"), self.body()]
        if self.reason == "evidence_insufficient":
            blocks.append(self.say("disclaimer/insufficient", missing=_listed(self._named())))
        return _response("disclaimer", "\n\n".join(blocks), self.citations(), self.gaps, self.missing, self.reason)

    def withheld(self) -> Response:
        """The fixed sentence, confirmed facts, gaps, next steps, and nothing else (TPL-2, ROU-7)."""
        facts = confirmed_facts(self.contract, self.gate, self.evaluation, self.question)
        sentence = self.say("degraded/withheld")
        if f"degraded/{self.reason}" in self.say:
            why = self.say(f"degraded/{self.reason}")
            sentence = self.say("degraded/because", sentence=sentence, reason=why)
        gaps = self._named() if self.reason == "evidence_insufficient" else _texts(self.gaps)
        blocks = [
            sentence,
            *(
                f"{self.say(f'degraded/{name}')}\n{_listed(lines or (self.say('degraded/none'),))}"
                for name, lines in (
                    ("confirmed", _lines(fact.fact for fact in facts)),
                    ("gaps", gaps),
                    ("steps", self.next_steps()),
                )
            ),
        ]
        shown = {fact.claim_id for fact in facts}
        cited = [c for c in self.citations() if c.claim_id in shown]
        return _response("degraded", "\n\n".join(blocks), cited, self.gaps, self.missing, self.reason)

    def next_steps(self) -> tuple[str, ...]:
        """One step for each failed rule, kind of gap and reason that has a template."""
        rules = self.gate.failed_rules if self.gate is not None else ()
        kinds = [gap.kind for gap in (*self.gaps, *self.missing)]
        judged = self.evaluation.facts_checked if self.evaluation is not None else ()
        if any(fact.verification == "contradicted" for fact in judged):
            kinds.append("contradicted")
        keys = [*rules, *(f"gap.{kind}" for kind in kinds), f"reason.{self.reason}"]
        steps = [self.say(f"next-steps/{key}") for key in keys if f"next-steps/{key}" in self.say]
        return tuple(dict.fromkeys(steps)) or (self.say("next-steps/otherwise"),)
