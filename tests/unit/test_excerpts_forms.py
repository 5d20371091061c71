"""Escapes, case, colours and words: what of a source an excerpt may differ in, and the offsets that stay the source's."""

from __future__ import annotations

import html
import json

import pytest

from handlers.excerpt_forms import Form, casefolded, fold_case, html_unescaped, json_unescaped, normalized
from handlers.excerpts import Match, match, normalize

MISMATCH = "evidence.excerpt_mismatch"
PARAPHRASE = "evidence.excerpt_paraphrase"


def supported(excerpt: str, ref: str, tier: str) -> Match:
    found = match(excerpt, ref)
    assert (found.rule, found.tier) == (None, tier)
    assert found.start is not None
    assert found.text == ref[found.start : found.end]
    return found


# Step 3: one level of unescape


@pytest.mark.parametrize(
    "escaped",
    [
        r"\"", r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u0041", r"\u00e9", r"\u00E9", r"\u8fde", r"\uFfFd", r"\uffff", r"\ud7ff", r"\ue000",
        r"\ud83d\ude00", r"\uD83D\uDE00", r"\ud800\udc00", r"\udbff\udfff", r"\ud800\udfff", r"\udbff\udc00", r"\uda00\udd01", r"\ud83d", r"\ude00",
        r"\ude00\ud83d", r"\ud83dx", r"\ud83d\u0041", r"\\n", r"\\\n", r"\\u0041", r"\n\t\"",
    ],
)  # fmt: skip
def test_json_escapes_are_undone_as_a_json_reader_does(escaped: str) -> None:
    form = json_unescaped(Form(f"pool {escaped} is full"))
    assert form is not None
    assert form.text == json.loads(f'"pool {escaped} is full"')
    at = form.text.index(" is full")
    assert form.up(at, len(form.text)) == (5 + len(escaped), 13 + len(escaped))
    assert form.to_source(5, at) == (5, 5 + len(escaped))


@pytest.mark.parametrize("kept", [r"C:\Users\pool", r"\d+ errors", r"\u12 seen", r"\x41", "\\", r"\uD83", "no escape"])
def test_what_is_no_json_escape_stays(kept: str) -> None:
    assert json_unescaped(Form(kept)) is None


@pytest.mark.parametrize(
    "escaped", ["&lt;", "&amp;", "&quot;", "&#39;", "&#x27;", "&#X1F600;", "&eacute;", "&#128512;", "&amp;lt;"]
)
def test_html_references_are_undone_once(escaped: str) -> None:
    form = html_unescaped(Form(f"pool {escaped} is full"))
    assert form is not None
    assert form.text == html.unescape(f"pool {escaped} is full")
    assert form.to_source(5, form.text.index(" is full")) == (5, 5 + len(escaped))


@pytest.mark.parametrize("kept", ["a & b", "a && b", "&nosuchname;", "x=1&lt=2", "&;", "&#;", "no reference"])
def test_what_is_no_html_reference_stays(kept: str) -> None:
    assert html_unescaped(Form(kept)) is None


def test_the_span_of_an_unescaped_excerpt_ends_where_the_escape_ends() -> None:
    ref = r'{"msg": "\u0022pool\u0022 is full \ud83d\ude00 on\/off", "n": 1}'
    assert supported('"pool" is full 😀 on/off', ref, "unescaped").text == ref[9:-10]
    assert supported("😀 on/off", ref, "unescaped").text == r"\ud83d\ude00 on\/off"


def test_an_excerpt_may_not_begin_inside_a_character_that_an_escape_made() -> None:
    assert match("f pool is full", "&fflig; pool is full").rule == MISMATCH


# Step 1: an edge inside a colour code is still the source's own text


@pytest.mark.parametrize(
    "before", ["", "at  noon: ", "caf\u0065\u0301  \u200bé - ", "\x1b[1mWARN\x1b[0m\t\t: ", "连接池 已 满: "]
)
@pytest.mark.parametrize(
    "excerpt", ["[31mpool is  full", "31mpool is  full\x1b[0", "pool is  full\x1b[", "1mpool is  full\x1b[0m"]
)
def test_an_excerpt_that_begins_or_ends_inside_a_colour_code_is_exact(before: str, excerpt: str) -> None:
    ref = f"{before}\x1b[31mpool is  full\x1b[0m now, pool is idle"
    found = supported(excerpt, ref, "exact")
    assert (found.text, found.start, found.warnings) == (excerpt, ref.index(excerpt), ())


