"""The intake's door: core NATS requests on `vl-in.<session>.<type>`, each answered with one JSON object.

`{"n": 3, "id": "..."}` for an event that stands in the log, `{"error": {"where": "...", "why": "..."}}` for a request
that became none. `await` replies when the turn is answered or wants something. One of many receptions takes a request.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from datetime import datetime
from typing import Any
from weakref import WeakValueDictionary

import orjson
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.aio.subscription import Subscription

from handlers.case import BadCase, read_json
from handlers.intake import Defaults, accept
from handlers.redaction import Redactions
from handlers.requests import AwaitRequest, Refused, read_request
from handlers.standing import standing
from streams.identity import BadSessionId, check_session
from streams.log import EpochDropped, EventLog, EventTooLarge, LogUnavailable
from streams.sealing import NoKey
from streams.session import fold
from streams.subjects import INTAKE_PREFIX

LOG = logging.getLogger("verdictlog.intake")
QUEUE = "verdictlog-intake"
SUBJECT = f"{INTAKE_PREFIX}.*.*"
ID_HEADER = "Nats-Msg-Id"
LOOK_EVERY_S = 0.2
AT_ONCE = 256


class Reception:
    """Answers requests from `start` to `stop`. Requests of one session are taken in the order of their arrival."""

    def __init__(
        self,
        client: Client,
        log: EventLog,
        now: Callable[[], datetime],
        redactions: Redactions | None,
        defaults: Defaults,
    ) -> None:
        self._client = client
        self._log = log
        self._now = now
        self._redactions = redactions
        self._defaults = defaults
        self._subscription: Subscription | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._closing = asyncio.Event()

    async def start(self) -> None:
        self._subscription = await self._client.subscribe(SUBJECT, queue=QUEUE, cb=self._take)
        await self._client.flush()

    async def stop(self, within_s: float = 5.0) -> None:
        """Take no more, and let what is in hand end; who awaits an answer is told how it stands, and may ask again."""
        self._closing.set()
        if self._subscription is not None:
            with contextlib.suppress(Exception):
                await self._subscription.unsubscribe()
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=within_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _take(self, msg: Msg) -> None:
        task = asyncio.create_task(self._answer(msg))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _answer(self, msg: Msg) -> None:
        try:
            said = await self._said(msg)
        except Refused as refused:
            said = _error(refused.where, refused.why)
        except (BadSessionId, EpochDropped, NoKey, BadCase, EventTooLarge) as error:
            said = _error("session" if isinstance(error, BadSessionId | EpochDropped | NoKey) else "body", str(error))
        except LogUnavailable as error:
            said = _error("log", f"not stored, or not known to be; send it again: {error}")
        except Exception as error:
            LOG.exception("%s", msg.subject)
            said = _error("server", f"{type(error).__name__}: the request became no event; its log says why")
        if msg.reply:
            with contextlib.suppress(Exception):
                await self._client.publish(msg.reply, orjson.dumps(said))

    async def _said(self, msg: Msg) -> dict[str, Any]:
        _, session, kind = msg.subject.split(".")
        check_session(session)
        raw = read_json(msg.data or b"{}")
        request = read_request(kind, raw)
        if isinstance(request, AwaitRequest):
            return await self._wait(session, request)
        header = (msg.headers or {}).get(ID_HEADER)
        if header and request.id is None:
            request = read_request(kind, {**raw, "id": header})
        lock = self._turns.setdefault(session, asyncio.Lock())
        async with lock, self._room:
            event = await accept(self._log, session, request, self._now(), self._redactions, self._defaults)
        return {"n": event.n, "id": event.id, "turn": event.turn, "round": event.round, "attempt": event.attempt}

    async def _wait(self, session: str, request: AwaitRequest) -> dict[str, Any]:
        ends = asyncio.get_running_loop().time() + request.timeout_s
        over = {"answered"} if request.answer_only else {"answered", "repair", "extra_round"}
        while True:
            state = fold(session, await self._log.read(session))
            if not state.turns:
                raise Refused("session", f"{session} has no question: request question-asked first")
            said = standing(state, self._now())
            left_s = ends - asyncio.get_running_loop().time()
            if said["state"] in over or left_s <= 0 or self._closing.is_set():
                return said
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), min(LOOK_EVERY_S, left_s))


def _error(where: str, why: str) -> dict[str, Any]:
    return {"error": {"where": where, "why": " ".join(why.split())[:500]}}
