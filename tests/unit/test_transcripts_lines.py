"""`judge` on JSON Lines: a line that cannot be judged is told in its place."""

from __future__ import annotations

import asyncio
from typing import Any

from handlers.cli.casefile import Line
from handlers.cli.judge import kept
from streams.log import LogUnavailable


def test_a_line_that_fails_is_told_in_its_place() -> None:
    async def fails() -> tuple[Line, dict[str, Any] | None, int]:
        raise LogUnavailable("no reply\nwithin 10 s")

    async def works() -> tuple[Line, dict[str, Any] | None, int]:
        return Line(3), {"turn": 1}, 0

    line, report, code = asyncio.run(kept(Line(2), fails()))
    assert line.error is not None
    assert (line.number, line.error.where, line.error.why) == (2, "line 2", "not judged: no reply within 10 s")
    assert (report, code) == (None, 2)
    assert asyncio.run(kept(Line(3), works())) == (Line(3), {"turn": 1}, 0)
