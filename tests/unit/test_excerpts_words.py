"""An excerpt that fails, word by word: a paraphrase of which record, and what it was probably meant to be."""

from __future__ import annotations

import pytest

from handlers.excerpt_words import is_trivial, tokens
from handlers.excerpts import match
from handlers.nearest import difference
from streams.contract import NearestMiss

MISMATCH = "evidence.excerpt_mismatch"
PARAPHRASE = "evidence.excerpt_paraphrase"
FILLER = "\n".join(f"INFO payment-service request {at} served" for at in range(40))


def nearest(excerpt: str, ref: str) -> NearestMiss:
    found = match(excerpt, ref).nearest_miss
    assert found is not None
    assert found.text == ref[found.start : found.end]
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pool is full", [("pool", "word"), ("is", "word"), ("full", "word")]),
        ("ERROR Pool", [("error", "level"), ("pool", "word")]),
        ("payments-pool max_size", [("payments", "name"), ("pool", "name"), ("max", "name"), ("size", "name")]),
        ("HikariPool-1 10:09:12 10.0.0.1", [("HikariPool-1", "number"), ("10:09:12", "number"), ("10.0.0.1", "number")]),
        ("30000ms", [("30000", "number"), ("ms", "unit")]),
        ("30000 ms", [("30000", "number"), ("ms", "unit")]),
        ("30000 ms on", [("30000", "number"), ("ms", "unit"), ("on", "word")]),
        ("x ms", [("x", "word"), ("ms", "word")]),
        ("db-1’s 5°", [("db-1's", "number"), ("5", "number"), ("°", "operator")]),
        ("30000 items", [("30000", "number"), ("items", "word")]),
        ("30000  ms", [("30000", "number"), ("ms", "word")]),
        ("5% 5‰", [("5", "number"), ("%", "unit"), ("5", "number"), ("‰", "unit")]),
        ("-5 $5 1,234.5", [("-5", "number"), ("$5", "number"), ("1,234.5", "number")]),
        ("a<=5", [("a", "word"), ("<=", "operator"), ("5", "number")]),
        ("isn't cannot not", [("isn't", "negation"), ("cannot", "negation"), ("not", "negation")]),
        ("isn’t it’s", [("isn't", "negation"), ("it's", "word")]),
        ("池不满", [("池", "han"), ("不", "negation"), ("满", "han")]),
        ("<b>pool</b> <x>", [("pool", "word"), ("x", "word")]),
    ],
)  # fmt: skip
def test_a_text_is_words_numbers_units_names_negations_and_operators(
    text: str, expected: list[tuple[str, str]]
) -> None:
    found = tokens(text)
    assert [(token.key, token.kind) for token in found if token.key not in "<>"] == expected
    assert all(text[t.start : t.end].casefold().replace("’", "'") == t.key.casefold() for t in found)
    assert [t.start for t in found] == sorted(t.start for t in found)


@pytest.mark.parametrize(
    ("excerpt", "trivial"),
    [
        ("timeout", True),
        ("timeouts", False),
        ("error错", True),
        ("failed错", False),
        ("err错误", False),
        ("错误错", True),
    ],
)
def test_eight_letters_carry_information_and_a_han_character_is_two(excerpt: str, trivial: bool) -> None:
    assert is_trivial(excerpt) is trivial


@pytest.mark.parametrize(
    ("excerpt", "record"),
    [
        ("pool, payments is full", "the pool of the payments is full"),
        ("payments pool: full", "payments pool WARN is full"),
        ("payments, full", "payments is full"),
        ("PAYMENTS pool; full", "payments pool is full"),
        ("pool payments isn’t, full", "pool payments isn't full"),
        ("pool (payments) full of requests", "pool payments full of requests"),
        ("pool <b>payments</b> full", "pool payments is full"),
        ("payments/pool waits 30000 ms", "payments pool waits for 30000ms"),
    ],
)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        f"{FILLER}\n{{}}\n{FILLER}",
        "payments pool was idle\n{}",
        "{} and payments pool",
        f"{{}}\n{FILLER}\n30000ms waits payments is, isn't full WARN of requests pool",
    ],
)
def test_the_same_words_in_one_record_are_a_paraphrase_wherever_it_stands(
    excerpt: str, record: str, around: str
) -> None:
    found = match(excerpt, around.format(record))
    assert (found.rule, found.text, found.spans) == (PARAPHRASE, None, ())


