"""Streams and consumers on a real server: made where missing, refused where they differ."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from nats.aio.client import Client
from nats.js import JetStreamContext
from nats.js.api import DiscardPolicy, PersistMode, StorageType

from streams import topology
from streams.events import LATEST
from streams.jetstream import connect
from streams.server import NatsServer
from streams.topology import (
    ALL_ROLES,
    BLOBS_NAME,
    DEADLINE,
    ONE_ROLE,
    ROLES,
    STREAM_NAME,
    TRIGGERS,
    Drift,
    Missing,
    check,
    durables,
    ensure,
)

pytestmark = pytest.mark.anyio


@pytest.fixture
async def js(fresh_server: NatsServer) -> AsyncIterator[JetStreamContext]:
    client: Client = await connect(fresh_server.url)
    yield client.jetstream()
    await client.close()


async def test_everything_missing_is_created_once(js: JetStreamContext) -> None:
    names = sorted([STREAM_NAME, BLOBS_NAME, ALL_ROLES.name, DEADLINE.name])
    assert [fault.name for fault in await check(js)] == [STREAM_NAME, BLOBS_NAME, ALL_ROLES.name, DEADLINE.name]
    assert await ensure(js) == names
    assert await check(js) == []
    assert await ensure(js) == []


async def test_shipped_stream_cannot_lose_what_it_holds(js: JetStreamContext) -> None:
    await ensure(js)
    for name in (STREAM_NAME, BLOBS_NAME):
        config = (await js.stream_info(name)).config
        assert (config.deny_delete, config.deny_purge, config.allow_rollup_hdrs) == (True, True, False)
        assert (config.storage, config.discard, config.max_age) == (StorageType.FILE, DiscardPolicy.NEW, 0)
        with pytest.raises(Exception, match="purge"):
            await js.purge_stream(name)


async def test_a_worker_gets_only_the_consumers_of_its_roles(js: JetStreamContext) -> None:
    assert await ensure(js, ["verifier"]) == [STREAM_NAME, BLOBS_NAME, "verdictlog-verifier"]
    assert [fault.name for fault in await check(js, ["verifier", "router"])] == ["verdictlog-router"]


async def test_missing_consumer_is_reported_and_made_again(js: JetStreamContext) -> None:
    await ensure(js)
    await js.delete_consumer(STREAM_NAME, "verdictlog-all")
    [fault] = await check(js)
    assert isinstance(fault, Missing)
    assert fault.name == "verdictlog-all"
    assert await ensure(js) == ["verdictlog-all"]


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"discard": DiscardPolicy.OLD}, "discard"),
        ({"storage": StorageType.MEMORY}, "storage"),
        ({"deny_delete": False}, "deny_delete"),
        ({"deny_purge": False}, "deny_purge"),
        ({"allow_direct": False}, "allow_direct"),
        ({"max_age": 3600}, "max_age"),
        ({"max_msgs": 1000}, "max_msgs"),
        ({"max_msgs_per_subject": 1}, "max_msgs_per_subject"),
        ({"allow_rollup_hdrs": True, "deny_purge": False}, "allow_rollup_hdrs"),
        ({"allow_msg_ttl": True}, "allow_msg_ttl"),
        ({"persist_mode": PersistMode.ASYNC}, "persist_mode"),
        ({"max_msg_size": 4096}, "max_msg_size"),
        ({"subjects": ["vl.>", "other.>"]}, "subjects"),
    ],
)
async def test_stream_that_differs_is_refused_with_the_difference(
    js: JetStreamContext, change: dict[str, Any], field: str
) -> None:
    wanted, _ = topology.streams()
    await js.add_stream(replace(wanted, **change))
    with pytest.raises(Drift) as raised:
        await ensure(js)
    assert raised.value.name == STREAM_NAME
    assert field in raised.value.differences
    assert field in str(raised.value)
    # Nothing was made beside it, and nothing was changed.
    assert {fault.name for fault in await check(js)} >= {STREAM_NAME, BLOBS_NAME}


async def test_limit_in_bytes_and_replicas_are_the_operators_own(js: JetStreamContext) -> None:
    wanted, _ = topology.streams()
    await js.add_stream(replace(wanted, max_bytes=1024 * 1024 * 1024, description="ours"))
    assert STREAM_NAME not in await ensure(js)
    [first, *_] = await check(js, replicas=3)
    assert isinstance(first, Drift)
    assert first.differences == {"num_replicas": (1, 3)}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"max_deliver": 5}, "max_deliver"),
        ({"ack_wait": 30.0}, "ack_wait"),
        ({"max_ack_pending": 1}, "max_ack_pending"),
        ({"filter_subjects": ["vl.*.*.rules-scored"]}, "filter_subjects"),
        ({"headers_only": True}, "headers_only"),
    ],
)
async def test_consumer_that_differs_is_refused_with_the_difference(
    js: JetStreamContext, change: dict[str, Any], field: str
) -> None:
    await ensure(js, [])
    await js.add_consumer(STREAM_NAME, replace(ONE_ROLE["verifier"].config(), **change))
    with pytest.raises(Drift) as raised:
        await ensure(js, ["verifier"])
    assert raised.value.name == "verdictlog-verifier"
    assert list(raised.value.differences) == [field]


async def test_consumer_made_with_defaults_by_somebody_else_is_refused(js: JetStreamContext) -> None:
    """What FastStream makes silently where a durable is missing (notes on its trap): no filter, other limits."""
    await ensure(js, [])
    await js.add_consumer(STREAM_NAME, durable_name="verdictlog-verifier")
    with pytest.raises(Drift) as raised:
        await ensure(js, ["verifier"])
    assert raised.value.differences["filter_subjects"][0] == []


def test_every_trigger_is_an_event_that_exists() -> None:
    assert {kind for kinds in TRIGGERS.values() for kind in kinds} <= set(LATEST)


def test_a_process_takes_each_event_once_whatever_roles_it_runs() -> None:
    assert durables(ROLES) == [ALL_ROLES, DEADLINE]
    assert set(ALL_ROLES.types) == {kind for role in ROLES for kind in TRIGGERS[role]}
    assert [durable.name for durable in durables(["verifier", "deadline"])] == [
        "verdictlog-verifier",
        "verdictlog-deadline",
    ]
