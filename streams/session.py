"""The fold of a session: `evolve` one event into the state, `fold` many. Pure, and the only reader of history."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from streams import events as ev
from streams.envelope import Event, Head

OUR_CHANNELS = ("rule_evaluation", "verifier_evaluation")  # each written by an event type of its own


class BrokenChain(Exception):
    """Events of a session that do not follow one another."""

    def __init__(self, session: str, n: int, why: str) -> None:
        super().__init__(f"session {session}: event {n}: {why}")
        self.session = session
        self.n = n
        self.why = why


@dataclass(frozen=True, slots=True)
class Attempt:
    """One Executor answer and what was found about it."""

    number: int
    draft: ev.AnswerDrafted
    draft_event: Event
    gate: ev.GateJudged | None = None
    rules: ev.RulesScored | None = None
    evaluations: tuple[ev.AnswerEvaluated, ...] = ()

    @property
    def evaluation(self) -> ev.AnswerEvaluated | None:
        """The last one: `exhausted` after `repair` replaces it (ruling 11)."""
        return self.evaluations[-1] if self.evaluations else None


@dataclass(frozen=True, slots=True)
class Round:
    """One pass of all roles."""

    number: int
    plan: ev.PlanMade | None = None
    replies: tuple[Event, ...] = ()
    invocations: tuple[ev.ToolInvoked, ...] = ()
    attempts: tuple[Attempt, ...] = ()
    verification: ev.FactsVerified | None = None
    routed: ev.RoundRouted | None = None

    def replies_of(self, role: str) -> tuple[Event, ...]:
        return tuple(e for e in self.replies if isinstance(e.data, ev.AgentReplied) and e.data.role == role)


@dataclass(frozen=True, slots=True)
class Turn:
    """One question and all that answers it."""

    number: int
    question: ev.QuestionAsked
    asked: Event
    rounds: tuple[Round, ...] = ()
    failed: ev.TurnFailed | None = None
    cancelled: ev.TurnCancelled | None = None
    parked: tuple[ev.HandlerParked, ...] = ()
    answer: ev.AnswerGiven | None = None

    @property
    def open(self) -> bool:
        return self.answer is None

    @property
    def judged(self) -> bool:
        """Whether the turn ended with a judgement (ruling 15)."""
        return not (self.failed or self.cancelled)

    def round(self, number: int) -> Round:
        return self.rounds[number - 1] if 0 < number <= len(self.rounds) else Round(number)


@dataclass(frozen=True, slots=True)
class ChannelEntry:
    """One value of a channel, and the event that wrote it. `who`: whom a third party names as its writer."""

    channel: str
    value: Any
    n: int
    seq: int
    actor: str
    time: str
    who: str = ""


@dataclass(frozen=True, slots=True)
class Parked:
    """An event of type `handler-parked`, and the `parked-resolved` that closed it."""

    event: Event
    data: ev.HandlerParked
    resolution: Event | None = None

    @property
    def open(self) -> bool:
        return self.resolution is None


@dataclass(frozen=True, slots=True)
class SessionState:
    """What a session's events say, up to `head`."""

    session: str
    head: Head = field(default_factory=Head)
    turns: tuple[Turn, ...] = ()
    channels: tuple[ChannelEntry, ...] = ()
    events: tuple[Event, ...] = ()
    origin: ev.SessionForked | None = None
    erased: bool = False

    @property
    def open_turn(self) -> Turn | None:
        return self.turns[-1] if self.turns and self.turns[-1].open else None

    @property
    def copying(self) -> bool:
        """Whether this is a fork whose copied events are not all there yet: nothing may be decided on it."""
        return self.origin is not None and self.head.n < 1 + self.origin.copied

    @property
    def hidden(self) -> bool:
        """Whether its text is sealed and the key is not here: what it says is not known."""
        return any(event.hidden for event in self.events[:2])  # the first one of a fork may hold no text

    @property
    def invocations(self) -> tuple[ev.ToolInvoked, ...]:
        """Every evidence call of the session, in order of the log."""
        return tuple(i for turn in self.turns for rnd in turn.rounds for i in rnd.invocations)

    @property
    def parked(self) -> tuple[Parked, ...]:
        """Every entry, in order of the log; the first resolution of one is the one that counts."""
        told = [part for event in self.events for part in event.told]
        closed: dict[str, Event] = {}
        for event in told:
            if isinstance(event.data, ev.ParkedResolved):
                closed.setdefault(event.data.parked_event, event)
        return tuple(Parked(e, e.data, closed.get(e.id)) for e in told if isinstance(e.data, ev.HandlerParked))

    @property
    def self_evaluation(self) -> dict[str, Any] | None:
        """Each channel's latest value by `n`; null before the first (SEV-3)."""
        latest = {entry.channel: entry.value for entry in self.channels}
        return latest or None

    def turn(self, number: int) -> Turn:
        return self.turns[number - 1]

    def has(self, event_id: str, after: int = 0) -> bool:
        """Whether an event has this id, among those behind event `after`."""
        return any(e.id == event_id for e in self.events[after:])

    def as_of(self, n: int) -> SessionState:
        """The state after event `n` of the session."""
        return self if n >= self.head.n else fold(self.session, self.events[:n])