@pytest.mark.parametrize(
    ("excerpt", "record"),
    [
        ("pool, +ledger down", "pool -ledger down"),
        ("pool, payments full", "pool payments half full"),
        ("pool, payments full", "payments pool is full"),
        ("pool, payments full", "pool payments is"),
        ("pool, payments full", "pool payments\nis full"),
        ("pool, payments full", "pool payments 5 full"),
        ("pool, payments full", "pool payments not full"),
        ("pool, payments full", "pool payments > full"),
        ("pool, payments full", "pool payments never is full"),
        ("pool, payments full", "pool payments is-full"),
        ("pool, payments full", "pool payments error full"),
        ("pool, payments full", "not pool payments is full"),
        ("pool, payments full", "pool payments is full-not"),
        ("pool, payments full", "pool-9 payments is full"),
        ("pool, full full", "pool is full"),
        ("full,", "is full"),
    ],
)
def test_a_word_more_or_another_order_or_record_is_no_paraphrase(excerpt: str, record: str) -> None:
    assert match(excerpt, record).rule == MISMATCH


@pytest.mark.parametrize("rare", [12, 20])
def test_a_paraphrase_is_found_behind_places_that_only_share_words(rare: int) -> None:
    others = "\n".join(f"payments pool {at} was idle" for at in range(rare))
    assert match("payments, pool is full", f"{others}\npayments pool is full\n{others}").rule == PARAPHRASE
    assert match("payments, pool is full", f"{others}\npayments pool half full\n{others}").rule == MISMATCH


@pytest.mark.parametrize("at", [0, 1, 4, 7])
def test_a_paraphrase_is_found_among_places_that_share_every_word(at: int) -> None:
    lines = ["payments pool is half full"] * 8
    assert match("payments, pool is full", f"\n{FILLER}\n".join(lines)).rule == MISMATCH
    lines[at] = "payments pool is full"
    assert match("payments, pool is full", f"\n{FILLER}\n".join(lines)).rule == PARAPHRASE


def test_a_hundred_places_that_share_every_word_are_no_paraphrase() -> None:
    assert match("payments, pool is full", "payments pool is half full\n" * 100).rule == MISMATCH


# Step 10


@pytest.mark.parametrize("before", ["", FILLER + "\n"])
@pytest.mark.parametrize("after", ["", "\n" + FILLER])
@pytest.mark.parametrize(
    ("excerpt", "line", "kind"),
    [
        ("request timed out after 30001ms", "request timed out after 30000ms", "digit"),
        ("request timed out after 30000s", "request timed out after 30000ms", "digit"),
        ("ledger-pg replica lags behind", "ledger-db replica lags behind", "entity"),
        ("connection to ledger is possible", "connection to ledger is not possible", "negation"),
        ("replica of ledger leads behind", "replica of ledger lags behind", "word"),
        ("连接池已经耗尽，请求被拒绝", "连接池已经耗尽，请求被延迟", "word"),
    ],
)  # fmt: skip
def test_the_nearest_miss_is_the_whole_line_that_was_meant(
    before: str, after: str, excerpt: str, line: str, kind: str
) -> None:
    found = nearest(excerpt, before + line + after)
    assert found.text == line
    assert found.start == len(before)
    assert 50.0 <= found.ratio < 100.0
    assert found.ratio == round(found.ratio, 1)
    assert found.difference == kind


