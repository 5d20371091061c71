"""No secret that a tool returns stands in a stored byte or in what a model is sent, and its line can still be quoted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from handlers.agents import messages
from handlers.agents.offline import OfflineAgents
from handlers.agents.protocol import AgentReply, ExecutorBrief, PlanBrief, VerifierBrief
from handlers.evidence.bench import ToolBench
from handlers.evidence.files import tools_for
from handlers.intake import ask
from handlers.redaction import Redactions
from prompts import load
from streams.contract import ToolCall
from streams.events import QuestionAsked, Sources, ToolInvoked
from tests.play import SESSION, Stage

pytestmark = pytest.mark.anyio

PASSWORD, KEY, MAIL = "Vq7-ledger-Xk", "AKIA" + "QYLPMN5HHHFPZAM2", "jan.kowalski@example.com"
LINE = (
    '{"time":"2026-03-17T10:09:12Z","level":"error","msg":"payments-pool: connection refused by ledger-db",'
    f'"url":"postgresql://ledger:{PASSWORD}@ledger-db:5432/ledger","by":"{MAIL}","key":"{KEY}"}}'
)
SECRETS = (PASSWORD, KEY, MAIL)
QUESTION = f"Why is the payments-pool of payment-service refused by ledger-db? I use password={PASSWORD}"


class Listening(OfflineAgents):
    """The offline agents, with everything that a model in their place would have been sent written down."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[str] = []

    async def plan(self, brief: PlanBrief) -> AgentReply:
        self._hear(messages.planner(brief, load("chat-planner-prompt")))
        return await super().plan(brief)

    async def execute(self, brief: ExecutorBrief) -> AgentReply:
        self._hear(messages.executor(brief, load("chat-executor-prompt"), 100_000))
        return await super().execute(brief)

    async def verify(self, brief: VerifierBrief) -> AgentReply:
        self._hear(messages.verifier(brief, load("chat-verifier-prompt")))
        return await super().verify(brief)

    def _hear(self, sent: object) -> None:
        self.heard.append(json.dumps(sent, ensure_ascii=False))


async def test_a_turn_over_logs_with_secrets_stores_none_sends_none_and_still_quotes(tmp_path: Path) -> None:
    path = tmp_path / "payment-service.ndjson"
    path.write_text("\n".join([LINE] * 3), encoding="utf-8")
    agents = Listening()
    stage = Stage(lambda: agents)
    question = QuestionAsked(question=QUESTION, lang="en", sources=Sources(logs=(str(path),)))
    await ask(stage.log, SESSION, question, stage.clock(), Redactions())
    state = await stage.run()

    stored = [event.body for event in state.events]
    stored += [await stage.log.get_blob(i.output_blob) for i in state.invocations if i.output_blob]
    assert not [secret for secret in SECRETS if any(secret.encode() in piece for piece in stored)]
    assert agents.heard
    assert not [secret for secret in SECRETS if any(secret in text for text in agents.heard)]

    logs = [i for i in state.invocations if i.tool_name == "query_logs" and i.status == "success"]
    assert logs[0].redactions == {"url-password": 3, "email": 3, "aws-key": 3}
    answer = state.turns[-1].answer
    assert answer is not None
    assert "[REDACTED:" in answer.citations[0].excerpt
    gate = state.turns[-1].rounds[0].attempts[-1].gate
    assert gate is not None
    assert gate.result.status == "pass"


async def called(bench: ToolBench, stage: Stage, **arguments: object) -> ToolInvoked:
    return await bench.invoke(ToolCall(call_id="q1", name="query_logs", arguments=arguments), await stage.state())


async def test_where_it_is_switched_off_a_line_is_recorded_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LINE, encoding="utf-8")
    stage = Stage()
    tools = tools_for(Sources(logs=(str(tmp_path),)), stage.clock)
    kept = await called(ToolBench(tools, stage.log, None), stage)
    assert kept.redactions is None
    assert kept.retrieval_details is not None
    assert (kept.retrieval_details.evidence_refs or ())[0].text == LINE


async def test_the_tool_gets_what_was_asked_and_the_log_does_not(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LINE, encoding="utf-8")
    stage = Stage()
    bench = ToolBench(tools_for(Sources(logs=(str(tmp_path),)), stage.clock), stage.log, Redactions())
    found = await called(bench, stage, terms=[f"password={PASSWORD}", "refused"])
    assert found.status == "success"
    assert PASSWORD not in found.model_dump_json()
    assert found.output_blob is not None
    assert PASSWORD.encode() not in await stage.log.get_blob(found.output_blob)
    nothing = await called(bench, stage, terms=[f"password={PASSWORD} nowhere"])
    assert nothing.status == "no_data"
    assert PASSWORD not in nothing.model_dump_json()


async def test_a_large_output_is_cleaned_in_a_thread_of_its_own_with_the_same_placeholders(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("\n".join(f'{LINE[:-1]},"n":{n}}}' for n in range(2_000)), encoding="utf-8")
    stage = Stage()
    bench = ToolBench(tools_for(Sources(logs=(str(tmp_path),)), stage.clock), stage.log, Redactions())
    found = await called(bench, stage)
    # An example of the kind of line is one more.
    assert found.redactions == {"url-password": 2001, "email": 2001, "aws-key": 2001}
    assert "[REDACTED:email#2]" not in found.model_dump_json()
    assert found.output_blob is not None
    assert KEY.encode() not in await stage.log.get_blob(found.output_blob)
