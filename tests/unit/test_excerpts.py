"""The excerpt matcher, step by step (gate.md, "Excerpt matching")."""

from __future__ import annotations

import hashlib
import unicodedata

import pytest

from handlers.excerpts import Match, full_lines, is_trivial, match, normalize

LINE = (
    "2024-05-01T10:00:00Z ERROR [pool-1] HikariPool-1 - Connection is not available, "
    "request timed out after 30000ms (total=20, active=20, idle=0, waiting=37)"
)
LOG = f"2024-05-01T09:59:58Z INFO payment-service started\n{LINE}\n2024-05-01T10:00:02Z WARN ledger-db replica is lagging\n"
MISMATCH = "evidence.excerpt_mismatch"
CASE = "evidence.excerpt_case"
CLIPPED = "evidence.negation_clipped"
AMBIGUOUS = "evidence.ambiguous_span"


def supported(excerpt: str, ref: str, tier: str) -> Match:
    found = match(excerpt, ref)
    assert (found.rule, found.tier, found.trivial) == (None, tier, False)
    assert found.start is not None
    assert found.text == ref[found.start : found.end]
    return found


@pytest.mark.scenario("GAT-1")
def test_an_exact_excerpt_gives_its_span_the_sources_text_its_line_and_the_refs_hash() -> None:
    excerpt = "request timed out after 30000ms (total=20"
    found = supported(excerpt, LOG, "exact")
    assert (found.text, found.start) == (excerpt, LOG.index(excerpt))
    assert found.spans == ((found.start, found.end),)
    assert found.lines == LINE
    assert found.warnings == ()
    assert found.nearest_miss is None
    assert found.ref_sha256 == hashlib.sha256(LOG.encode()).hexdigest()


@pytest.mark.parametrize(
    ("excerpt", "source"),
    [
        ("pool  payments   is\tfull now", "pool payments is full now"),
        ("pool payments is full now", "pool payments is\r\n  full now"),
        ("pool payments is\nfull now", "pool payments is\rfull now"),
        ("pool payments is full now", "pool \x1b[1;31mpayments\x1b[0m is full now"),
        ("pool payments is full now", "pool \x1b]8;;http://x/?a=1\x07payments\x1b]8;;\x07 is full now"),
        ("pool payments is full now", "pool \x1b]8;;http://x/?a=1\x1b\\payments\x1b]8;;\x1b\\ is full now"),
        ("pool “payments” isn’t full", 'pool "payments" isn\'t full'),
        ("pool 「payments」 is full", 'pool "payments" is full'),
        ("pool–payments — is full now", "pool-payments - is full now"),
        ("change of −5 units today", "change of -5 units today"),
        ("pool pay\u200bments is\ufeff full now", "pool payments is full now"),
        ("pool payments is full now", "pool \u200fpay\u00adments\u202c is full now"),
        ("pool\u00a0payments\u2009is\u3000full now", "pool payments is full now"),
        (unicodedata.normalize("NFD", "café ist überlastet"), "café ist überlastet"),
        ("café ist überlastet 서울", unicodedata.normalize("NFD", "café ist überlastet 서울")),
        ("连接池已耗尽，请求被拒绝", "连接池\n已耗尽，\n请求被拒绝"),
    ],
)
def test_both_sides_are_normalised_and_the_span_covers_what_the_source_has(excerpt: str, source: str) -> None:
    ref = f"first line of the log\n{source}\nlast line of the log"
    assert supported(excerpt, ref, "normalized").text == source


@pytest.mark.parametrize("changed", ["10⁶ errors seen today", "x² grows over time", "½ of the pool is used"])
def test_compatibility_characters_keep_their_meaning(changed: str) -> None:
    assert match(unicodedata.normalize("NFKC", changed), changed).rule == MISMATCH
    assert supported(changed, f"log: {changed}", "exact").text == changed