def test_the_likeliest_of_several_places_is_told() -> None:
    ref = "ledger pool is idle now\nledger pool is full of requests since noon\nledger pool is full"
    assert (
        nearest("ledger pool is full of requests since nine", ref).text == "ledger pool is full of requests since noon"
    )
    assert nearest("ledger pool is idle, now", ref).start == 0
    assert nearest("ledger pool is slow", ref).text == "ledger pool is"


@pytest.mark.parametrize("place", [0, 40, 99])
def test_a_rare_word_finds_its_line_among_a_hundred_that_share_all_others(place: int) -> None:
    shared = "connection of ledger pool waits behind slow batch writers while other clients retry and give up"
    lines = [f"{shared} at {at}" for at in range(100)]
    lines[place] = f"{shared} at noon".replace("slow", "zonewise")
    ref = "\n".join(lines)
    found = nearest(lines[place].replace("retry", "fetch"), ref)
    assert found.text == lines[place]
    assert found.start == ref.index(lines[place])


@pytest.mark.parametrize("at", [0, 1, 2])
def test_of_places_with_the_same_words_the_one_in_the_same_order_is_told(at: int) -> None:
    lines = ["full requests pool ledger waits", "waits full ledger requests pool", "pool full requests waits ledger"]
    lines[at] = "ledger pool waits requests full"
    ref = f"\n{FILLER.replace('request', 'reply')}\n".join(lines)
    found = nearest("ledger pool waits 9 requests full", ref)
    assert found.start == ref.index(lines[at])
    assert found.text.startswith(lines[at])


@pytest.mark.parametrize("pools", [12, 30])
@pytest.mark.parametrize("changed", [0, 7, 11])
def test_the_nearest_miss_of_a_long_excerpt_begins_and_ends_with_whole_words(pools: int, changed: int) -> None:
    line = " ".join(f"pool-{at} of payments waits" for at in range(pools))
    found = nearest(line.replace(f"pool-{changed} ", "pool-99 "), f"{FILLER}\n{line}\n{FILLER}")
    assert found.start == len(FILLER) + 1
    assert found.text.startswith(line[:-10])
    assert found.difference == "digit"


def test_the_ratio_is_of_a_hundred_with_one_decimal() -> None:
    assert nearest("request timed out after 30001ms", "request timed out after 30000ms").ratio == 96.8


def test_the_nearest_miss_counts_the_unit_behind_a_number() -> None:
    assert (
        nearest("request waited for 3000", "request waited for 30000 ms then left").text
        == "request waited for 30000 ms"
    )
    assert nearest("request waited for 3000", "request waited for 30000 msgs then").text == "request waited for 30000"


@pytest.mark.parametrize("ref", ["", "quite another text", "request", FILLER])
def test_what_is_not_half_alike_has_no_nearest_miss(ref: str) -> None:
    assert match("certificate of ledger-db expired yesterday", ref).nearest_miss is None


@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [
        ("pool 5 is full", "pool 6 is full", "digit"), ("pool is not full 5", "pool is full 6", "negation"), ("waited 5 ms", "waited 5 s", "digit"),
        ("pool full", "pool full 5", "digit"), ("HikariPool-1 is full", "HikariPool-2 is full", "digit"), ("HikariPool-1 is full", "LedgerPool-1 is full", "entity"),
        ("ledger-db is full", "ledger-pg is full", "entity"), ("pool is full", "pool is idle", "word"), ("pool pool is full", "pool is full", "word"),
        ("a < 5", "a > 5", "entity"), ("pool is full", "full is pool", "word"), ("-5 units", "5 units", "digit"), ("-5 units left", "units left", "digit"), ("req 8f2a", "req", "digit"), ("$5 paid", "€5 paid", "entity"),
    ],
)  # fmt: skip
def test_the_gravest_difference_is_named(ours: str, theirs: str, kind: str) -> None:
    assert difference(ours, theirs) == kind
    assert difference(theirs, ours) == kind