def initial(session: str) -> SessionState:
    return SessionState(session)


def fold(session: str, events: Iterable[Event]) -> SessionState:
    """The state after `events`, which must be the session's first ones in order."""
    state = initial(session)
    for event in events:
        state = evolve(state, event)
    return state


def evolve(state: SessionState, event: Event) -> SessionState:
    """The state after one more event. An event already folded changes nothing; a gap is BrokenChain."""
    if event.n <= state.head.n:
        return state
    if event.n != state.head.n + 1:
        raise BrokenChain(event.session, event.n, f"follows event {state.head.n}")
    if event.prevhash != state.head.hash:
        raise BrokenChain(event.session, event.n, "its prevhash is not the hash of the event before it")
    if not event.also:
        return _said(state, event)
    before = state.events
    for part in event.told:
        state = _said(state, part)
    return replace(state, events=(*before, event))


def _said(state: SessionState, event: Event) -> SessionState:
    turns = state.turns
    data = event.data
    if isinstance(data, ev.QuestionAsked):
        turns = (*turns, Turn(event.turn, data, event))
    elif isinstance(data, ev.SessionForked):
        return _next(state, event, origin=data)
    elif isinstance(data, ev.TextErased):
        return _next(state, event, erased=True)
    elif 0 < event.turn <= len(turns):
        turn = _turn(turns[event.turn - 1], event)
        turns = (*turns[: event.turn - 1], turn, *turns[event.turn :])
    return _next(state, event, turns)


def _next(
    state: SessionState,
    event: Event,
    turns: tuple[Turn, ...] | None = None,
    origin: ev.SessionForked | None = None,
    erased: bool = False,
) -> SessionState:
    # Built field by field here and in `_turn`: `dataclasses.replace` was a tenth of a turn's cost.
    entry = _channel(event)
    return SessionState(
        state.session,
        event.head,
        state.turns if turns is None else turns,
        state.channels if entry is None else (*state.channels, entry),
        (*state.events, event),
        origin or state.origin,
        erased or state.erased,
    )


def _channel(event: Event) -> ChannelEntry | None:
    data = event.data
    if isinstance(data, ev.RulesScored):
        name, value = "rule_evaluation", data.evaluation.model_dump(mode="json")
    elif isinstance(data, ev.FactsVerified):
        name, value = "verifier_evaluation", data.evaluation.model_dump(mode="json")
    elif isinstance(data, ev.ChannelWritten) and data.channel not in OUR_CHANNELS:
        return ChannelEntry(data.channel, data.value, event.n, event.seq, event.actor, event.time, data.who)
    else:
        return None
    return ChannelEntry(name, value, event.n, event.seq, event.actor, event.time)


def _turn(turn: Turn, event: Event) -> Turn:
    data = event.data
    if isinstance(data, ev.AnswerGiven):
        return replace(turn, answer=data)
    if isinstance(data, ev.TurnFailed):
        return replace(turn, failed=data)
    if isinstance(data, ev.TurnCancelled):
        return replace(turn, cancelled=data)
    if isinstance(data, ev.HandlerParked):
        return replace(turn, parked=(*turn.parked, data))
    if event.round < 1:
        return turn
    rounds = list(turn.rounds)
    while len(rounds) < event.round:
        rounds.append(Round(len(rounds) + 1))
    rounds[event.round - 1] = _round(rounds[event.round - 1], event)
    return Turn(
        turn.number,
        turn.question,
        turn.asked,
        tuple(rounds),
        turn.failed,
        turn.cancelled,
        turn.parked,
        turn.answer,
    )


def _round(rnd: Round, event: Event) -> Round:
    data = event.data
    if isinstance(data, ev.AgentReplied):
        return replace(rnd, replies=(*rnd.replies, event))
    if isinstance(data, ev.PlanMade):
        return replace(rnd, plan=data)
    if isinstance(data, ev.ToolInvoked):
        return replace(rnd, invocations=(*rnd.invocations, data))
    if isinstance(data, ev.AnswerDrafted):
        return replace(rnd, attempts=(*rnd.attempts, Attempt(event.attempt, data, event)))
    if isinstance(data, ev.FactsVerified):
        return replace(rnd, verification=data)
    if isinstance(data, ev.RoundRouted):
        return replace(rnd, routed=data)
    if not rnd.attempts:
        return rnd
    last = rnd.attempts[-1]
    if isinstance(data, ev.GateJudged):
        last = replace(last, gate=data)
    elif isinstance(data, ev.RulesScored):
        last = replace(last, rules=data)
    elif isinstance(data, ev.AnswerEvaluated):
        last = replace(last, evaluations=(*last.evaluations, data))
    return replace(rnd, attempts=(*rnd.attempts[:-1], last))
