"""Direct reads of a stream: the last message of each matching subject, in order of their positions."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson
from nats.aio.msg import Msg

from streams import subjects
from streams.inbox import Inbox, NoReply
from streams.log import LogUnavailable

PAGE = 1024  # the server's own bound for one answer
PAGE_BYTES = 8 * 1024 * 1024  # far below what the server would hold for a slow client (64 MiB)


@dataclass(frozen=True, slots=True)
class Stored:
    """A message as the stream holds it."""

    seq: int
    subject: str
    body: bytes = field(repr=False)
    headers: dict[str, str] = field(default_factory=dict)


class DirectGet:
    """Reads of `stream`; NoReply if the server does not answer within `timeout_s`.

    A direct read may be answered by a replica that lags behind: who needs a certain message must look for it.
    """

    def __init__(self, inbox: Inbox, stream: str, timeout_s: float) -> None:
        self._inbox = inbox
        self._subject = f"$JS.API.DIRECT.GET.{stream}"
        self._timeout_s = timeout_s

    async def latest(self, subjects: str, after: int = 0) -> list[Stored]:
        """The last message of every subject that matches, of those behind position `after`; [] if there is none.

        More than PAGE subjects are refused by the server (413). Then every message that matches is read in
        order instead, which takes longer and is the same where each subject has one message.
        """
        found: list[Stored] = []
        walk, start = "multi_last", after + 1
        while True:
            request: dict[str, object] = {"batch": PAGE, "max_bytes": PAGE_BYTES, "seq": start}
            request[walk] = [subjects] if walk == "multi_last" else subjects
            answer = await self._inbox.many(self._subject, orjson.dumps(request), self._timeout_s)
            found += map(_stored, answer.messages)
            if answer.status == "413" and walk == "multi_last":
                walk = "next_by_subj"
                continue
            if answer.status == "404":
                return found
            if answer.status != "204":
                raise NoReply(self._subject, f"{answer.status} {answer.headers.get('Description', '')}".strip())
            if not answer.messages or answer.headers.get("Nats-Num-Pending", "0") == "0":
                return found
            start = found[-1].seq + 1


async def sessions_with(inbox: Inbox, stream: str, kind: str, timeout_s: float = 5.0) -> list[str]:
    """The sessions in which an event of type `kind` stands, by their first one; LogUnavailable without an answer."""
    try:
        found = await DirectGet(inbox, stream, timeout_s).latest(subjects.type_filter(kind))
    except NoReply as error:
        raise LogUnavailable(str(error)) from error
    return list(dict.fromkeys(subjects.parse(one.subject)[0] for one in found))


def _stored(msg: Msg) -> Stored:
    headers = msg.headers or {}
    return Stored(int(headers["Nats-Sequence"]), headers["Nats-Subject"], msg.data, headers)
