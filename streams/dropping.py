"""A stream made anew without some of its messages, every other one at its place: positions, times, headers and all.

The shipped streams refuse every deletion and purge, and no update can allow them. So nothing is deleted in the log:
the server copies it (a mirror keeps positions), the copy is purged and compared with what was to be kept, and only
then is the stream deleted and copied back. This needs the right to create, update, purge and delete streams, which
no role has. Each step can be repeated: who was interrupted calls `resume`, or `remove` again.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

import orjson
from nats.aio.client import Client

from streams import subjects as grammar
from streams.directget import Stored
from streams.envelope import HASH_HEADER
from streams.epochs import dropped_of
from streams.follower import Follower, api
from streams.inbox import Inbox, NoReply
from streams.log import LogUnavailable
from streams.topology import BLOBS_NAME, BLOBS_SUBJECTS, COPY_SUFFIX, STREAM_NAME

API_TIMEOUT_S = 60.0  # deleting or purging a large stream takes its time
PATIENCE_S = 10.0
POLL_S = 0.05
NOT_FOUND = 10059
SUBJECTS = {STREAM_NAME: [grammar.ALL], BLOBS_NAME: [BLOBS_SUBJECTS]}
_PLAN = "verdictlog-plan"  # in the copy's metadata: what the stream is to be like, and what is to be in it


class NotAsKept(Exception):
    """What would remain is not what was to be kept: the stream is left, or put back, as it was."""

    def __init__(self, stream: str, why: str) -> None:
        super().__init__(f"{stream}: {why}")
        self.stream = stream
        self.why = why


@dataclass(frozen=True, slots=True)
class Contents:
    """How many messages, where the first and the last stand, one hash over all: place, subject, bytes, `vl-hash`."""

    messages: int
    first_seq: int
    last_seq: int
    digest: str


class Tally:
    """Counts messages into `Contents`, in their order."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()
        self._messages = 0
        self._first = self._last = 0

    def add(self, message: Stored) -> None:
        self._messages += 1
        self._first, self._last = self._first or message.seq, message.seq
        told = f"{message.seq} {message.subject} {message.headers.get(HASH_HEADER, '')} {len(message.body)}\n"
        self._digest.update(told.encode())
        self._digest.update(message.body)

    @property
    def contents(self) -> Contents:
        return Contents(self._messages, self._first, self._last, self._digest.hexdigest())


