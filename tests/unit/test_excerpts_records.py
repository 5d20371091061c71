"""What counts as one record of a source, and which line of it is shown (gate.md, "Excerpt matching", steps 5 and 10)."""

from __future__ import annotations

import hashlib
import json

import pytest

from handlers.excerpt_source import records
from handlers.excerpts import Match, full_lines, match

FULL, WAITS, IDLE = "payments pool is full", "ledger-db replica lags", "refunds pool is idle"
STITCHED = "evidence.excerpt_stitched"
MISMATCH = "evidence.excerpt_mismatch"
PARAPHRASE = "evidence.excerpt_paraphrase"


def joined(first: str, second: str, ref: str) -> Match:
    """What the matcher says of two parts with an ellipsis between them."""
    return match(f"{first} ... {second}", ref)


@pytest.mark.parametrize("layout", [None, 1, 4])
@pytest.mark.parametrize("around", ["{}", " \t\r\n{}\r\n\t ", "\n{}\n"])
def test_the_elements_of_a_json_array_are_its_records_however_it_is_laid_out(layout: int | None, around: str) -> None:
    elements = [{"pool": FULL, "waiting": [1, [2]], "of": {"host": "db-1"}}, {"pool": WAITS}, {"pool": IDLE}]
    ref = around.format(json.dumps(elements, indent=layout))
    found = records(ref)
    assert [json.loads(record.rstrip(", \t\r\n]" if at == 2 else ", \t\r\n")) for at, record in enumerate(found)] == (
        elements
    )
    assert all(record.startswith("{") for record in found)
    assert "".join(found) == ref[ref.index("{") :]


@pytest.mark.parametrize(
    ("ref", "expected"),
    [
        ('["a","b"]', ['"a",', '"b"]']),
        ('[["a"],["b"]]', ['["a"],', '["b"]]']),
        ("[1 ,\n2 ]\n", ["1 ,\n", "2 ]\n"]),
        (" [ null , true ] ", ["null , ", "true ] "]),
        ('[{"pool": "a ] , [ b"}, 2]', ['{"pool": "a ] , [ b"}, ', "2]"]),
    ],
)
def test_any_value_may_be_an_element(ref: str, expected: list[str]) -> None:
    assert records(ref) == expected


@pytest.mark.parametrize(
    "ref",
    [
        "[1,\n2",
        "[1,\n2,",
        '["a",\n"b"] tail',
        '["a",\n"b"]]',
        '["a",\nb]',
        "[pool-1] first\n[pool-2] second",
        "[12]\n[13]",
        "[]\n[]",
        "\u00a0[1,\n2]",
        'x["a",\n"b"]',
        "[" * 100_000 + "\n]",
        '{"a": [1,\n2]}',
    ],
)
def test_what_is_no_whole_json_array_is_read_line_by_line(ref: str) -> None:
    first, second = records(ref)
    assert first + second == ref
    assert first.endswith("\n")
    assert "\n" not in second


@pytest.mark.parametrize(("ref", "expected"), [("", [""]), ("[]", ["[]"]), ("a", ["a"]), ("a\n", ["a\n", ""])])
def test_a_text_has_at_least_one_record(ref: str, expected: list[str]) -> None:
    assert records(ref) == expected


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_records_whatever_ends_them(end: str) -> None:
    ref = end.join((FULL, WAITS, IDLE))
    assert records(ref) == [FULL + end, WAITS + end, IDLE]
    assert joined(FULL, WAITS, ref).rule == STITCHED
    assert joined("payments pool", "is full", ref).rule is None


@pytest.mark.parametrize(
    "frame",
    [
        "\tat a.b.LedgerDao.insert(LedgerDao.java:42)",
        "    at LedgerDao.insert (ledger.js:42)",
        "Caused by: PSQLException: slots reserved",
        "\tCaused by: PSQLException: slots reserved",
        "\t... 23 more",
        '  File "ledger.py", line 42, in insert',
        "\tSuppressed: ResourceException: close failed",
    ],
)
def test_a_frame_belongs_to_the_exception_above_it(frame: str) -> None:
    ref = f"{IDLE}\nSQLException: pool exhausted\n{frame}\n{FULL}"
    assert records(ref) == [f"{IDLE}\n", f"SQLException: pool exhausted\n{frame}\n", FULL]


@pytest.mark.parametrize("line", ["at 10:00 the pool was full", "... 23 more", "cause: slots", "  indented line"])
def test_a_line_that_is_no_frame_is_a_record_of_its_own(line: str) -> None:
    assert records(f"SQLException: pool exhausted\n{line}") == ["SQLException: pool exhausted\n", line]


@pytest.mark.parametrize("between", ["}, {", "},{", "}\n ,\n {"])
@pytest.mark.parametrize("outer", ['{{"result": [{}]}}', '  {{"result": [{}]}}', "[[{}]]", '\n[{{"result": [{}]}}]'])
def test_elements_inside_a_json_object_are_told_apart_on_one_line(between: str, outer: str) -> None:
    inner = f'{{"pool": "{FULL}"{between}"pool": "{IDLE}"}}'
    ref = outer.format(inner).replace("\n ,\n ", " , ") if outer.startswith(("{", "  {")) else outer.format(inner)
    assert joined(FULL, IDLE, ref).rule == STITCHED
    assert joined(f'"{FULL}"}}', f'{{"pool": "{IDLE}"}}', ref).rule == STITCHED
    assert joined('"pool": "payments', "is full", ref).rule is None


def test_parts_that_overlap_in_the_source_are_not_one_after_the_other() -> None:
    assert joined(FULL, "is full since", f"ERROR {FULL} since noon").rule == MISMATCH
    assert joined(FULL, "since noon", f"ERROR {FULL} since noon").rule is None


