"""Recorded sessions for the read model's tests: real drafts, stamped as the log stamps them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from streams import contract as c
from streams import events as ev
from streams.directget import Stored
from streams.envelope import Draft, Event, Head, payload_bytes, stamp

START = datetime(2026, 11, 30, 10, 0, tzinfo=UTC)
LINES = (
    "10:41:02 ERROR payment-service HikariPool-1 - Connection is not available, request timed out after 30000ms",
    "10:41:03 WARN payment-service HikariPool-1 - active=20 idle=0 waiting=57",
    '10:41:04 INFO ledger-db \x1b[31mlong\x1b[0m transaction "pid 4711" open for 412 s 连接池耗尽',
)
PROMPTS = {"planner": "1" * 64, "executor": "2" * 64, "verifier": "3" * 64}


def _contract(quote: str) -> dict[str, Any]:
    def binding(i: int, text: str) -> dict[str, Any]:
        return {
            "tool_name": "query_logs",
            "source_invocation_id": "i1",
            "raw_path": f"lines[{i}]",
            "evidence_excerpt": text,
        }

    return c.Contract.model_validate(
        {
            "answer_version": "executor_evidence_v2",
            "diagnosis_summary": "the pool of payment-service is exhausted",
            "claims": [
                {
                    "claim_id": "c1",
                    "claim_type": "observation",
                    "claim_text": "connections time out",
                    "support_level": "direct",
                    "evidence_bindings": [binding(0, quote)],
                },
                {
                    "claim_id": "c2",
                    "claim_type": "root_cause",
                    "claim_text": "the pool is exhausted",
                    "support_level": "indirect",
                    "evidence_bindings": [binding(1, "active=20 idle=0"), binding(2, "open for 412 s")],
                },
            ],
            "recommended_actions": [
                {
                    "action_text": "end pid 4711",
                    "reason": "it holds the lock",
                    "evidence_bindings": [binding(2, "pid 4711")],
                }
            ],
        }
    ).model_dump(mode="json", exclude_none=True)


def _gate(ok: bool) -> c.GateResult:
    hits = [("c1", 0, 0), ("c2", 0, 1), ("c2", 1, 2), ("action-0", 0, 2)]
    results = tuple(
        c.BindingResult(
            claim_id=claim,
            index=index,
            status="pass" if ok or line else "fail",
            severity="none" if ok or line else "reject",
            failed_rules=() if ok or line else ("excerpt_not_found", "excerpt_number_differs"),
            source_invocation_id="i1",
            raw_path=f"lines[{line}]",
            tool_name="query_logs",
            tier="exact" if ok or line else None,
            start=0 if ok or line else None,
            end=9 if ok or line else None,
            text=LINES[line][:9] if ok or line else None,
            nearest_miss=None
            if ok or line
            else c.NearestMiss(text=LINES[0], start=0, end=9, difference="digit", ratio=97.5),
        )
        for claim, index, line in hits
    )
    return c.GateResult(
        status="pass" if ok else "fail",
        severity="none" if ok else "reject",
        checked_bindings=results,
        failed_rules=() if ok else ("excerpt_not_found", "excerpt_number_differs"),
        failures=()
        if ok
        else (
            c.Notice(rule="excerpt_not_found", claim_id="c1", message="the quote is not in the record"),
            c.Notice(rule="excerpt_number_differs", claim_id="c1", message="30000ms is 3000ms in the quote"),
        ),
        confirmed_claims=("c1", "c2") if ok else ("c2",),
    )


class Story:
    """Drafts of one session, added step by step."""

    def __init__(self, model: str = "offline") -> None:
        self.drafts: list[Draft] = []
        self.turn = 0
        self.round = 0
        self.attempt = 0
        self.model = model

    def add(self, payload: ev.Payload, actor: str, round_: int | None = None) -> Story:
        self.drafts.append(
            Draft(
                payload,
                actor,
                turn=self.turn,
                round=self.round if round_ is None else round_,
                attempt=self.attempt,
                ordinal=len(self.drafts),
            )
        )
        return self

    def ask(self, question: str = "why does payment-service time out?", lang: Any = "en") -> Story:
        self.turn, self.round, self.attempt = self.turn + 1, 0, 0
        return self.add(ev.QuestionAsked(question=question, lang=lang), "intake")

    def reply(self, role: Any, kind: Any = "first", tokens: int = 100) -> Story:
        return self.add(
            ev.AgentReplied(
                role=role,
                ordinal=0,
                kind=kind,
                text="{}",
                model=self.model,
                prompt_sha256=PROMPTS[role],
                usage=c.Usage(input_tokens=tokens, output_tokens=tokens // 10),
                latency_ms=12.5,
            ),
            role,
        )

    def gather(self) -> Story:
        self.round, self.attempt = self.round + 1, 0
        mark = "" if self.turn == 1 else f"-t{self.turn}"
        self.reply("planner")
        self.add(ev.PlanMade(planned_tools=("query_logs", "query_metrics"), narrow=True), "planner")
        refs = tuple(c.EvidenceRef(raw_path=f"lines[{i}]", text=t, source="pay.log") for i, t in enumerate(LINES))
        details = c.RetrievalDetails(evidence_refs=refs, matched=9, returned=3, truncated=True)
        self.add(
            ev.ToolInvoked(
                invocation_id=f"i{self.round}{mark}",
                tool_name="query_logs",
                arguments={"q": "ERROR"},
                retrieval_details=details,
                latency_ms=40.0,
            ),
            "executor",
        )
        return self.add(
            ev.ToolInvoked(
                invocation_id=f"m{self.round}{mark}",
                tool_name="query_metrics",
                status="error",
                error="refused",
                latency_ms=900.0,
            ),
            "executor",
        )

    def draft(self, ok: bool = True) -> Story:
        self.reply("executor", "first" if self.attempt == 0 else "repair", 400)
        quote = LINES[0][:60] if ok else "request timed out after 3000ms"
        self.add(
            ev.AnswerDrafted(parse_status="valid", structured=_contract(quote), final_answer="exhausted"), "executor"
        )
        return self.add(ev.GateJudged(result=_gate(ok)), "gatekeeper")

    def score(self, score: float = 0.8) -> Story:
        evaluation = {
            "score": score,
            "coverage": 1.0,
            "precision": 1.0,
            "diversity": 0.5,
            "yield": 0.5,
            "weights": {},
            "inputs": {},
        }
        return self.add(ev.RulesScored(evaluation=c.RuleEvaluation.model_validate(evaluation)), "evaluator")

    def evaluate(self, decision: Any = "accepted") -> Story:
        ok = decision == "accepted"
        self.add(
            ev.AnswerEvaluated(
                report=c.Verification(
                    supported=ok,
                    complete=ok,
                    citations_aligned=True,
                    coverage=1.0 if ok else 0.5,
                    missing_claims=() if ok else ("c1",),
                    repair_request="" if ok else "quote lines[0] as it is",
                ),
                decision=decision,
            ),
            "evaluator",
        )
        self.attempt += decision == "repair"
        return self

    def verify(self, verdict: Any = "PASS", score: float = 1.0, fabricated: bool = False) -> Story:
        self.reply("verifier", tokens=200)
        label: Any = {"PASS": "direct_evidence", "LOW_CONFID": "no_evidence", "REJECT": "contradicted"}[verdict]
        facts = (
            c.Fact(
                fact="connections time out",
                is_critical=True,
                verification="direct_evidence",
                claim_id="c1",
                evidence_refs=(c.FactRef(trace_ref="trace-i1", source_invocation_ids=("i1",)),),
            ),
            c.Fact(
                fact="the pool is exhausted", is_critical=True, verification=label, claim_id="c2", fabricated=fabricated
            ),
        )
        evaluation = c.VerifierEvaluation(
            verdict=verdict,
            groundedness_score=score,
            facts_checked=facts,
            critical_fact_count=2,
            rationale="checked",
            derived_verdict=verdict,
            model_verdict="PASS",
            effective_verdict=verdict,
            caps=() if verdict == "PASS" else (c.Cap(source="model", cap=verdict, reason="labels"),),
            executor_output_parse_status="valid",
            gatekeeper_result=_gate(verdict != "REJECT"),
        )
        return self.add(ev.FactsVerified(input={"question": "?"}, evaluation=evaluation), "verifier")

    def route(self, route: Any = "answer", verdict: Any = "PASS", score: float | None = 1.0) -> Story:
        return self.add(ev.RoundRouted(effective_verdict=verdict, score=score, route=route), "router")

    def answer(self, kind: Any = "answer", reason: Any = None) -> Story:
        return self.add(ev.AnswerGiven(kind=kind, text="the pool is exhausted", fallback_reason=reason), "router", 0)


def passed(model: str = "offline") -> Story:
    return Story(model).ask().gather().draft().score().evaluate().verify().route().answer()


def repaired(model: str = "offline") -> Story:
    story = Story(model).ask().gather().draft(False).score(0.4).evaluate("repair")
    return story.draft().score().evaluate().verify().route().answer()


def extra_round(model: str = "offline", then: Any = "PASS") -> Story:
    story = Story(model).ask().gather().draft().score().evaluate().verify("LOW_CONFID", 0.4)
    story.route("extra_round", "LOW_CONFID", 0.4).gather().draft().score(0.9).evaluate().verify(then, 0.6)
    kind = {"PASS": "answer", "LOW_CONFID": "disclaimer"}[then]
    return story.route(kind, then, 0.6).answer(kind)


def rejected(model: str = "offline") -> Story:
    story = Story(model).ask().gather().draft(False).score(0.4).evaluate("not_repairable")
    return story.verify("REJECT", 0.0, fabricated=True).route("degraded", "REJECT", 0.0).answer("degraded", "rejected")


def late(model: str = "offline") -> Story:
    story = Story(model).ask().gather().draft().score().evaluate().verify("LOW_CONFID", 0.4)
    story.route("extra_round", "LOW_CONFID", 0.4).gather()
    return story.add(ev.TurnFailed(reason="deadline", detail="300 s"), "deadline", 0).answer("degraded", "deadline")


def two_turns(model: str = "offline") -> Story:
    story = passed(model)
    story.add(ev.ChannelWritten(channel="team_review", value={"ok": True, "note": "fine \x1b[0m"}, who="sre"), "sre", 0)
    story.ask("连接池为什么耗尽?", "zh-CN").gather()
    return story.add(ev.TurnCancelled(who="on-call"), "intake", 0).answer("degraded", "cancelled")


STORIES = (passed, repaired, extra_round, rejected, late, two_turns)


def recorded(session: str, drafts: Sequence[Draft], start: datetime = START, step_s: float = 1.0) -> list[Event]:
    """The session's chain, without positions in the log."""
    head, events = Head(), []
    for i, draft in enumerate(drafts):
        event = stamp(session, head, draft, start + timedelta(seconds=i * step_s))
        events.append(event)
        head = event.head
    return events


