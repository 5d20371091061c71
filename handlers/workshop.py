"""What a turn works with, made from its question event alone: agents, tools, look-ups. Any process can go on with it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, TypeVar

import orjson

from handlers import flow
from handlers.agents.protocol import Agents
from handlers.agents.scripted import ScriptedAgents
from handlers.case import recorded_calls
from handlers.evidence.bench import RecordedBench, ToolBench
from handlers.evidence.protocol import Tool
from handlers.react import Bench
from handlers.redaction import Redactions
from streams.events import Blob, QuestionAsked, Sources, ToolInvoked
from streams.log import EventLog
from streams.sealing import NoKey
from streams.session import SessionState

HELD = 64
V = TypeVar("V")
ToolsFor = Callable[[Sources], dict[str, Tool]]
FindOwners = Callable[[frozenset[str], str], Awaitable[frozenset[str]]]


class TurnWorkshop:
    """Makes and keeps (bounded) the agents and tools of the turns in work.

    `kinds` makes the agents of a kind by name; `tools_for` opens the evidence tools of a turn's sources;
    `find_owners` tells which of some invocation ids stand in another session than the one named; without `redact`
    secrets in what tools return are recorded as they are.
    """

    def __init__(
        self,
        log: EventLog,
        kinds: dict[str, Callable[[], Agents]],
        tools_for: ToolsFor,
        find_owners: FindOwners,
        redact: bool = True,
        now: Callable[[], datetime] | None = None,
    ) -> None:
        self._now = now
        self._log = log
        self._redactions = Redactions() if redact else None
        self._kinds = kinds
        self._tools_for = tools_for
        self._find_owners = find_owners
        self._scripts: OrderedDict[str, dict[str, Any]] = OrderedDict()
        self._recorded: OrderedDict[str, dict[str, ToolInvoked]] = OrderedDict()
        self._benches: OrderedDict[str, ToolBench] = OrderedDict()
        self._agents: dict[str, Agents] = {}

    async def agents(self, question: QuestionAsked) -> Agents:
        """The agents that were asked to work; a script keeps what it leaves out for the kind named beside it."""
        kind = self._kind(question.agents)
        if question.script is None:
            return kind
        return ScriptedAgents(await self._script(question.script), kind)

    async def bench(self, question: QuestionAsked) -> Bench:
        live = self._bench(question.sources)
        if question.script is None:
            return live
        recorded = await self._calls(question.script)
        return RecordedBench(recorded, live) if recorded else live

    async def look_up(self, state: SessionState, wanted: flow.LookUp) -> flow.Found:
        """Owners of foreign ids (none where the evidence was recorded: a case depends on its file alone), and
        records of full outputs."""
        turn = state.open_turn
        recorded = turn is not None and turn.question.script is not None
        foreign = frozenset[str]() if recorded or not wanted.ids else await self._find_owners(wanted.ids, state.session)
        calls = {i.invocation_id: i for i in state.invocations}
        resolved: dict[tuple[str, str], str] = {}
        for invocation_id, raw_path in sorted(wanted.records):
            text = await self._record(calls[invocation_id], raw_path, turn.question if turn else None)
            if text is not None:
                resolved[invocation_id, raw_path] = text
        return flow.Found(foreign, resolved)

    async def _record(self, call: ToolInvoked, raw_path: str, question: QuestionAsked | None) -> str | None:
        if call.output_blob is None or question is None:
            return None
        tool = self._bench(question.sources).tool(call.tool_name)
        if tool is None:
            return None
        try:
            return tool.resolve(await self._log.get_blob(call.output_blob), raw_path)
        except NoKey:
            # A fork outlives its origin, whose full outputs were sealed with the origin's own key.
            return None

    def _kind(self, name: str) -> Agents:
        if name not in self._agents:
            self._agents[name] = self._kinds[name]()
        return self._agents[name]

    def _bench(self, sources: Sources) -> ToolBench:
        key = sources.model_dump_json()
        if key not in self._benches:
            _keep(self._benches, key, ToolBench(self._tools_for(sources), self._log, self._redactions, self._now))
        return self._benches[key]

    async def _calls(self, blob: Blob) -> dict[str, ToolInvoked]:
        if blob.sha256 not in self._recorded:
            _keep(self._recorded, blob.sha256, _all_recorded(await self._script(blob)))
        return self._recorded[blob.sha256]

    async def _script(self, blob: Blob) -> dict[str, Any]:
        if blob.sha256 not in self._scripts:
            _keep(self._scripts, blob.sha256, orjson.loads(await self._log.get_blob(blob)))
        return self._scripts[blob.sha256]


def _keep(cache: OrderedDict[str, V], key: str, value: V) -> None:
    cache[key] = value
    while len(cache) > HELD:
        cache.popitem(last=False)


def _all_recorded(script: dict[str, Any]) -> dict[str, ToolInvoked]:
    out: dict[str, ToolInvoked] = {}
    for number in range(1, len(script["rounds"]) + 1):
        out.update(recorded_calls(script, number))
    return out