class Streams:
    """Streams as the server's own API has them: configurations are handed back whole, also what we do not know."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._inbox = Inbox(client)

    async def info(self, name: str) -> dict[str, Any] | None:
        """`{"config", "state", ...}`; None if there is no such stream."""
        reply = await self._inbox.one(f"$JS.API.STREAM.INFO.{name}", b"", None, PATIENCE_S)
        found: dict[str, Any] = orjson.loads(reply.data)
        if found.get("error", {}).get("err_code") == NOT_FOUND:
            return None
        if "error" in found:
            raise LogUnavailable(f"{name}: {found['error'].get('description', found['error'])}")
        return found

    async def walk(self, name: str) -> AsyncGenerator[list[Stored], None]:
        """Every message that `name` holds now, in order, in lists."""
        info = await self.info(name)
        last = int(info["state"]["last_seq"]) if info is not None and info["state"]["messages"] else 0
        if last:
            async with aclosing(Follower(self._client, self._inbox, name, 0, PATIENCE_S).batches()) as batches:
                async for batch in batches:
                    yield batch
                    if batch[-1].seq >= last:
                        return

    async def contents(self, name: str) -> Contents:
        """Every message of `name`, read once."""
        return (await self.parted(name, lambda _: False))[0]

    async def parted(self, name: str, goes: Callable[[str], bool]) -> tuple[Contents, Contents]:
        """What stays of `name`, and what goes by its subject."""
        staying, going = Tally(), Tally()
        async with aclosing(self.walk(name)) as batches:
            async for batch in batches:
                for message in batch:
                    (going if goes(message.subject) else staying).add(message)
        return staying.contents, going.contents

    async def metadata(self, name: str) -> dict[str, str]:
        """The stream's own notes, and the server's."""
        found = await self.info(name)
        return dict((found or {}).get("config", {}).get("metadata") or {})

    async def create(self, config: dict[str, Any]) -> None:
        await self._ask("CREATE", str(config["name"]), config)

    async def update(self, config: dict[str, Any]) -> None:
        await self._ask("UPDATE", str(config["name"]), config)

    async def delete(self, name: str) -> None:
        await self._ask("DELETE", name)

    async def purge(self, name: str, subjects: str) -> None:
        await self._ask("PURGE", name, {"filter": subjects})

    async def level(self, name: str, with_: str) -> None:
        """Wait until the mirror `name` holds what `with_` holds. LogUnavailable if it stops growing before that."""
        last, still = -1, 0
        while True:
            ours, theirs = await self.info(name), await self.info(with_)
            assert ours is not None
            assert theirs is not None
            if all(ours["state"][key] == theirs["state"][key] for key in ("messages", "last_seq")):
                return
            still = still + 1 if ours["state"]["messages"] == last else 0
            last = ours["state"]["messages"]
            if still * POLL_S > PATIENCE_S:
                raise LogUnavailable(f"{name} stopped at {last} messages of {theirs['state']['messages']}")
            await asyncio.sleep(POLL_S)

    async def _ask(self, verb: str, name: str, request: dict[str, Any] | None = None) -> None:
        payload = b"" if request is None else orjson.dumps(request)
        await api(self._inbox, f"$JS.API.STREAM.{verb}.{name}", payload, API_TIMEOUT_S)


async def remove(client: Client, name: str, subjects: Iterable[str], kept: Contents, metadata: dict[str, str]) -> None:
    """Make the stream `name` anew without the messages of `subjects` (filters); `metadata` is its new one.

    `kept` is what the caller has seen that must remain; NotAsKept if it is not, or if somebody wrote meanwhile.
    """
    streams = Streams(client)
    await resume(client, name)
    live = await _known(streams, name)
    config: dict[str, Any] = live["config"]
    copy = name + COPY_SUFFIX
    await streams.update({**config, "subjects": _closed(name)})  # nothing can be stored from here on
    try:
        ends = (await _known(streams, name))["state"]["last_seq"]
        if ends != kept.last_seq:
            raise NotAsKept(name, f"it ends at position {ends}, {kept.last_seq} was expected: somebody is writing")
        plan = {"config": {**config, "metadata": metadata}, "kept": asdict(kept)}
        mirrored = {
            **{key: value for key, value in config.items() if key != "subjects"},
            "name": copy,
            "mirror": {"name": name},
            "deny_delete": False,
            "deny_purge": False,
            "metadata": {**metadata, _PLAN: orjson.dumps(plan).decode()},
        }
        await streams.create(mirrored)
        await streams.level(copy, name)
        await streams.update({key: value for key, value in mirrored.items() if key != "mirror"})
        for filter_ in subjects:
            await streams.purge(copy, filter_)
        if await streams.contents(copy) != kept:
            raise NotAsKept(copy, "after the purge it does not hold what was to be kept")
    except BaseException:
        await _put_back(streams, name, config)
        raise
    await streams.delete(name)
    await _copied_back(streams, name, plan)


async def resume(client: Client, name: str) -> bool:
    """Bring an interrupted `remove` to its end, or undo it where the stream still stands; whether there was one."""
    streams = Streams(client)
    live, copy = await streams.info(name), await streams.info(name + COPY_SUFFIX)
    closed = live is not None and live["config"].get("subjects") == _closed(name)
    if copy is None:
        if live is not None and closed:
            await streams.update({**live["config"], "subjects": SUBJECTS[name]})
        return closed
    plan: dict[str, Any] = orjson.loads(copy["config"]["metadata"][_PLAN])
    wanted = dropped_of(plan["config"]["metadata"])
    if live is None or "mirror" in live["config"]:
        await _copied_back(streams, name, plan)
    elif dropped_of(live["config"].get("metadata")) != wanted:
        await _put_back(streams, name, {**live["config"], "subjects": SUBJECTS[name]})
    elif closed:
        await _copied_back(streams, name, plan)
    else:
        await streams.delete(name + COPY_SUFFIX)
    return True


def _closed(name: str) -> list[str]:
    return [f"closed-{name.lower()}"]


async def _copied_back(streams: Streams, name: str, plan: dict[str, Any]) -> None:
    config: dict[str, Any] = plan["config"]
    copy = name + COPY_SUFFIX
    if await streams.info(name) is None:
        mirrored = {key: value for key, value in config.items() if key != "subjects"}
        await streams.create({**mirrored, "mirror": {"name": copy}})
    await streams.level(name, copy)
    await streams.update({**config, "subjects": _closed(name)})
    if await streams.contents(name) != Contents(**plan["kept"]):
        raise NotAsKept(name, f"it does not hold what {copy} holds; that one is whole: look before you go on")
    await streams.update(config)
    await streams.delete(copy)


async def _put_back(streams: Streams, name: str, config: dict[str, Any]) -> None:
    await streams.update(config)
    if await streams.info(name + COPY_SUFFIX) is not None:
        await streams.delete(name + COPY_SUFFIX)


async def _known(streams: Streams, name: str) -> dict[str, Any]:
    try:
        found = await streams.info(name)
    except NoReply as error:
        raise LogUnavailable(str(error)) from error
    if found is None:
        raise LogUnavailable(f"there is no stream {name}")
    return found
