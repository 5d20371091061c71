"""A request's patience: with a server that is silent, and with a process that is busy itself."""

from __future__ import annotations

import asyncio
import time

import pytest

from streams.inbox import LATE_S, LATE_TIMES, NoReply, _Timer


def busy(seconds: float) -> None:
    """Works without looking at what arrives."""
    time.sleep(seconds)


def test_a_reply_that_lies_unread_while_the_process_is_busy_is_still_read() -> None:
    async def ask() -> str:
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[str] = loop.create_future()
        timer = _Timer(reply, "subject", 0.05)
        busy(0.05 + LATE_S * 1.5)
        # The timer is due by now, and the reply is read one step later.
        loop.call_soon(loop.call_soon, loop.call_soon, reply.set_result, "reply")
        try:
            return await reply
        finally:
            timer.cancel()

    assert asyncio.run(ask()) == "reply"


def test_a_silent_server_is_told_also_by_a_process_that_is_always_busy() -> None:
    async def ask(busy_s: float) -> float:
        loop = asyncio.get_running_loop()
        reply: asyncio.Future[str] = loop.create_future()
        began = loop.time()
        timer = _Timer(reply, "subject", 0.01)
        while not reply.done():
            if busy_s:
                busy(busy_s)
            await asyncio.sleep(0.001)
        timer.cancel()
        with pytest.raises(NoReply, match="no reply within"):
            reply.result()
        return loop.time() - began

    assert asyncio.run(ask(0)) >= 0.01
    assert asyncio.run(ask(LATE_S + 0.05)) < (LATE_TIMES + 3) * (LATE_S + 2.0)