def test_the_comma_after_an_element_belongs_to_it() -> None:
    assert joined('"payments', 'is full",', f'["{FULL}","{IDLE}"]').rule is None


def test_braces_in_a_line_of_a_log_part_nothing() -> None:
    ref = f"ERROR {{pool: {FULL}}}, {{replica: {WAITS}}}"
    assert joined(FULL, WAITS, ref).rule is None


def test_every_record_that_holds_all_parts_is_a_place_of_its_own() -> None:
    lines = [f"ERROR {FULL} since {WAITS}", f"ERROR {FULL} since noon", f"ERROR {FULL}, and {FULL}: {WAITS}"]
    ref = "\n".join(lines)
    found = joined(FULL, WAITS, ref)
    assert [ref[start:end] for start, end in found.spans] == [f"{FULL} since {WAITS}", f"{FULL}, and {FULL}: {WAITS}"]
    assert found.warnings == ("evidence.ambiguous_span",)


def test_words_of_two_records_are_no_paraphrase() -> None:
    assert match(f"{FULL}, {WAITS}", f"{FULL}\n{WAITS}").rule == MISMATCH
    assert match(f"{FULL}, {WAITS}", f"{FULL} -- {WAITS}").rule == PARAPHRASE
    array = json.dumps([{"m": FULL}, {"m": WAITS}])
    assert match(f"{FULL}, m {WAITS}", array).rule == MISMATCH


# Lines


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("excerpt", [WAITS, WAITS[:9], WAITS[10:17], WAITS[-4:]])
def test_the_line_shown_is_the_whole_one_and_only_that(end: str, excerpt: str) -> None:
    ref = end.join((FULL, WAITS, IDLE))
    assert match(excerpt, ref).lines == WAITS
    assert full_lines(ref, 0, 4) == FULL
    assert full_lines(ref, len(ref) - 4, len(ref)) == IDLE


def test_a_hit_over_two_lines_shows_both() -> None:
    ref = f"{FULL}\n{WAITS}\n{IDLE}"
    assert match("is full\nledger-db replica", ref).lines == f"{FULL}\n{WAITS}"
    assert full_lines(ref, ref.index("full"), ref.index("ledger")) == FULL


@pytest.mark.parametrize(
    ("text", "start", "end", "shown"),
    [
        ("\nab", 1, 3, "ab"),
        ("\rab", 1, 3, "ab"),
        ("\rab", 0, 1, ""),
        ("ab\nc de\nf", 0, 4, "ab\nc de"),
        ("ab\rc de\rf", 0, 4, "ab\rc de"),
        ("maX", 0, 2, "maX"),
    ],
)
def test_a_line_begins_and_ends_at_its_breaks(text: str, start: int, end: int, shown: str) -> None:
    assert full_lines(text, start, end) == shown


def test_half_of_a_surrogate_pair_is_a_character_like_any_other() -> None:
    ref = f"{FULL} \ud800"
    found = match(FULL, ref)
    assert (found.rule, found.lines) == (None, ref)
    assert found.ref_sha256 == hashlib.sha256(ref.encode("utf-8", "surrogatepass")).hexdigest()


@pytest.mark.parametrize("limit", range(1, 40))
@pytest.mark.parametrize(
    ("before", "hit", "after"),
    [
        ("abc", "HIT", "def"),
        ("连接池é已满", "HIT", "😀é连接"),
        ("", "HIT", "连接池已耗尽"),
        ("连接池已耗尽", "HIT", ""),
        ("a", "连接池HITé已满😀", "b"),
        ("\ud800连\udc00", "HIT", "\ud800池"),
        ("x", "абвгдежзиклм", "y"),
    ],
)
def test_a_long_line_is_cut_to_whole_characters_around_the_hit(before: str, hit: str, after: str, limit: int) -> None:
    def size(text: str) -> int:
        return len(text.encode("utf-8", "surrogatepass"))

    line = before + hit + after
    shown = full_lines(f"first\n{line}\nlast", 6 + len(before), 6 + len(before) + len(hit), limit)
    assert shown in line
    assert size(shown) <= limit
    if size(line) <= limit:
        assert shown == line
    else:
        assert size(shown) > limit - 2 * max(size(char) for char in line)
    if size(hit) <= limit:
        left, right = shown.split(hit)
        spare = limit - size(hit)
        assert before.endswith(left)
        assert after.startswith(right)
        assert size(left) >= min(size(before), spare // 2 - 3)
        assert size(right) >= min(size(after), spare // 2 - 3)
    else:
        lead = hit.index(shown) if shown else len(hit) // 2
        assert abs(size(hit[:lead]) - size(hit[lead + len(shown) :])) <= 4


@pytest.mark.parametrize(("limit", "shown"), [(3, "HIT"), (4, "HITd"), (5, "cHITd"), (7, "bcHITde"), (9, "abcHITdef")])
def test_the_hit_stands_in_the_middle_of_what_is_shown(limit: int, shown: str) -> None:
    assert full_lines("abcHITdef", 3, 6, limit) == shown


@pytest.mark.parametrize(
    ("text", "start", "limit", "shown"),
    [("abcdefHIT", 6, 5, "efHIT"), ("aHITbcdef", 1, 7, "aHITbcd"), ("abcdeHITf", 5, 7, "cdeHITf")],
)
def test_room_that_one_side_does_not_need_is_given_to_the_other(text: str, start: int, limit: int, shown: str) -> None:
    assert full_lines(text, start, start + 3, limit) == shown


def test_a_hit_longer_than_the_limit_shows_its_middle() -> None:
    assert full_lines("0123456789", 0, 10, 4) == "3456"
    assert full_lines("连接池已耗尽", 0, 6, 7) == "池已"
