"""What a standing pull counts as asked for, and which statuses mean that it is lost."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from streams.pulls import Pulls

pytestmark = pytest.mark.anyio
BATCH = 4


class Wire:
    """The two things of a client that are used here, recorded."""

    def __init__(self) -> None:
        self.stats = {"reconnects": 0}
        self.sent: list[dict[str, Any]] = []

    async def publish(self, subject: str, payload: bytes, reply: str) -> None:
        self.sent.append({"subject": subject, "reply": reply, **orjson.loads(payload)})


async def begun() -> tuple[Pulls, Wire]:
    wire = Wire()
    pulls = Pulls(wire, "VERDICTLOG", BATCH)  # type: ignore[arg-type]
    pulls.begin("verdictlog-all")
    await pulls.ask("_INBOX.x")
    return pulls, wire


async def test_two_requests_overlap_and_no_more() -> None:
    pulls, wire = await begun()
    await pulls.ask("_INBOX.x")
    assert [request["batch"] for request in wire.sent] == [BATCH, BATCH]
    assert {request["subject"] for request in wire.sent} == {"$JS.API.CONSUMER.MSG.NEXT.VERDICTLOG.verdictlog-all"}


async def test_the_next_is_asked_for_when_one_request_is_used_up() -> None:
    pulls, wire = await begun()
    for _ in range(BATCH - 1):
        pulls.arrived()
    await pulls.ask("_INBOX.x")
    assert len(wire.sent) == 2
    pulls.arrived()
    await pulls.ask("_INBOX.x")
    assert len(wire.sent) == 3


async def test_a_request_that_ended_in_time_gives_back_what_it_did_not_bring() -> None:
    pulls, wire = await begun()
    assert pulls.went_on({"Status": "408", "Nats-Pending-Messages": str(BATCH)})
    await pulls.ask("_INBOX.x")
    assert len(wire.sent) == 3


@pytest.mark.parametrize("status", ["404", "409", "503"])
async def test_a_refusal_is_no_end_in_time(status: str) -> None:
    pulls, _ = await begun()
    assert not pulls.went_on({"Status": status})


async def test_a_heartbeat_changes_nothing() -> None:
    pulls, wire = await begun()
    assert pulls.went_on({"Status": "100"})
    await pulls.ask("_INBOX.x")
    assert len(wire.sent) == 2


async def test_another_connection_means_that_all_requests_are_lost() -> None:
    pulls, wire = await begun()
    assert not pulls.gone_silent()
    wire.stats["reconnects"] = 1
    assert pulls.gone_silent()
    pulls.begin("verdictlog-all")
    await pulls.ask("_INBOX.x")
    assert len(wire.sent) == 4


async def test_the_ends_of_forgotten_requests_do_not_add_up() -> None:
    pulls, wire = await begun()
    pulls.begin("verdictlog-all")
    await pulls.ask("_INBOX.x")
    for _ in range(4):
        assert pulls.went_on({"Status": "408", "Nats-Pending-Messages": str(BATCH)})
    await pulls.ask("_INBOX.x")
    assert len(wire.sent) == 6