@pytest.mark.parametrize(
    ("excerpt", "ref"),
    [
        ('could not open "ledger" twice', r'{"msg": "could not open \"ledger\" twice"}'),
        ("PSQLException\n\tat LedgerDao.insert", r'{"err": "PSQLException\n\tat LedgerDao.insert"}'),
        ("not ready yet, café 😀 waits", r'{"err": "x\nnot ready yet, caf\u00e9 \ud83d\ude00 waits"}'),
        (r"could not open \"ledger\" twice\nthen gave up", 'could not open "ledger" twice\nthen gave up'),
        ('limit <b> & "max" reached', "limit &lt;b&gt; &amp; &quot;max&quot; reached"),
        ("limit &lt;b&gt; &#38; &#x22;max&#x22; reached", 'limit <b> & "max" reached'),
        ("pool is full today", r'{"m": "\u001b[31mpool\u001b[0m is full today"}'),
    ],
)
def test_one_level_of_escapes_is_undone_on_either_side(excerpt: str, ref: str) -> None:
    supported(excerpt, ref, "unescaped")


def test_two_levels_of_escapes_are_not_undone() -> None:
    assert match("limit <b> reached today", "limit &amp;lt;b&amp;gt; reached today").rule == MISMATCH


@pytest.mark.parametrize(
    "wrapped",
    [
        '"{}"', "'{}'", "“{}”", "「{}」", "『{}』", "`{}`", "``{}``", "```\n{}\n```", "```log\n{}\n```", "~~~text\n{}\n~~~", "```{}```",
        "> {}", "{}...", "{} ...", "{}…", "{} (truncated)", "{}... (truncated)", "{} [truncated]", "{}（已截断）",
    ],
)  # fmt: skip
def test_one_wrapper_is_taken_off_the_excerpt(wrapped: str) -> None:
    excerpt = "request timed out after 30000ms"
    assert supported(wrapped.format(excerpt), LOG, "unwrapped").text == excerpt


def test_a_block_quote_of_several_lines_is_one_wrapper() -> None:
    assert supported("> payment-service started\n> 2024-05-01T10:00:00Z ERROR [pool-1]", LOG, "unwrapped").start == 26


def test_a_wrapper_does_not_hide_a_cut_number() -> None:
    assert match("request timed out after 300...", LOG).rule == MISMATCH
    assert match('"0ms (total=20, active=20"', LOG).rule == MISMATCH


@pytest.mark.parametrize("mark", [" ... ", "...", "…", " [...] ", " […] ", "……"])
def test_parts_in_order_in_one_record_are_accepted(mark: str) -> None:
    found = supported(f"ERROR [pool-1] HikariPool-1{mark}total=20, active=20", LOG, "elided")
    assert found.text == LINE[LINE.index("ERROR") : LINE.index(", idle")]


def test_dots_that_stand_in_the_source_are_matched_literally_first() -> None:
    supported("Waiting for pool... retrying in 5s", "Waiting for pool... retrying in 5s", "exact")


def test_parts_of_different_records_are_stitched() -> None:
    assert match("payment-service started ... ledger-db replica is lagging", LOG).rule == "evidence.excerpt_stitched"
    array = '[{"pool": "payments is full"}, {"pool": "refunds is idle"}]'
    assert match("payments is full ... refunds is idle", array).rule == "evidence.excerpt_stitched"
    nested = '{"result": [{"pool": "payments is full"}, {"pool": "refunds is idle"}]}'
    assert match("payments is full ... refunds is idle", nested).rule == "evidence.excerpt_stitched"


def test_an_element_of_a_json_array_is_one_record_over_its_lines() -> None:
    array = '[\n {"pool": "payments is full",\n  "service": "payment-service"},\n {"pool": "refunds is idle"}\n]'
    supported('"payments is full" ... "payment-service"', array, "elided")
    assert match('"payment-service" ... "refunds is idle"', array).rule == "evidence.excerpt_stitched"


def test_the_frames_of_a_stack_trace_are_one_record() -> None:
    trace = "SQLException: pool exhausted\n\tat a.b.LedgerDao.insert(LedgerDao.java:42)\nCaused by: PSQLException: slots reserved"
    supported("SQLException: pool exhausted ... PSQLException: slots reserved", trace, "elided")


