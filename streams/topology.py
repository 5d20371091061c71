"""Streams and consumers: what must exist on the server, made where it is missing, refused where it differs.

Nothing else in the project creates a stream or a consumer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from nats.errors import ConnectionClosedError, NoRespondersError
from nats.errors import TimeoutError as NatsTimeoutError
from nats.js import JetStreamContext
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DeliverPolicy,
    DiscardPolicy,
    PersistMode,
    ReplayPolicy,
    RetentionPolicy,
    StorageType,
    StoreCompression,
    StreamConfig,
)
from nats.js.errors import NotFoundError, ServiceUnavailableError

from streams import subjects
from streams.epochs import dropped_of, settled
from streams.log import LogUnavailable

STREAM_NAME = "VERDICTLOG"
BLOBS_NAME = "VERDICTLOG_BLOBS"
BLOBS_SUBJECTS = "blob.>"
COPY_SUFFIX = "_KEPT"  # what is left of a stream, while an epoch is being dropped from it
ACK_WAIT_S = 4.0  # what a crashed worker had in hand comes again after this; live ones report every third of it

TRIGGERS: dict[str, tuple[str, ...]] = {
    "planner": ("question-asked", "round-routed"),
    "executor": ("plan-made", "answer-evaluated"),
    "gatekeeper": ("answer-drafted",),
    "evaluator": ("gate-judged",),
    # plan-made: a second round that borrows the first one's judgement (ruling 21)
    "verifier": ("rules-scored", "answer-evaluated", "plan-made"),
    # rules-scored, answer-evaluated: policy `fallback` ends the turn when the repair loop has ended (REP-10)
    "router": ("facts-verified", "rules-scored", "answer-evaluated", "turn-failed", "turn-cancelled"),
    "deadline": ("question-asked",),
}
ROLES: frozenset[str] = frozenset(TRIGGERS)


class TopologyFault(Exception):
    """A stream or consumer that is not as it must be."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


