"""Properties of the excerpt matcher that hold for every text."""

from __future__ import annotations

import string

from hypothesis import example, given, settings
from hypothesis import strategies as st

from handlers.excerpt_forms import Form, casefolded, html_unescaped, json_unescaped, normalized
from handlers.excerpts import LINES_LIMIT_BYTES, full_lines, match, normalize

WORDS = st.text(string.ascii_letters + string.digits + "_=连接池é", min_size=1, max_size=8)
LINES = st.lists(WORDS, min_size=3, max_size=12).map(" ".join)
LOGS = st.lists(LINES, min_size=1, max_size=6).map("\n".join)
ODD = st.text(
    st.sampled_from(
        list(
            "ab5 0.,-'\"\\n&lt;#x1;`>…“”「」\r\n\t\u0301é\u00a0\u200b\u202eßİ不没池一\x1b[]m8;\x07\x9b\x9d\x9c\x00\ud800\udc00😀½⁶%$"
        )
    )
    | st.characters(),
    max_size=60,
)


@st.composite
def logs_with_words(draw: st.DrawFn) -> tuple[str, str]:
    """A log, and some neighbouring words of one of its lines as they stand there."""
    log = draw(LOGS)
    words = draw(st.sampled_from(log.split("\n"))).split(" ")
    first = draw(st.integers(0, len(words) - 1))
    last = draw(st.integers(first + 1, len(words)))
    return log, " ".join(words[first:last])


@given(logs_with_words())
@example(("0 0 0\n0 0 0", "0 0"))
def test_whole_words_of_the_source_are_always_accepted_as_exact(drawn: tuple[str, str]) -> None:
    log, excerpt = drawn
    found = match(excerpt, log)
    assert (found.rule, found.tier) == (None, "exact")
    assert found.text == excerpt
    assert all(normalize(log[start:end]) == normalize(excerpt) for start, end in found.spans)


@given(LOGS, st.integers(0, 10**12), st.data())
def test_a_changed_digit_is_never_accepted(log: str, number: int, data: st.DataObject) -> None:
    line = f"request of payment-service timed out after {number}ms"
    at = data.draw(st.integers(0, len(str(number)) - 1)) + line.index(str(number))
    digit = data.draw(st.sampled_from([d for d in string.digits if d != line[at]]))
    found = match(line[:at] + digit + line[at + 1 :], f"{log}\n{line}\n{log}")
    assert found.rule == "evidence.excerpt_mismatch"


@settings(max_examples=400)
@given(ODD, ODD)
@example("\ud83d", "\ud83d\ude00")
@example("\\ud83d", "\\ud83d\\ude00")
@example("ss is here now", "ßs is here now")
@example("\u0301", "e\u0301")
def test_it_never_raises_and_text_is_always_the_sources(excerpt: str, ref: str) -> None:
    for wanted in (excerpt, ref[1:-1], ref.upper(), f"`{ref}`", f"{ref[:9]}...{ref[9:]}"):
        found = match(wanted, ref)
        if found.rule is None:
            assert found.start is not None
            assert found.end is not None
            assert found.lines is not None
            assert found.text == ref[found.start : found.end] != ""
            assert found.spans[0] == (found.start, found.end)
            assert all(0 <= start < end <= len(ref) for start, end in found.spans)
            assert len(found.lines.encode("utf-8", "surrogatepass")) <= LINES_LIMIT_BYTES
        else:
            assert (found.text, found.spans, found.tier) == (None, (), None)
        if found.nearest_miss is not None:
            assert ref[found.nearest_miss.start : found.nearest_miss.end] == found.nearest_miss.text


@settings(max_examples=400)
@given(ODD, st.data())
def test_every_span_of_a_form_maps_to_source_text_that_normalises_to_it(text: str, data: st.DataObject) -> None:
    plain = text.replace("\x1b", "").replace("\x9b", "").replace("\x9d", "")
    form = normalized(Form(plain))
    start = data.draw(st.integers(0, len(form.text)))
    end = data.draw(st.integers(start, len(form.text)))
    span = form.to_source(start, end) if end > start else None
    if span is not None:
        assert normalize(plain[slice(*span)]) == form.text[start:end].strip(" ")


@given(ODD)
def test_normalising_twice_changes_nothing_but_what_the_first_uncovered(text: str) -> None:
    plain = text.replace("\x1b", "").replace("\x9b", "").replace("\x9d", "")
    assert normalize(normalize(plain)) == normalize(plain)


@given(ODD)
def test_whole_forms_map_to_their_parents(text: str) -> None:
    base = Form(text)
    for form in (json_unescaped(base), html_unescaped(base), casefolded(base)):
        if form is not None and form.text:
            span = form.to_source(0, len(form.text))
            assert span is not None
            assert 0 <= span[0] < span[1] <= len(text)
    folded = casefolded(base)
    assert folded.text == text.casefold()


@settings(max_examples=200)
@given(ODD.map(lambda t: t * 40), st.data())
def test_lines_hold_the_hit_and_never_more_than_the_limit(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 100)))
    shown = full_lines(text, start, end)
    assert len(shown.encode("utf-8", "surrogatepass")) <= LINES_LIMIT_BYTES
    assert text[start:end].strip("\r\n") in shown
    assert shown in text
