"""What is recorded: payment-service, its pool and ledger-db, by the real roles; and one session that sets every field."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from typing import Any

import orjson

from handlers.case import read_case
from handlers.fork import forked
from handlers.intake import Defaults, accept
from handlers.requests import read_request
from handlers.roles import ROLES
from streams import chain, jetstream
from streams import contract as c
from streams import events as ev
from streams.envelope import Draft, Event
from streams.jetstream import JetStreamLog
from streams.log import SessionKey
from streams.session import SessionState
from tests import ledger_case as ledger
from tests.play import Stage, question_of

CASES: dict[str, dict[str, Any]] = {
    "answered": ledger.case(ledger.rnd(ledger.good(), ledger.checked())),
    "answered-zh": ledger.case(ledger.rnd(ledger.good("zh-CN"), ledger.checked("zh-CN")), lang="zh-CN"),
    "repaired": ledger.case(ledger.rnd(ledger.unplaced(), ledger.checked(), repairs=[ledger.good()])),
    "second-round": ledger.case(
        ledger.rnd(ledger.good(), ledger.unfounded()), ledger.later(ledger.rnd(ledger.good(), ledger.checked()))
    ),
    "withheld": ledger.case(ledger.rnd(ledger.miscopied(), ledger.checked()), max_attempts=0),
    "unreadable": ledger.case(ledger.rnd("The pool of payment-service is exhausted.", ledger.checked())),
}
FINDING = 'hikaricp_connections_active{pool="payments-pool"} last=20 max=20'


class Recorder(Stage):
    """The stage of the tests, on a log of a server."""

    def __init__(self, log: JetStreamLog) -> None:
        super().__init__()
        self.log = log  # type: ignore[assignment]

    async def told(self, session: str, *drafts: Draft) -> SessionState:
        state = await self.state(session)
        await self.log.append(session, drafts, state.head, self.clock())
        return await self.state(session)

    async def requested(self, session: str, kind: str, **body: Any) -> Event:
        request = read_request(kind, body)
        return await accept(self.log, session, request, self.clock(), None, Defaults())


async def play(log: JetStreamLog, sealing: JetStreamLog) -> None:
    """Every story, one after the other, into `log`; `sealing` is the same one, with the keys of those that are sealed."""
    stage = Recorder(log)
    for name, raw in CASES.items():
        await stage.ask(await question_of(stage, read_case(raw)), f"e2611-{name}")
        await stage.run(f"e2611-{name}")
    await foreign(stage)
    await interrupted(stage)
    await parked(stage)
    await complete(stage)
    await kept_as_blob(stage)
    origin = await stage.state("e2611-answered")
    copy = forked(origin.events[:6], "e2611-fork", ("e2611-answered", origin.events[5].head), "on-call", "what if")
    await stage.told("e2611-fork", *copy)
    await stage.told(
        "e2611-withheld", Draft(ev.TextErased(who="privacy officer", why="a customer asked for it"), "operator")
    )
    await anchored(stage)
    await sealed(sealing)


async def sealed(log: JetStreamLog, session: str = "e2611-sealed") -> None:
    """A turn is judged whose text is sealed, its script too; then a question that is sealed in a blob. `log` seals."""
    stage, case = Recorder(log), read_case(CASES["answered"])
    question = await question_of(stage, case)
    key = log.key(session)
    assert key is not None
    script = await log.put_blob(orjson.dumps(case.script), SessionKey(session, key))
    await stage.ask(question.model_copy(update={"script": script}), session)
    await stage.run(session)
    # What is sealed is compressed before: only what does not repeat itself is too large for an event.
    traces = (hashlib.sha256(bytes([i])).hexdigest() for i in range(100))
    await kept_as_blob(stage, session, "".join(f"trace {trace} " for trace in traces))


async def foreign(stage: Recorder) -> None:
    """A foreign agent is judged; a third party writes a channel, and writes it anew; a second turn is cancelled."""
    session = "e2611-foreign"
    await stage.requested(session, "question-asked", question="Is payment-service out of connections?", id="ask-1")
    await stage.requested(
        session, "tool-invoked", invocation_id="call-1", tool_name="query_metrics",
        arguments={"query": "hikaricp_connections_active"}, output=FINDING,
    )  # fmt: skip
    binding = {
        "tool_name": "query_metrics", "source_invocation_id": "call-1", "raw_path": "lines[0]", "evidence_excerpt": FINDING,
    }  # fmt: skip
    claim = {
        "claim_id": "c1", "claim_type": "observation", "support_level": "direct", "evidence_bindings": [binding],
        "claim_text": "payments-pool has 20 active connections of at most 20.",
    }  # fmt: skip
    answer = {
        "answer_version": "executor_evidence_v2", "diagnosis_summary": "The pool is in full use.", "claims": [claim],
        "user_facing_answer": "Yes: payments-pool has 20 active connections of at most 20.",
    }  # fmt: skip
    await stage.requested(session, "answer-drafted", answer=answer)
    await stage.run(session)
    for useful in (False, True):
        value = {"useful": useful, "note": "the pool was the symptom" if not useful else "confirmed after the restart"}
        await stage.requested(session, "channel-written", channel="human_review", value=value, who="on-call")
    await stage.requested(session, "question-asked", question="And why is it in full use?")
    await stage.requested(session, "turn-cancelled", who="on-call", why="the incident is over")
    await stage.run(session)


async def interrupted(stage: Recorder) -> None:
    """Nobody answers: the deadline ends the turn."""
    session = "e2611-late"
    await stage.requested(session, "question-asked", question="Why does ledger-db hold its locks?", deadline_s=1.0)
    stage.clock.now += timedelta(seconds=2)
    [asked] = (await stage.state(session)).events
    await stage.reactor().react(ROLES["deadline"], asked)
    await stage.run(session)


async def parked(stage: Recorder) -> None:
    """A role gives up on an event; an operator asks anew."""
    session = "e2611-parked"
    question = ev.QuestionAsked(question="why does payment-service time out?", lang="en")
    await stage.ask(question, session)
    [asked] = (await stage.state(session)).events
    await stage.reactor().park(asked, "planner", "ZeroDivisionError: division by zero", 5, ROLES["router"])
    state = await stage.state(session)
    entry = next(event for event in state.events if event.type == "handler-parked")
    resolved = ev.ParkedResolved(who="operator", why="mended in 0.1.1", parked_event=entry.id, action="retry")
    await stage.told(session, Draft(resolved, "operator", turn=1, cause=entry.id))
    await stage.told(session, Draft(question, "intake", turn=2, cause=entry.id))


async def kept_as_blob(
    stage: Recorder, session: str = "e2611-large", more: str = "HikariPool-1 - Connection is not available " * 60
) -> None:
    """A payload over the limit of an event; the limit is lowered, so that the recording stays small."""
    usual = jetstream.EVENT_LIMIT_BYTES
    jetstream.EVENT_LIMIT_BYTES = 2_000  # type: ignore[misc]
    try:
        question = "why does payment-service time out? " + more
        await stage.ask(ev.QuestionAsked(question=question, lang="en"), session)
    finally:
        jetstream.EVENT_LIMIT_BYTES = usual  # type: ignore[misc]


async def anchored(stage: Recorder) -> None:
    """The heads of all chains so far."""
    names = [f"e2611-{name}" for name in (*CASES, "foreign", "late", "parked", "complete", "large", "fork")]
    tips = {name: (await stage.state(name)).head for name in names}
    heads = {name: {"n": head.n, "hash": head.hash} for name, head in sorted(tips.items())}
    payload = ev.ChainAnchored(heads=heads, merkle_root=chain.merkle_root(tips), last_seq=await stage.log.last_seq())
    await stage.told("e2611-anchors", Draft(payload, "auditor", cause=payload.merkle_root))


async def complete(stage: Recorder) -> None:
    """Each event of a turn with each of its fields set, also those that the stories above leave out."""
    script = await stage.log.put_blob(orjson.dumps({"rounds": []}))
    output = await stage.log.put_blob(b"0 rows\n" * 40)
    await stage.told(
        "e2611-complete",
        *(
            Draft(payload, actor, 1, number, 0, f"cause-{i}", i, "ticket-4711", f"00-{'a' * 32}-{'b' * 16}-01")
            for i, (actor, number, payload) in enumerate(_complete(script, output))
        ),
    )


def _complete(script: ev.Blob, output: ev.Blob) -> list[tuple[str, int, ev.Payload]]:
    sources = ev.Sources(
        logs=("logs/payment.log",),
        metrics=("http://prometheus:9090",),
        runbooks=("runbooks",),
        tools={"kubectl_describe": ("saved/pod.txt",)},
        mcp={
            "pod_events": ev.ForeignTool(
                server="platform", tool="events", description="events of a pod", parameters={"type": "object"}
            )
        },
    )
    usage = c.Usage(input_tokens=812, output_tokens=64, requests=2)
    calls = (
        c.ToolCall(call_id="k1", name="kubectl_describe", arguments={"pod": "payment-7f"}),
        c.ToolCall(call_id="k2", name="query_logs", arguments_text='{"q": '),
    )
    details = c.RetrievalDetails(
        evidence_refs=(c.EvidenceRef(raw_path="lines[0]", text="OOMKilled at 10:41:07", source="saved/pod.txt"),),
        matched=3,
        returned=1,
        truncated=True,
        order="first+last+rare",
        first_time="2026-11-30T10:41:02Z",
        last_time="2026-11-30T10:41:09Z",
        dropped_reason="over the bound of 1 line",
        query_samples=("pod=payment-7f",),
        retrieval_layers=("file",),
        relevance_levels=("high",),
        source_documents=("saved/pod.txt",),
    )
    result = c.BindingResult(
        claim_id="c1",
        index=0,
        status="fail",
        severity="reject",
        failed_rules=("evidence.excerpt_mismatch",),
        warnings=("evidence.excerpt_clipped",),
        source_invocation_id="k1",
        raw_path="lines[0]",
        tool_name="kubectl_describe",
        tier="normalized",
        start=0,
        end=9,
        text="OOMKilled",
        lines="OOMKilled at 10:41:07",
        spans=((0, 9), (20, 29)),
        ref_sha256="d" * 64,
        nearest_miss=c.NearestMiss(text="OOMKilled", start=0, end=9, difference="word", ratio=88.9),
    )
    notice = c.Notice(
        rule="evidence.excerpt_mismatch", claim_id="c1", message="the line says OOMKilled", severity="reject"
    )
    gate = c.GateResult(
        status="fail",
        severity="reject",
        checked_bindings=(result,),
        failed_rules=("evidence.excerpt_mismatch",),
        warnings=(notice,),
        errors=(c.Notice(rule="claim.unit", message="could not run"),),
        failures=(notice,),
        claim_rules={"c1": ("claim.identifier_absent",)},
        confirmed_claims=(),
    )
    rules = c.RuleEvaluation.model_validate(
        {
            "score": 0.25, "coverage": 0.0, "precision": 1.0, "diversity": 0.5, "yield": 0.5,
            "weights": {"coverage": 0.4}, "inputs": {"bindings": 1}, "reason": "nothing is confirmed",
        }
    )  # fmt: skip
    report = c.Verification(
        supported=False,
        complete=False,
        citations_aligned=False,
        missing_claims=("c1",),
        unsupported_citations=("c1[0]",),
        repair_request="quote lines[0] as it is",
        coverage=0.0,
        items=({"claim_id": "c1", "evidence": False},),
        parts=({"part": "why", "answered": False},),
    )
    fact = c.Fact(
        fact="payment-7f was killed for memory",
        is_critical=True,
        verification="indirect_support",
        detail="the line says so of another pod",
        evidence_refs=(c.FactRef(trace_ref="trace-k1", source_invocation_ids=("k1",)),),
        claim_id="c1",
        derivability="derived",
        fabricated=False,
    )
    item = c.TraceItem(
        trace_ref="trace-k1",
        tool_name="kubectl_describe",
        success=True,
        input_summary="pod=payment-7f",
        output_summary="OOMKilled at 10:41:07",
        evidence_level="direct",
        source_invocation_ids=("k1",),
        query_samples=("pod=payment-7f",),
        retrieval_layers=("file",),
        relevance_levels=("high",),
        source_documents=("saved/pod.txt",),
        repeated_count=2,
        failed_count=1,
        no_hit_count=1,
    )
    judgement = c.VerifierEvaluation(
        verdict="REJECT",
        groundedness_score=0.5,
        facts_checked=(fact,),
        fact_notes=(c.FactNote(added_by="runtime", recorded=("a ref was dropped",)),),
        critical_fact_count=1,
        rationale="the quotation does not stand",
        derived_verdict="LOW_CONFID",
        model_verdict="PASS",
        effective_verdict="REJECT",
        model_score=0.9,
        model_critical_fact_count=2,
        caps=(c.Cap(source="gate", cap="REJECT", reason="a quotation does not match"),),
        reasons=("the model counted 2 critical facts",),
        executor_output_parse_status="repaired_wrapper",
        executor_structured_output={"answer_version": "executor_evidence_v2"},
        executor_final_answer="payment-7f was killed for memory.",
        tool_trace_summary=(item,),
        gatekeeper_result=gate,
        verifier_parse_status="valid",
    )
    return [
        ("intake", 0, ev.QuestionAsked(
            question="why was payment-7f killed?", lang="en", deadline_s=120.0, owner="ours", agents="scripted",
            script=script, sources=sources,
            options=ev.TurnOptions(
                max_attempts=1, on_exhausted="fallback", max_rounds=1, found_bindings=True, external_repair_wait_s=5.0
            ),
        )),
        ("planner", 1, ev.PlanMade(
            steps=(ev.PlannedStep(tool_name="kubectl_describe", arguments={"pod": "payment-7f"}, why="its last state"),),
            planned_tools=("kubectl_describe",), narrow=True, note="one pod", borrowed=True,
            retry_context={"reason": "nothing was found"},
        )),
        ("executor", 1, ev.AgentReplied(
            role="executor", ordinal=1, kind="repair", text="I look at the pod.", tool_calls=calls,
            finish_reason="tool_calls", model="example-1", prompt_sha256="e" * 64, usage=usage, latency_ms=12.5,
            details={"retries": 1},
        )),
        ("executor", 1, ev.ToolInvoked(
            invocation_id="k1", tool_name="kubectl_describe", arguments={"pod": "payment-7f"}, status="error",
            evidence_kind="incident", topic="pods", retrieval_details=details, error="exit code 1",
            output_sha256="f" * 64, output_size_bytes=280, output_blob=output, output_format="text", latency_ms=80.5,
            redactions={"email": 1},
        )),
        ("executor", 1, ev.AnswerDrafted(
            parse_status="repaired_wrapper", parse_error="a fence around it", reply_event="r-1", raw_text="{}",
            structured={"answer_version": "executor_evidence_v2", "diagnosis_summary": "killed", "claims": [
                {"claim_id": "c1", "claim_type": "root_cause", "claim_text": "killed for memory",
                 "support_level": "direct", "evidence_bindings": [
                     {"tool_name": "kubectl_describe", "source_invocation_id": "k1", "raw_path": "lines[0]",
                      "evidence_excerpt": "OOM killed"}]}]},
            final_answer="payment-7f was killed for memory.", prose=True, found=True,
            notices=({"rule": "contract.type", "claim_id": "c1", "message": "read as text"},),
        )),
        ("gatekeeper", 1, ev.GateJudged(result=gate)),
        ("evaluator", 1, ev.RulesScored(evaluation=rules)),
        ("evaluator", 1, ev.AnswerEvaluated(report=report, decision="not_repairable")),
        ("verifier", 1, ev.FactsVerified(input={"question": "why?"}, reply_event="r-2", evaluation=judgement)),
        ("router", 1, ev.RoundRouted(effective_verdict="REJECT", score=0.5, route="degraded", reason="rejected")),
        ("router", 1, ev.AnswerGiven(
            kind="degraded", text="Nothing is confirmed.", gaps=("why it was killed",), missing_claims=("c1",),
            citations=(c.Citation(claim_id="c1", source_invocation_id="k1", raw_path="lines[0]", excerpt="OOMKilled"),),
            fallback_reason="rejected",
        )),
        ("human", 0, ev.ChannelWritten(channel="human_review", value=["no", {"score": 0.1}, None], who="on-call")),
    ]  # fmt: skip
