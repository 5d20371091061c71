"""The table of upcasters: gaps, circles and loose ends stop the program at its start; what is not known is told."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from typing import Any

import orjson
import pytest

from streams import events as ev
from streams.envelope import BadEnvelope, Draft, Event, Head, decode, stamp
from streams.session import fold
from streams.upcasts import UPCASTERS, BrokenUpcasts, Split, UnknownEventType, check, upcast

NOW = datetime(2026, 11, 30, 10, 42, tzinfo=UTC)
SESSION = "e2611-payment"


def same(data: dict[str, Any]) -> dict[str, Any]:
    return data


def halves(*into: tuple[str, int]) -> Split:
    return Split(into, lambda data: [data for _ in into])


@pytest.mark.parametrize(
    ("table", "latest", "why"),
    [
        ({}, {"tool-invoked": 2}, "no upcaster from tool-invoked schema 1 to 2"),
        ({("tool-invoked", 1): same}, {"tool-invoked": 3}, "no upcaster from tool-invoked schema 2 to 3"),
        ({("tool-invoked", 2): same}, {"tool-invoked": 3}, "no upcaster from tool-invoked schema 1 to 2"),
        ({("tool-invoked", 1): same}, {"tool-invoked": 1}, "leads to no known schema"),
        ({("tool-invoked", 0): same}, {"tool-invoked": 1}, "leads to no known schema"),
        ({("answer-checked", 1): same}, {"gate-judged": 1}, "leads to no known schema: answer-checked 2"),
        ({("answer-checked", 2): halves(("gate-judged", 1))}, {"gate-judged": 1}, "no upcaster from answer-checked"),
        ({("answer-checked", 1): halves(("gate-judged", 2))}, {"gate-judged": 1}, "no known schema: gate-judged 2"),
        ({("answer-checked", 1): halves()}, {"gate-judged": 1}, "needs types that differ"),
        (
            {("answer-checked", 1): halves(("gate-judged", 1), ("gate-judged", 1))},
            {"gate-judged": 1},
            "needs types that differ",
        ),
        (
            {("a", 1): halves(("b", 1)), ("b", 1): halves(("c", 1)), ("c", 1): halves(("b", 1))},
            {"gate-judged": 1},
            "in a circle: b 1 -> c 1 -> b 1",
        ),
    ],
)
def test_a_gap_a_circle_or_a_loose_end_is_an_error(table: Any, latest: dict[str, int], why: str) -> None:
    with pytest.raises(BrokenUpcasts, match=why):
        check(table, latest)


def test_a_whole_table_is_accepted() -> None:
    check({}, {"gate-judged": 1})
    check(
        {
            ("tool-invoked", 1): same,
            ("tool-invoked", 2): halves(("tool-invoked", 3), ("turn-failed", 1)),
            ("answer-checked", 1): same,
            ("answer-checked", 2): halves(("gate-judged", 1), ("rules-scored", 1)),
            ("rules-scored", 1): same,
        },
        {"tool-invoked": 3, "turn-failed": 1, "gate-judged": 1, "rules-scored": 2},
    )


def test_a_program_with_a_gap_does_not_start() -> None:
    program = "from streams import events; events.GateJudged.SCHEMA = 2; import streams.envelope"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].endswith("BrokenUpcasts: no upcaster from gate-judged schema 1 to 2")


def asked(**more: Any) -> Event:
    question = ev.QuestionAsked(question="why does payment-service time out?", **more)
    return stamp(SESSION, Head(), Draft(question, "intake", turn=1), NOW)


def as_schema(event: Event, schema: int, kind: str | None = None) -> bytes:
    raw = orjson.loads(event.body)
    kind = kind or event.type
    return orjson.dumps({**raw, "type": f"verdictlog.{kind}", "dataschema": f"urn:verdictlog:{kind}:{schema}"})


@pytest.mark.parametrize(("kind", "schema"), [("question-asked", 2), ("question-asked", 0), ("pager-rang", 1)])
def test_a_newer_schema_or_an_unknown_type_is_told_with_its_place(kind: str, schema: int) -> None:
    with pytest.raises(UnknownEventType) as unknown:
        decode(as_schema(asked(), schema, kind), 12)
    assert (unknown.value.kind, unknown.value.schema) == (kind, schema)
    assert str(unknown.value) == (
        f"event 1 of session {SESSION} (position 12): event type {kind!r} schema {schema} "
        "is not known to this program: upgrade it"
    )


def test_an_upcaster_that_does_not_fit_what_is_stored_is_an_unreadable_event(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ev.LATEST, "question-asked", type("Asked", (ev.QuestionAsked,), {"SCHEMA": 2}))
    for step in (lambda data: {"question": data["text"]}, lambda data: {"question": None}):
        monkeypatch.setitem(UPCASTERS, ("question-asked", 1), step)
        with pytest.raises(BadEnvelope):
            decode(asked().body)


def test_fields_that_a_newer_program_added_are_kept() -> None:
    newer = asked(severity="page", sources={"logs": ["payment.log"], "traces": ["tempo"]})
    read = decode(newer.body)
    assert isinstance(read.data, ev.QuestionAsked)
    assert read.data.model_extra == {"severity": "page"}
    assert read.data.sources.model_extra == {"traces": ["tempo"]}
    again = stamp(SESSION, Head(), Draft(read.data, "intake", turn=1), NOW)
    assert again.body == newer.body


def test_what_was_split_is_told_part_by_part_at_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    event = asked()
    split = Split((("question-asked", 1), ("channel-written", 1)), lambda data: [data["asked"], data["written"]])
    monkeypatch.setitem(UPCASTERS, ("ticket-opened", 1), split)
    raw = orjson.loads(as_schema(event, 1, "ticket-opened"))
    raw["data"] = {"asked": raw["data"], "written": {"channel": "ticket", "value": 4711, "who": "on-call"}}
    assert [kind for kind, _ in upcast("ticket-opened", 1, raw["data"])] == ["question-asked", "channel-written"]
    read = decode(orjson.dumps(raw), 7)
    assert (read.type, read.at(9).also, [part.type for part in read.told]) == (
        "ticket-opened",
        read.also,
        ["question-asked", "channel-written"],
    )
    state = fold(SESSION, [read])
    assert (state.head.n, len(state.events), state.events[0]) == (1, 1, read)
    assert state.turns[0].question.question == "why does payment-service time out?"
    assert (state.self_evaluation, state.channels[0].n) == ({"ticket": 4711}, 1)