def test_parts_out_of_order_or_without_information_are_a_mismatch() -> None:
    assert match("total=20, active=20 ... ERROR [pool-1] HikariPool-1", LOG).rule == MISMATCH
    assert match("ledger-db replica is lagging ... payment-service started", LOG).rule == MISMATCH
    assert match("HikariPool-1 ... not ... total=20", LOG).rule == MISMATCH


def test_another_case_is_accepted_with_a_warning_and_boundaries_still_hold() -> None:
    assert CASE in supported("REQUEST Timed Out after 30000MS", LOG, "casefolded").warnings
    assert match("EQUEST TIMED OUT", LOG).rule == MISMATCH
    assert supported("DIE STRASSE IST VOLL", "log: die Straße ist voll!", "casefolded").text == "die Straße ist voll"
    assert supported("POOL Ist Voll", "İİ ßß pool ist voll", "casefolded").start == 6


@pytest.mark.parametrize(
    ("ours", "theirs"), [("5m of memory left", "5M of memory left"), ("10Mb of disk left", "10MB of disk left")]
)
def test_case_that_makes_another_unit_is_a_mismatch(ours: str, theirs: str) -> None:
    assert match(ours, theirs).rule == MISMATCH


def test_several_places_are_all_kept_with_a_warning() -> None:
    found = supported("payment-service started", LOG + LOG, "exact")
    assert found.spans == ((26, 49), (26 + len(LOG), 49 + len(LOG)))
    assert found.warnings == (AMBIGUOUS,)


def test_a_place_that_holds_the_excerpt_to_the_letter_comes_before_one_that_does_not() -> None:
    found = supported("pool is full", "pool  is full\npool is full", "exact")
    assert found.spans == ((14, 26), (0, 13))
    assert found.warnings == (AMBIGUOUS,)


@pytest.mark.scenario("GAT-5")
@pytest.mark.parametrize(
    ("kind", "excerpt", "difference"),
    [
        ("digit", "request timed out after 30001ms", "digit"),
        ("digit dropped", "request timed out after 3000ms", "digit"),
        ("number added", "request timed out after 3 times 30000ms", "digit"),
        ("entity", "ledger-pg replica is lagging", "entity"),
        ("antonym", "ledger-db replica is leading", "word"),
        ("negation dropped", "Connection is available, request timed out", "negation"),
        ("negation added", "payment-service not started", "negation"),
        ("unit", "request timed out after 30000s (total=20", "digit"),
        ("cut start", "000ms (total=20, active=20", "digit"),
        ("cut end", "request timed out after 3000", "digit"),
        ("appended cause", "ledger-db replica is lagging because orders flooded it", "word"),
    ],
)
def test_a_tampered_excerpt_is_refused_and_the_nearest_miss_names_the_kind(
    kind: str, excerpt: str, difference: str
) -> None:
    found = match(excerpt, LOG)
    assert (found.rule, found.text, found.spans, found.lines) == (MISMATCH, None, (), None), kind
    assert found.nearest_miss is not None
    assert found.nearest_miss.difference == difference
    assert LOG[found.nearest_miss.start : found.nearest_miss.end] == found.nearest_miss.text


def test_fabricated_reordered_and_foreign_text_is_refused() -> None:
    assert match("certificate of ledger-db expired yesterday", LOG).rule == MISMATCH
    assert match("timed out request after 30000ms", LOG).rule == MISMATCH
    assert match("request timed out after 30000ms", "another ref\nof another call").rule == MISMATCH
    assert match("request timed out after 30000ms", "").rule == MISMATCH


@pytest.mark.parametrize("excerpt", ["available, request timed out", "ERROR [pool-1] HikariPool-1 - Connection is"])
def test_an_excerpt_cut_next_to_a_negation_warns_and_shows_the_whole_line(excerpt: str) -> None:
    found = supported(excerpt, LOG, "exact")
    assert found.warnings == (CLIPPED,)
    assert found.lines == LINE


@pytest.mark.parametrize("excerpt", [None, "", "  \n\t", "\u200b\ufeff", "\x1b[31m\x1b[0m"])
def test_no_excerpt_or_one_that_normalises_to_nothing_is_missing(excerpt: str | None) -> None:
    found = match(excerpt, LOG)
    assert (found.rule, found.trivial, found.nearest_miss) == ("evidence.excerpt_missing", False, None)