def test_a_source_may_begin_with_an_excerpt_cut_inside_a_colour_code() -> None:
    assert supported("pool is full\x1b[3", "pool is full\x1b[31m now", "exact").start == 0


def test_every_place_of_a_text_cut_inside_a_colour_code_is_kept() -> None:
    line = "\x1b[31mpool is full\x1b[0m now\n"
    found = supported("31mpool is full", line * 3, "exact")
    assert found.spans == tuple((at * len(line) + 2, at * len(line) + 17) for at in range(3))
    assert found.warnings == ("evidence.ambiguous_span",)


@pytest.mark.parametrize(
    ("excerpt", "ref"),
    [
        ("31m0 errors in pool", "1\x1b[31m0 errors in pool"),
        ("errors in pool\x1b[3", "x errors in pool\x1b[31ms seen"),
        ("[31", "pool \x1b[31mis full"),
        ("1mpool is fu", "\x1b[31mpool is full"),
        ("\u0301 is full\x1b[3", "cafe\u0301 is full\x1b[31m now"),
        ("31mis cafe", "\x1b[31mis cafe\u0301 now"),
        ("31mpool is full", "pool is full"),
        ("\u0301tat  is full\x1b[3", "log e\u0301tat  is full\x1b[31m now"),
    ],
)  # fmt: skip
def test_a_cut_inside_a_colour_code_hides_no_cut_word(excerpt: str, ref: str) -> None:
    assert match(excerpt, ref).rule == MISMATCH


@pytest.mark.parametrize("excerpt", ["e\u0301tat is full\x1b[3", "is full\x1b[3", "  e\u0301tat is  full\x1b[31"])
def test_an_excerpt_may_begin_where_a_composed_letter_or_a_run_of_spaces_begins_or_ends(excerpt: str) -> None:
    ref = f"\x1b[1mlog\x1b[0m  {excerpt.strip()}1m now"
    assert supported(excerpt.strip(), ref, "exact").start == ref.index(excerpt.strip())


def test_a_negation_beside_a_cut_inside_a_colour_code_warns() -> None:
    found = supported("31mavailable at noon", "is not \x1b[31mavailable at noon", "exact")
    assert found.warnings == ("evidence.negation_clipped",)


# Step 2


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("\x9b31mpool\x9b0m full", "pool full"), ("\x1b[38;5;1mpool\x1b[K full", "pool full"), ("\x9d0;title\x9cpool full", "pool full"),
        ("a\x1b[", "a\x1b["), ("pool 连接池 已满 now", "pool 连接池已满 now"), (" 连接", "连接"), ("连 \u200b 接", "连接"), ("a\u200b \u200b b", "a b"),
        ("连  a", "连 a"), ("a  连", "a 连"),
        ("连 a", "连 a"), ("a 连", "a 连"), ("连接 ， 已满", "连接，已满"), ("e\u0301x o\u0308", "éx ö"), ("a\r\n\r\n b", "a b"), ("\u200b", ""),
    ],
)  # fmt: skip
def test_layout_goes_and_what_is_read_stays(text: str, plain: str) -> None:
    assert normalize(text) == plain
    assert match(f"{plain} - end of line", f"{text} - end of line").rule is None


@pytest.mark.parametrize(
    "text", ["连接 池 已 满", "连\u200b \u200b接 x", "é  \u0065\u0301 \u00a0 y", "\x1b[1m é\x1b[0m  z"]
)
def test_each_character_of_a_normal_form_knows_its_place(text: str) -> None:
    form = normalized(Form(text))
    spans = [form.to_source(at, at + 1) for at in range(len(form.text))]
    for char, span in zip(form.text, spans, strict=True):
        assert span is not None
        assert normalize(text[slice(*span)]) == char.strip(" ")
    assert spans == sorted(spans, key=lambda span: span or (0, 0))


