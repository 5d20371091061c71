"""A program for tests: runs `verdictlog` again and again, each time killed (SIGKILL) after the k-th event it stored.

Reads jobs from standard input, a JSON array of `{"kill_after": K, "args": [...], "out": PATH}`, runs each in a child
forked after the imports (so that a run costs little), `at_once` of them at a time, and prints their exit codes as a
JSON array in the same order. A child that was killed has -9.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from typing import Any

import handlers.agents.offline
import handlers.app
import handlers.cli.audit
import handlers.cli.judge
import handlers.cli.main
import handlers.cli.runtime
import handlers.cli.turn
import handlers.intake
import handlers.workshop
from streams.jetstream import JetStreamLog


def child(job: dict[str, Any]) -> None:
    out = os.open(job["out"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(out, 1)
    os.dup2(os.open(job["out"] + ".err", os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
    publish, stored = JetStreamLog._publish, 0

    async def counted(self: JetStreamLog, *args: Any) -> int:
        nonlocal stored
        seq = await publish(self, *args)
        stored += 1
        if stored == job["kill_after"]:
            os.kill(os.getpid(), signal.SIGKILL)
        return seq

    JetStreamLog._publish = counted  # type: ignore[method-assign]
    sys.argv = ["verdictlog", *job["args"]]
    handlers.cli.main.main()


def main() -> None:
    at_once = int(sys.argv[1])
    jobs = json.load(sys.stdin)
    codes: list[int | None] = [None] * len(jobs)
    running: dict[int, int] = {}
    for k, job in enumerate(jobs):
        if len(running) == at_once:
            reap(running, codes)
        pid = os.fork()
        if pid == 0:
            child(job)
            os._exit(99)
        running[pid] = k
    while running:
        reap(running, codes)
    print(json.dumps(codes))


def reap(running: dict[int, int], codes: list[int | None]) -> None:
    pid, status = os.wait()
    codes[running.pop(pid)] = os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main()