def test_too_large_is_refused_and_never_cut() -> None:
    assert match("x " * 1000, "x " * 1000).rule is None
    assert match("x " * 1000 + "x", "x " * 1001).rule == "evidence.too_large"
    assert match("pool is full now", "pool is full now" + "x" * (256 * 1024 - 16)).rule == MISMATCH
    assert match("pool is full now", "pool is full now " + "x" * (256 * 1024 - 17)).rule is None
    assert match("pool is full now", "pool is full now " + "x" * (256 * 1024 - 16)).rule == "evidence.too_large"
    assert match("pool is full now", "pool is full now " + "池" * (86 * 1024)).rule == "evidence.too_large"


@pytest.mark.parametrize(
    "excerpt",
    [
        "ERROR",
        '"value":[',
        "error",
        "failed",
        "Running",
        "错误",
        "ERROR ERROR",
        "500",
        "WARN",
        "timeout",
        "x=",
        "null",
        "-----",
        "12:00:01",
    ],
)
def test_trivial_excerpts_carry_no_information(excerpt: str) -> None:
    assert is_trivial(excerpt)


@pytest.mark.parametrize(
    "excerpt",
    ["idle=0", '"up":1', "95%", "30000ms", "10.0.0.1", "payment-service", "OOMKilled", "ORA-12154", "tx-8f2a", "max_pool", "Status: Running",
     "连接失败", "timed out", "level=error", "v1.2.3", "NullPointerException", "ECONNREFUSED", "EPIPE", "v1.2", "E11000", "db-01",
     "0 errors", "2/3 ready", "exit 1", "not ok", "Unhealthy", "错误 5", "5 %", "30 ms"],
)  # fmt: skip
def test_a_pair_a_unit_an_identifier_or_two_words_carry_information(excerpt: str) -> None:
    assert not is_trivial(excerpt)


@pytest.mark.parametrize("excerpt", ["ERROR", "```log\nERROR\n```", "ERROR (truncated)", "“ERROR”", "ERROR..."])
def test_a_trivial_excerpt_is_found_and_called_trivial_whatever_wraps_it(excerpt: str) -> None:
    found = match(excerpt, LOG)
    assert (found.rule, found.trivial, found.text) == (None, True, "ERROR")


@pytest.mark.parametrize(
    "excerpt",
    [
        "Connection not available, request timed out after 30000ms",
        "request timed out after 30000ms total 20 active 20 idle 0 waiting 37",
        "HikariPool-1: Connection is not available; request timed out",
        "timed out after 30000 ms total 20",
    ],
)
def test_same_words_in_order_in_one_record_are_a_paraphrase(excerpt: str) -> None:
    found = match(excerpt, LOG)
    assert (found.rule, found.tier, found.text) == ("evidence.excerpt_paraphrase", None, None)


@pytest.mark.parametrize(
    ("excerpt", "ref"),
    [
        ("Connection is available request timed out", LOG),
        ("available request timed out after 30000ms", LOG),
        ("total 20 idle 0", LOG),
        ("timed out after 30000 s total 20", LOG),
        ("timed out after 30000 total 20", LOG),
        ("started ERROR pool", LOG),
        ("orders pool healthy", "orders pool exhausted; ledger pool is healthy"),
        ("connection reach ledger-db", "connection failed to reach ledger-db"),
        ("latency 500ms on ledger-db", "latency > 500ms on ledger-db"),
        ("latency < 500ms on ledger-db", "latency > 500ms on ledger-db"),
        ("cost 500 per day", "cost: $500 per day"),
        ("234 requests failed", "1\u202f234 requests failed"),
        ("延迟30，恢复", "延迟30秒，恢复"),
        ("服务：已恢复", "服务尚未：已恢复"),
        ("retry with payment-service", "retry order-service with payment-service"),
        ("the pool exhausted and requests queue", "the pool is rarely exhausted and requests queue"),
        ("ledger database, unavailable for writes", "ledger database temporarily unavailable for writes"),
        ("release of ledger failed on node", "release of ledger partially failed on the node"),
        ("pool seldom reached its limit", "the pool seldom reached the upper limit"),
        ("requests to ledger: succeed", "requests to ledger sometimes succeed"),
        ("refund cancelled by the user", "refund was allegedly cancelled by the user"),
        ("connection refused by database", "connection refused by the replica database"),
        ("primary and standby disagree", "primary and second standby disagree"),
        ("statement blocked vacuum", "statement was blocked by vacuum"),
        ("payments pool waits 5 M", "payments pool waits: 5m"),
    ],
)
def test_what_leaves_out_a_number_a_negation_or_a_turning_word_is_no_paraphrase(excerpt: str, ref: str) -> None:
    assert match(excerpt, ref).rule == MISMATCH