# Step 6: case


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ("STRASSE 5 IST VOLL", "Straße 5 ist voll"), ("strasse 5 ist voll", "STRAẞE 5 IST VOLL"), ("POOL Ä IST VOLL", "pool ä ist voll"),
        ("ΠΌΡΟΣ IST VOLL", "πόρος ist voll"), ("i\u0307 pool is full", "İ POOL is full"),
    ],
)  # fmt: skip
def test_letters_that_grow_when_folded_keep_their_places(ours: str, theirs: str) -> None:
    ref = f"ßİß {theirs} İß ende"
    assert supported(ours, ref, "casefolded").text == theirs


@pytest.mark.parametrize(("excerpt", "ref"), [("S IST VOLL HIER", "ß ist voll hier"), ("IST VOLL S", "ist voll ß")])
def test_half_of_a_letter_that_grows_is_no_excerpt(excerpt: str, ref: str) -> None:
    assert match(excerpt, ref).rule == MISMATCH


@pytest.mark.parametrize("text", ["Pool", "ßx", "Aßİb", "ﬁX", "ŉß", "ΣΑΣ", "é", ""])
def test_a_folded_form_reads_as_its_text_does_and_maps_back_whole(text: str) -> None:
    folded = casefolded(Form(text))
    assert folded.text == fold_case(text)
    assert not text or folded.up(0, len(folded.text)) == (0, len(text))


@pytest.mark.parametrize(
    ("ours", "theirs", "rule"),
    [
        ("WAITED 5M, MEMORY LOW", "waited 5m, memory low", MISMATCH), ("waited 5m, MEMORY low", "waited 5m, memory low", None),
        ("used 10 Mb of DISK", "used 10 MB of disk", MISMATCH), ("used 10 GB of DISK", "used 10 Gb of disk", MISMATCH), ("used 10GB of DISK", "used 10Gb of disk", MISMATCH),
        ("5K LEFT in pool", "5\u212a left in pool", None), (".=.", "pool is full", MISMATCH), ("used 10 MB of DISK", "used 10 MB of disk", None), ("WAITED 5S, POOL FULL", "waited 5s, pool full", None),
        ("waited 5S then 5M here", "waited 5s then 5m here", MISMATCH), ("TOOK 30MS TODAY", "took 30ms today", None),
        ("waited 5 m in ALL", "waited 5 M in all", MISMATCH), ("used 10 Gib of DISK", "used 10 GiB of disk", MISMATCH), ("used 10 GiB of DISK", "used 10 GiB of disk", None),
        ("FOUND 5 BACKENDS", "found 5 Backends", None), ("Found 5 By hand", "found 5 by hand", None), ("WAITED 5 MINUTES", "waited 5 minutes", None),
    ],
)  # fmt: skip
def test_case_counts_only_where_it_makes_another_unit(ours: str, theirs: str, rule: str | None) -> None:
    assert match(ours, theirs).rule == rule


# Step 5 and case


@pytest.mark.parametrize(
    ("excerpt", "tier", "shown"),
    [
        ("... pool is full", "elided", "pool is full"),
        ("…POOL is full", "casefolded", "pool is full"),
        ("payments pool ... since noon ... [ledger-db]", "elided", "payments pool is full since noon in [ledger-db]"),
        (
            "Payments pool ... SINCE noon ... [Ledger-db]",
            "casefolded",
            "payments pool is full since noon in [ledger-db]",
        ),
    ],
)
def test_parts_are_looked_for_in_the_sources_case_and_then_in_any(excerpt: str, tier: str, shown: str) -> None:
    found = supported(excerpt, "ERROR payments pool is full since noon in [ledger-db] of 2 hosts", tier)
    assert (found.text, found.warnings) == (shown, ("evidence.excerpt_case",) if tier == "casefolded" else ())


@pytest.mark.parametrize(
    "excerpt", ["... ool is full", "... pool is ful", "Payments POOL ... since 5 noon", "POOL ... CE noon"]
)
def test_a_part_in_any_case_still_ends_at_words(excerpt: str) -> None:
    assert match(excerpt, "ERROR payments pool is full since noon").rule == MISMATCH


def test_parts_of_two_records_in_another_case_are_stitched() -> None:
    assert match("Payments pool ... Is full", "payments pool\nis full").rule == "evidence.excerpt_stitched"