def in_log(*sessions: Sequence[Event], order: Iterable[int] = ()) -> list[Event]:
    """Sessions interleaved as one log: `order` names the session that goes next, the rest follows one by one."""
    left = [list(s) for s in sessions]
    turns = [i % len(left) for i in order] + [i for i, rest in enumerate(left) for _ in rest]
    merged = [left[i].pop(0) for i in turns if left[i]]
    return [replace(event, seq=i + 1) for i, event in enumerate(merged)]


def sample_log() -> list[Event]:
    """One session of each story, interleaved, a day apart for every second one."""
    sessions = [
        recorded(
            f"e2611-{make.__name__.replace('_', '-')}", make(f"model-{i % 2}").drafts, START + timedelta(days=i // 2)
        )
        for i, make in enumerate(STORIES)
    ]
    return in_log(*sessions, order=list(range(6)) * 12)


class ListLog:
    """The part of EventLog that a projector uses, over a list; `deliver` is what `follow` hands out."""

    def __init__(self, events: Sequence[Event], deliver: Sequence[Event] | None = None) -> None:
        self.events = list(events)
        self.deliver = list(events if deliver is None else deliver)
        self.blobs: dict[str, bytes] = {}

    async def last_seq(self) -> int:
        return self.events[-1].seq if self.events else 0

    async def get_blob(self, blob: ev.Blob) -> bytes:
        return self.blobs[blob.sha256]

    async def follow(self, after: int = 0) -> AsyncIterator[Event]:
        for event in self.deliver:
            if event.seq > after:
                yield event
        await asyncio.Event().wait()


class BodyListLog(ListLog):
    """The same, giving stored bytes in lists of `size`."""

    size = 7

    async def stored(self, after: int = 0) -> AsyncIterator[list[Stored]]:
        messages = [Stored(e.seq, "", e.body, {}) for e in self.deliver if e.seq > after]
        for i in range(0, len(messages), self.size):
            yield messages[i : i + self.size]
        await asyncio.Event().wait()


def with_blob(session: str, text: str) -> tuple[list[Event], ev.Blob, bytes]:
    """A session whose question is kept as a blob, as a log does with a payload over its limit."""
    payload = ev.QuestionAsked(question=text)
    data = payload_bytes(payload)
    blob = ev.Blob(sha256=hashlib.sha256(data).hexdigest(), size_bytes=len(data), chunks=1)
    event = stamp(session, Head(), Draft(payload, "intake", turn=1), START, blob)
    return [replace(event, seq=1)], blob, data


def altered(event: Event, **data: Any) -> Event:
    """The event with other bytes, as a hand in the store would leave it."""
    raw = json.loads(event.body)
    raw["data"].update(data)
    body = json.dumps(raw).encode()
    return replace(event, body=body, hash=hashlib.sha256(body).hexdigest())
