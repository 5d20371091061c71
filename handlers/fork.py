"""A fork: a new session that names its origin, then tells the origin's first events again under ids of its own. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from streams.envelope import Draft, Event, Head
from streams.events import AnswerDrafted, FactsVerified, HandlerParked, ParkedResolved, Payload, SessionForked
from streams.identity import event_id

ROLE: Final = "operator"
ORDINALS = 1024  # how far an event's ordinal is looked for: the envelope does not say it, its id does


def forked(events: Sequence[Event], session: str, origin: tuple[str, Head], who: str, why: str = "") -> list[Draft]:
    """The drafts of a new `session`: `session-forked`, then `events` copied.

    `origin` is the session it comes from and the event up to which it counts. What was itself a fork's first event is
    not copied: a session has one origin.
    """
    told = [part for event in events for part in event.told if not isinstance(part.data, SessionForked)]
    name, head = origin
    first = SessionForked(
        who=who, why=why, origin_session=name, origin_n=head.n, origin_hash=head.hash, copied=len(told)
    )
    return [Draft(first, ROLE), *copies(told, session)]


def copies(events: Iterable[Event], session: str) -> list[Draft]:
    """`events` as drafts for `session`: payload, actor, turn, round and attempt kept; ids, and what names them, anew.

    An id comes out as a role would make it in that session, so that a role finds there what it would decide.
    """
    ids: dict[str, str] = {}
    drafts = []
    for event in (part for stored in events for part in stored.told):
        cause = ids.get(event.cause, event.cause)
        payload = _renamed(event.data, ids)
        draft = Draft(payload, event.actor, event.turn, event.round, event.attempt, cause, _ordinal(event))
        ids[event.id] = draft.id(session)
        drafts.append(draft)
    return drafts


def _ordinal(event: Event) -> int:
    at = (event.session, event.turn, event.round, event.attempt, event.actor, event.type, event.cause)
    # An id made by another rule (an older one's) gets a number that nothing else of its session has.
    return next((k for k in range(ORDINALS) if event_id(*at, k) == event.id), ORDINALS + event.n)


def _renamed(data: Payload, ids: dict[str, str]) -> Payload:
    if isinstance(data, AnswerDrafted | FactsVerified) and data.reply_event in ids:
        return data.model_copy(update={"reply_event": ids[data.reply_event]})
    if isinstance(data, HandlerParked) and data.event_id in ids:
        return data.model_copy(update={"event_id": ids[data.event_id]})
    if isinstance(data, ParkedResolved) and data.parked_event in ids:
        return data.model_copy(update={"parked_event": ids[data.parked_event]})
    return data