class Missing(TopologyFault):
    """A stream or consumer that is not there."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"{name} does not exist")


class Drift(TopologyFault):
    """A stream or consumer whose configuration differs in what matters: field -> (found, wanted)."""

    def __init__(self, name: str, differences: dict[str, tuple[object, object]]) -> None:
        told = ", ".join(f"{key} is {found!r}, must be {wanted!r}" for key, (found, wanted) in differences.items())
        super().__init__(name, f"{name} differs: {told}")
        self.differences = differences


class Interrupted(TopologyFault):
    """A stream that was being made anew without an epoch, and is not yet: its copy holds what is to be in it."""

    def __init__(self, name: str) -> None:
        super().__init__(
            name, f"{name}: an epoch was being dropped; `verdictlog admin drop` again brings it to its end"
        )


@dataclass(frozen=True, slots=True)
class Durable:
    """A pull consumer on the log: which roles it feeds, and with which event types."""

    name: str
    roles: tuple[str, ...]
    types: tuple[str, ...]
    max_ack_pending: int = 4096

    def config(self, after: int = 0) -> ConsumerConfig:
        """`after`: nothing up to this position is left to do (`epochs.settled`)."""
        return ConsumerConfig(
            name=self.name,
            durable_name=self.name,
            description=f"feeds {', '.join(self.roles)}",
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE if after else DeliverPolicy.ALL,
            opt_start_seq=after + 1 if after else None,
            replay_policy=ReplayPolicy.INSTANT,
            ack_policy=AckPolicy.EXPLICIT,
            ack_wait=ACK_WAIT_S,
            # Reaching a limit would drop the event silently; we count deliveries ourselves and park.
            max_deliver=-1,
            max_ack_pending=self.max_ack_pending,
            filter_subjects=[subjects.type_filter(kind) for kind in self.types],
        )


# The deadline holds every open turn's question unacknowledged until the turn has ended.
DEADLINE = Durable("verdictlog-deadline", ("deadline",), TRIGGERS["deadline"], 65536)
_WORKING = tuple(sorted(ROLES - {"deadline"}))
# One process that runs every role takes each event once; a durable for each role would deliver some three times.
ALL_ROLES = Durable("verdictlog-all", _WORKING, tuple(sorted({kind for role in _WORKING for kind in TRIGGERS[role]})))
ONE_ROLE: dict[str, Durable] = {role: Durable(f"verdictlog-{role}", (role,), TRIGGERS[role]) for role in _WORKING}


def stream_of(session: str) -> str:
    """The stream that holds a session. One for all epochs: an old epoch is taken out of it whole (decision 005)."""
    subjects.session_filter(session)
    return STREAM_NAME


def streams(replicas: int = 1) -> tuple[StreamConfig, StreamConfig]:
    """The wanted configurations of the log and of its blobs."""
    return (
        _stream(STREAM_NAME, subjects.ALL, "Verdictlog: events", replicas),
        _stream(BLOBS_NAME, BLOBS_SUBJECTS, "Verdictlog: texts too large for an event", replicas),
    )


def _stream(name: str, subject: str, description: str, replicas: int) -> StreamConfig:
    return StreamConfig(
        name=name,
        description=description,
        subjects=[subject],
        retention=RetentionPolicy.LIMITS,
        storage=StorageType.FILE,
        discard=DiscardPolicy.NEW,
        max_msgs=-1,
        max_msgs_per_subject=-1,
        max_bytes=-1,
        max_age=0,
        max_msg_size=1024 * 1024,
        num_replicas=replicas,
        deny_delete=True,
        deny_purge=True,
        allow_rollup_hdrs=False,
        allow_direct=True,
        compression=StoreCompression.S2,
    )


def durables(roles: Iterable[str]) -> list[Durable]:
    """The consumers of a process that runs `roles`, in a stable order; KeyError for a role that does not exist."""
    wanted = set(roles)
    last = [DEADLINE] if "deadline" in wanted else []
    working = sorted(wanted - {"deadline"})
    if tuple(working) == _WORKING:
        return [ALL_ROLES, *last]
    return [*(ONE_ROLE[role] for role in working), *last]


async def ensure(js: JetStreamContext, roles: Iterable[str] = ROLES, replicas: int | None = None) -> list[str]:
    """Create the streams, and the consumers of `roles`, where they are missing; return the names created.

    Raises Drift or Interrupted before anything is created if something exists and differs in what matters. `replicas` counts
    for what is created (None: 1), and is compared only where it is given.
    """
    try:
        return await _ensure(js, roles, replicas)
    except (NatsTimeoutError, NoRespondersError, ConnectionClosedError, ServiceUnavailableError) as error:
        raise LogUnavailable(f"streams and consumers cannot be looked at: {error}: is JetStream on?") from error


async def _ensure(js: JetStreamContext, roles: Iterable[str], replicas: int | None) -> list[str]:
    wanted = durables(roles)
    faults = await check(js, roles, replicas)
    for fault in faults:
        if not isinstance(fault, Missing):
            raise fault
    missing = {fault.name for fault in faults}
    for stream in streams(replicas or 1):
        if stream.name in missing:
            await js.add_stream(stream)
    after = await _settled(js) if wanted else 0
    for durable in wanted:
        if durable.name in missing:
            await js.add_consumer(STREAM_NAME, durable.config(after))
    return sorted(missing)


async def check(
    js: JetStreamContext, roles: Iterable[str] = ROLES, replicas: int | None = None
) -> list[Missing | Drift | Interrupted]:
    """What is missing or differs, without touching anything."""
    faults: list[Missing | Drift | Interrupted] = []
    for stream in streams(replicas or 1):
        name = str(stream.name)
        try:
            info = await js.stream_info(name)
        except NotFoundError:
            faults.append(Interrupted(name) if await _exists(js, name + COPY_SUFFIX) else Missing(name))
            continue
        differences = _stream_differences(info.config, stream)
        if replicas is not None and info.config.num_replicas != replicas:
            differences["num_replicas"] = (info.config.num_replicas, replicas)
        if differences:
            copied = await _exists(js, name + COPY_SUFFIX)
            faults.append(Interrupted(name) if copied else Drift(name, differences))
    return [*faults, *await check_consumers(js, durables(roles))]


async def _exists(js: JetStreamContext, name: str) -> bool:
    try:
        await js.stream_info(name)
    except NotFoundError:
        return False
    return True


async def _settled(js: JetStreamContext) -> int:
    try:
        return settled(dropped_of((await js.stream_info(STREAM_NAME)).config.metadata))
    except NotFoundError:
        return 0


async def check_consumers(js: JetStreamContext, wanted: Iterable[Durable]) -> list[Missing | Drift]:
    """Which of the wanted consumers are missing or differ."""
    chosen = list(wanted)
    after = await _settled(js) if chosen else 0
    faults = [await _check_consumer(js, durable, after) for durable in chosen]
    return [fault for fault in faults if fault is not None]


async def _check_consumer(js: JetStreamContext, durable: Durable, after: int) -> Missing | Drift | None:
    try:
        found = (await js.consumer_info(STREAM_NAME, durable.name)).config
    except NotFoundError:
        return Missing(durable.name)
    wanted = durable.config(after)
    filters = found.filter_subjects or ([found.filter_subject] if found.filter_subject else [])
    differences = _differences(
        found,
        wanted,
        ("ack_policy", "ack_wait", "max_deliver", "max_ack_pending", "deliver_policy", "opt_start_seq"),
    )
    if sorted(filters) != sorted(wanted.filter_subjects or []):
        differences["filter_subjects"] = (sorted(filters), sorted(wanted.filter_subjects or []))
    for field in ("deliver_subject", "backoff", "inactive_threshold", "mem_storage", "headers_only", "pause_until"):
        if getattr(found, field):
            differences[field] = (getattr(found, field), None)
    return Drift(durable.name, differences) if differences else None


_STREAM_FIELDS = (
    "subjects",
    "retention",
    "storage",
    "discard",
    "max_msgs",
    "max_msgs_per_subject",
    "max_age",
    "deny_delete",
    "deny_purge",
    "allow_direct",
)
# Each of these is a way to write, rewrite or drop what is in the log.
_STREAM_OFF = (
    "allow_rollup_hdrs",
    "allow_msg_ttl",
    "allow_msg_schedules",
    "allow_msg_counter",
    "no_ack",
    "sealed",
    "mirror",
    "sources",
    "subject_transform",
)


def _stream_differences(found: StreamConfig, wanted: StreamConfig) -> dict[str, tuple[object, object]]:
    differences = _differences(found, wanted, _STREAM_FIELDS)
    for field in _STREAM_OFF:
        if getattr(found, field):
            differences[field] = (getattr(found, field), None)
    if found.persist_mode == PersistMode.ASYNC:
        differences["persist_mode"] = ("async", "default")
    # -1 is no limit; a smaller limit than an event's would refuse events (discard=new loses nothing else).
    if found.max_msg_size is not None and 0 < found.max_msg_size < 512 * 1024:
        differences["max_msg_size"] = (found.max_msg_size, wanted.max_msg_size)
    return differences


def _differences(found: Any, wanted: Any, fields: Sequence[str]) -> dict[str, tuple[object, object]]:
    pairs = {field: (getattr(found, field), getattr(wanted, field)) for field in fields}
    return {field: (_plain(a), _plain(b)) for field, (a, b) in pairs.items() if _plain(a) != _plain(b)}


def _plain(value: object) -> object:
    return getattr(value, "value", value) or None
