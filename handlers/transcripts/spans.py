"""Which spans of a trace are the conversation that is judged, and what all of them know of tools.

Pure. A span's `Talk` is what it was told, what it said, and what it ran; the readers of the conventions make it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from handlers.transcripts.items import Called, Exchange, Item, Returned, Said, Unread, exchanges, merged
from handlers.transcripts.otlp import Span


@dataclass(frozen=True, slots=True)
class Talk:
    """A span as a part of a conversation. `agent`: it stands for a whole run of an agent, not for one model call."""

    span: Span
    heard: tuple[Item, ...] = ()
    said: tuple[Item, ...] = ()
    ran: tuple[Item, ...] = ()
    agent: bool = False

    @property
    def answers(self) -> tuple[Said, ...]:
        return tuple(item for item in self.said if isinstance(item, Said) and item.role == "assistant")

    @property
    def used_tools(self) -> bool:
        """Whether the model was shown a tool's result here, or asked for one."""
        return any(isinstance(item, (Called, Returned)) for item in (*self.heard, *self.said))


def conversation(talks: Sequence[Talk]) -> tuple[Item, ...]:
    """The items of the talk that is judged (see `judged`); before its answer what all spans know of tools.

    Model calls repeat their history: what is the same is taken once, as the model that answered was shown it; a
    result that differs from all others is kept. A call that has no result anywhere is left out.
    """
    answered = [talk for talk in talks if talk.answers]
    if not answered:
        return tuple(item for talk in talks for item in (*talk.heard, *talk.said))
    chosen = judged(answered, talks)
    texts = [item for item in chosen.heard if isinstance(item, Said)]
    if not any(item.role == "user" for item in texts):
        others = [i for talk in talks for i in talk.heard if isinstance(i, Said) and i.role == "user"]
        texts = [*others[-1:], *texts]
    views = [exchanges(_tools(chosen.heard))]
    # What an earlier model call was shown stays evidence, also if the last one's history was cut.
    views += [exchanges(_tools((*talk.heard, *talk.said))) for talk in talks if talk is not chosen]
    views += [exchanges(item for talk in talks for item in _tools(talk.ran))]
    found: list[Exchange] = [one for one in merged(views) if one.returned is not None]
    left_out = [i for talk in talks for i in (*talk.heard, *talk.said, *talk.ran) if isinstance(i, Unread)]
    return (*texts, *left_out, *(item for one in found for item in one.items()), chosen.answers[-1])


def judged(answered: Sequence[Talk], talks: Sequence[Talk]) -> Talk:
    """The talk whose answer is judged: the last by its end of the first of these kinds that there is.

    1. The outermost span of an agent's run that tells its answer; of several in one trace, one that used tools. 2. A model call that was shown tool results or asked
    for tools. 3. A model call beside a tool span, under the same parent. 4. Any. Agents let models also name a chat or
    sum it up: such a call comes after the answer, uses no tools, and is not what the user was told.
    """
    by_id = {talk.span.span_id: talk for talk in talks if talk.span.span_id}

    def above(talk: Talk) -> dict[str, Talk]:
        found: dict[str, Talk] = {}
        at = talk.span.parent_id
        while at in by_id and at not in found:
            found[at] = by_id[at]
            at = by_id[at].span.parent_id
        return found

    def with_tools(agent: Talk) -> bool:
        return agent.used_tools or any(
            (talk.ran or talk.used_tools) and agent.span.span_id in above(talk) for talk in talks
        )

    beside = {talk.span.parent_id for talk in talks if talk.ran and talk.span.parent_id}
    outermost = [t for t in answered if t.agent and not any(o.agent and o.answers for o in above(t).values())]
    last = max(
        (t.span.trace_id for t in outermost),
        key=lambda i: max(t.span.end for t in outermost if t.span.trace_id == i),
        default="",
    )
    kinds = (
        [talk for talk in outermost if talk.span.trace_id == last and with_tools(talk)],
        outermost,
        [talk for talk in answered if talk.used_tools],
        [talk for talk in answered if talk.span.parent_id in beside],
        list(answered),
    )
    return max(next(kind for kind in kinds if kind), key=lambda talk: (talk.span.end, len(talk.heard)))


def _tools(items: Sequence[Item]) -> list[Item]:
    return [item for item in items if isinstance(item, (Called, Returned))]