@pytest.mark.parametrize(
    ("excerpt", "ref"),
    [
        ("timed out after 30000 ms on pool", "timed out after 30000ms on pool"),
        ("timed out after 30000ms on pool", "timed out after 30000 ms on pool"),
        ("error rate: 5 %", "error rate: 5%"),
        ("error rate: 5%", "error rate: 5 %"),
        ("limit 512 Mi reached", "limit 512Mi reached"),
        ("limit 1.5GiB reached", "limit 1.5 GiB reached"),
        ("等待37个连接", "等待 37 个连接"),
    ],
)
def test_a_space_between_number_and_unit_is_a_paraphrase_and_no_other_figure(excerpt: str, ref: str) -> None:
    found = match(excerpt, ref)
    assert found.rule == "evidence.excerpt_paraphrase"
    assert found.nearest_miss is not None
    assert found.nearest_miss.difference == "word"


@pytest.mark.parametrize(
    ("excerpt", "ref"), [("30000ms on pool", "30000s on pool"), ("30000 ms on pool", "3000 ms on pool")]
)
def test_a_changed_unit_or_figure_is_told_as_a_digit(excerpt: str, ref: str) -> None:
    found = match(f"timed out after {excerpt}", f"timed out after {ref}")
    assert found.rule == MISMATCH
    assert found.nearest_miss is not None
    assert found.nearest_miss.difference == "digit"


def test_a_level_in_capitals_between_the_words_may_be_left_out() -> None:
    assert match("ledger: pool exhausted", "ledger WARN pool exhausted").rule == "evidence.excerpt_paraphrase"
    assert match("ledger: pool exhausted", "ledger worker pool exhausted").rule == MISMATCH


@pytest.mark.parametrize(
    ("excerpt", "ref"), [("file lost here", "ﬁle lost here"), ("oﬀline node here", "Offline node here")]
)
def test_a_ligature_is_no_case_of_two_letters(excerpt: str, ref: str) -> None:
    assert match(excerpt, ref).rule == MISMATCH
    assert match(excerpt.replace(" ", ", ", 1), ref).rule == MISMATCH
    assert match(ref.upper() if "ﬁ" not in ref else ref.replace("lost", "LOST"), ref).warnings == (
        "evidence.excerpt_case",
    )


def test_lines_are_whole_and_at_most_the_limit_with_the_hit_in_the_middle() -> None:
    assert full_lines("a\nbb cc\r\ndd\n", 2, 4) == "bb cc"
    assert full_lines("a\nbb cc\r\ndd\n", 5, 11) == "bb cc\r\ndd"
    long = "连" * 2000 + "HIT" + "é" * 2000
    cut = full_lines(long, 2000, 2003)
    assert 2048 - 3 <= len(cut.encode()) <= 2048
    left, right = cut.split("HIT")
    assert abs(len(left.encode()) - len(right.encode())) <= 4
    assert set(left) == {"连"}
    assert set(right) == {"é"}
    assert full_lines("HIT" + "x" * 5000, 0, 3) == "HIT" + "x" * 2045
    assert full_lines("x" * 5000 + "HIT", 5000, 5003) == "x" * 2045 + "HIT"
    assert full_lines("a" * 100 + "b" * 4000 + "c" * 100, 100, 4100) == "b" * 2048


def test_normalize_keeps_case_digits_and_punctuation() -> None:
    assert normalize(" “A”\t–\u00a0b\u200b 1,5\r\n½ ") == '"A" - b 1,5 ½'
