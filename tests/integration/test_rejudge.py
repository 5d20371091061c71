"""Judged again by the same rules nothing changes; by other rules, limits or Verifiers it is told what does, and why."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from handlers.agents.offline import OfflineAgents
from handlers.dispatch import Again
from handlers.evidence.records import FORMAT, pack
from handlers.fork import copies, forked
from handlers.rejudgement import compared, told
from handlers.replay import Changes, playable, replay
from handlers.report import turn_report
from streams.chain import verify
from streams.contract import GateResult
from streams.envelope import Draft, Head
from streams.events import AgentReplied, GateJudged, ToolInvoked
from streams.session import SessionState, fold
from tests import ledger_case as ledger
from tests.cases import EXAMPLE, example, long_case, tampered
from tests.foreign import CONTRACT, QUESTION, TOOL, miscopied, send
from tests.play import SESSION, Stage, play

CALLED: dict[str, Any] = dict(TOOL)
CASES: dict[str, dict[str, Any]] = {
    "example": example(),
    "long": long_case(),
    "no second round": ledger.case(ledger.rnd(ledger.good(), ledger.unfounded())),
    "second round": ledger.case(
        ledger.rnd(ledger.good(), ledger.unfounded()), ledger.later(ledger.rnd(ledger.good(), ledger.checked()))
    ),
    "mended": ledger.case(ledger.rnd(ledger.miscopied(), ledger.checked(), repairs=[ledger.good()])),
    "exhausted": ledger.case(ledger.rnd(ledger.miscopied(), ledger.checked(), repairs=[ledger.miscopied()])),
    "fallback": ledger.case(ledger.rnd(ledger.miscopied(), ledger.checked()), on_exhausted="fallback"),
    "offline verifier": ledger.case(ledger.rnd(ledger.good())),
    "prose": ledger.case(ledger.rnd("payment-service timed out because of ledger-db.", ledger.checked())),
    "malformed verifier": ledger.case(ledger.rnd(ledger.good(), ["no", "no"])),
}


def again(state: SessionState, stage: Stage, changes: Changes | None = None) -> SessionState:
    return asyncio.run(replay(state, stage.log, changes or Changes(), OfflineAgents))


def recorded(case: dict[str, Any]) -> tuple[Stage, SessionState]:
    stage = Stage()
    return stage, asyncio.run(play(case, stage))


@pytest.mark.parametrize("name", CASES)
def test_the_same_rules_change_nothing(name: str) -> None:
    stage, state = recorded(CASES[name])
    bodies = [event.body for event in state.events]
    position = asyncio.run(stage.log.last_seq())
    played = again(state, stage)
    assert turn_report(played, played.turns[0]) == turn_report(state, state.turns[0])
    assert [(e.id, e.type, e.data) for e in played.events] == [(e.id, e.type, e.data) for e in state.events]
    row = compared(state.turns[0], played.turns[0])
    assert (row["changed"], row["because"]) == (False, [])
    assert [event.body for event in asyncio.run(stage.log.read(SESSION))] == bodies
    assert asyncio.run(stage.log.last_seq()) == position


def lenient() -> tuple[Stage, SessionState]:
    """A session as a program would have recorded it that let every quotation pass."""
    stage, state = recorded(example())
    said = json.dumps(tampered(example()["rounds"][0]["executor_output"]))
    drafts = []
    for draft in copies(state.events, SESSION):
        payload = draft.payload
        if isinstance(payload, AgentReplied) and payload.role == "executor" and payload.text:
            payload = payload.model_copy(update={"text": said})
        drafts.append(Draft(payload, draft.actor, draft.turn, draft.round, draft.attempt, draft.cause, draft.ordinal))
    stage = Stage()
    events = asyncio.run(stage.log.append(SESSION, drafts, Head(), stage.clock()))
    return stage, fold(SESSION, events)


def test_a_stricter_rule_is_named_with_what_it_changes() -> None:
    stage, state = lenient()
    row = compared(state.turns[0], again(state, stage).turns[0])
    assert (row["from"]["verdict"], row["to"]["verdict"], row["changed"]) == ("PASS", "REJECT", True)
    assert any("excerpt" in why and why.endswith("fails now") for why in row["because"]), row["because"]
    assert any(why.startswith("capped now: REJECT (gate)") for why in row["because"])
    lines = "\n".join(told([{**row, "session": SESSION, "skipped": None}]))
    assert "CHANGES" in lines
    assert "PASS 1.00 (answer) -> REJECT" in lines


def test_a_milder_rule_is_named_too() -> None:
    stage, state = recorded(CASES["example"])
    assert isinstance(state.turns[0].rounds[0].attempts[0].gate, GateJudged)
    strict = GateResult(status="fail", severity="reject", failed_rules=("evidence.excerpt",))
    drafts = [
        Draft(GateJudged(result=strict) if isinstance(d.payload, GateJudged) else d.payload, d.actor, d.turn, d.round,
              d.attempt, d.cause, d.ordinal)
        for d in copies(state.events, SESSION)
    ]  # fmt: skip
    old = fold(SESSION, asyncio.run(Stage().log.append(SESSION, drafts, Head(), stage.clock())))
    row = compared(old.turns[0], again(old, stage).turns[0])
    assert row["because"] == ["evidence.excerpt does not fail any more"]
    assert row["changed"]


def test_other_limits_are_tried_and_what_was_never_recorded_is_not_made_up() -> None:
    stage, state = recorded(CASES["mended"])
    unmended = compared(state.turns[0], again(state, stage, Changes({"max_attempts": 0})).turns[0])
    assert unmended["changed"]
    assert "round 1 attempt 1: accepted -> not evaluated" in unmended["because"]
    stage, state = recorded(CASES["exhausted"])
    row = compared(state.turns[0], again(state, stage, Changes({"on_exhausted": "fallback"})).turns[0])
    assert (row["to"]["verdict"], row["to"]["ended"]) == (None, "evidence_insufficient")
    more = again(state, stage, Changes({"max_attempts": 5}))
    assert [len(r.attempts) for r in more.turns[0].rounds] == [2]
    stage, state = recorded(CASES["fallback"])
    row = compared(state.turns[0], again(state, stage, Changes({"on_exhausted": "cap"})).turns[0])
    assert row["from"]["verdict"] is None
    assert row["to"]["verdict"] is not None
    assert row["to"]["verifier"] == "offline"


def test_another_verifier_is_asked_anew_and_nothing_else_is() -> None:
    stage, state = recorded(CASES["no second round"])
    played = again(state, stage, Changes(verifier=OfflineAgents()))
    row = compared(state.turns[0], played.turns[0])
    assert (row["from"]["verifier"], row["to"]["verifier"]) == ("scripted", "offline")
    assert (row["from"]["verdict"], row["to"]["verdict"]) == ("LOW_CONFID", "PASS")
    assert row["because"] == [
        "not capped any more: LOW_CONFID (borrowed)",
        f"c1: {ledger.TEXTS['en']['c1']}: critical no_evidence -> critical direct_evidence",
        f"c2: {ledger.TEXTS['en']['c2']}: critical no_evidence -> critical direct_evidence",
    ]
    assert [r.text for r in replies(played, "executor")] == [r.text for r in replies(state, "executor")][:2]


def test_facts_that_are_worded_anew_are_compared_by_their_claim() -> None:
    facts = [ledger.fact("timeouts are logged", claim_id="c1"), ledger.fact("two retries", "no_evidence", "c2")]
    stage, state = recorded(ledger.case(ledger.rnd(ledger.good(), ledger.verdict("LOW_CONFID", *facts))))
    row = compared(state.turns[0], again(state, stage, Changes(verifier=OfflineAgents())).turns[0])
    assert [why for why in row["because"] if "direct_evidence" in why] == [
        "c2: critical no_evidence -> critical direct_evidence"
    ]


def replies(state: SessionState, role: str) -> list[AgentReplied]:
    return [e.data for e in state.events if isinstance(e.data, AgentReplied) and e.data.role == role]


def foreign_turn(*answers: dict[str, Any]) -> tuple[Stage, SessionState]:
    stage = Stage()

    async def scenario() -> SessionState:
        await send(stage, "question-asked", question=QUESTION, lang="en", repair_wait_s=60.0)
        await send(stage, "tool-invoked", **CALLED)
        for answer in answers:
            await send(stage, "answer-drafted", answer=answer)
            await settled(stage)
        return await stage.state()

    return stage, asyncio.run(scenario())


async def settled(stage: Stage) -> None:
    """All roles have worked; who waits for the foreign agent, waits."""
    with suppress(Again):
        await stage.run()


@pytest.mark.parametrize("answers", [(CONTRACT,), (miscopied(), CONTRACT)])
def test_a_foreign_agents_turn_is_judged_again_from_what_it_sent(answers: tuple[dict[str, Any], ...]) -> None:
    stage, state = foreign_turn(*answers)
    assert state.turns[0].answer is not None
    played = again(state, stage)
    assert [len(r.attempts) for r in played.turns[0].rounds] == [len(r.attempts) for r in state.turns[0].rounds]
    assert not compared(state.turns[0], played.turns[0])["changed"]


def test_a_record_that_was_not_shown_is_found_in_the_full_output_again() -> None:
    stage, state = recorded(example())

    async def scenario() -> SessionState:
        old = state.invocations[0]
        assert old.retrieval_details is not None
        shown = old.retrieval_details.evidence_refs or ()
        blob = await stage.log.put_blob(pack([(ref.raw_path, ref.text) for ref in shown]))
        hidden = old.retrieval_details.model_copy(update={"evidence_refs": ()})
        held = old.model_copy(update={"retrieval_details": hidden, "output_blob": blob, "output_format": FORMAT})
        drafts = [
            Draft(held if isinstance(d.payload, ToolInvoked) else d.payload, d.actor, d.turn, d.round, d.attempt,
                  d.cause, d.ordinal)
            for d in copies(state.events, SESSION)
        ]  # fmt: skip
        return fold(SESSION, await Stage().log.append(SESSION, drafts, Head(), stage.clock()))

    turn = again(asyncio.run(scenario()), stage).turns[0]
    gate = turn.rounds[0].attempts[0].gate
    assert gate is not None
    assert gate.result.failed_rules == ()


def test_a_turn_that_no_rule_ended_is_left_as_it_is() -> None:
    stage = Stage()

    async def scenario() -> SessionState:
        await send(stage, "question-asked", question=QUESTION, lang="en")
        await send(stage, "tool-invoked", **CALLED)
        await send(stage, "turn-cancelled", who="on-call", why="found it")
        await stage.run()
        await send(stage, "question-asked", question=QUESTION + " Again?", lang="en")
        await send(stage, "answer-drafted", answer=CONTRACT)
        return await stage.run()

    state = asyncio.run(scenario())
    assert [playable(turn) for turn in state.turns] == [False, True]
    played = again(state, stage)
    assert [(e.id, e.data) for e in played.events[:5]] == [(e.id, e.data) for e in state.events[:5]]
    assert not compared(state.turns[1], played.turns[1])["changed"]


def test_a_branch_holds_the_new_result_and_names_its_origin() -> None:
    stage, state = lenient()
    played = again(state, stage)
    drafts = forked(played.events, "e2603-branch", (SESSION, state.head), "rejudge")
    branch = fold("e2603-branch", asyncio.run(stage.log.append("e2603-branch", drafts, Head(), stage.clock())))
    assert verify(branch.events) is None
    assert branch.origin is not None
    assert (branch.origin.origin_session, branch.origin.origin_hash) == (SESSION, state.head.hash)
    verification = branch.turns[0].rounds[0].verification
    assert verification is not None
    assert verification.evaluation.effective_verdict == "REJECT"
    assert not branch.copying


def verdictlog(folder: Path, *arguments: str, code: int = 0) -> str:
    command = [sys.executable, "-m", "handlers.cli.main", *arguments, "--data", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


def test_the_command_tells_changes_by_its_exit_code(tmp_path: Path) -> None:
    session = json.loads(verdictlog(tmp_path, "judge", str(EXAMPLE), "--json"))["session"]
    before = verdictlog(tmp_path, "tail", "--session", session, "--until-idle", "1", "--json")
    assert "1 turns judged again: 0 would change" in verdictlog(tmp_path, "rejudge", "--all")
    out = verdictlog(tmp_path, "rejudge", session, "--max-attempts", "0", "--branch", "--json", code=1)
    told_now = json.loads(out)
    assert (told_now["judged"], told_now["changed"]) == (1, 1)
    branch = told_now["turns"][0]["branch"]
    assert json.loads(verdictlog(tmp_path, "show", branch, "--json"))["session"] == branch
    assert verdictlog(tmp_path, "tail", "--session", session, "--until-idle", "1", "--json") == before
    verdictlog(tmp_path, "verify")
    verdictlog(tmp_path, "rejudge", code=2)
    verdictlog(tmp_path, "rejudge", "e2611-nobody", code=3)
    verdictlog(tmp_path, "rejudge", session, "--prompts", str(tmp_path), code=2)
