"""Where an excerpt may be cut, and where a cut takes a negation away (gate.md, steps 7 and 8)."""

from __future__ import annotations

import pytest

from handlers.excerpts import match


@pytest.mark.scenario("GAT-5")
@pytest.mark.parametrize(
    "cut",
    [
        "1|0 errors| today", "|used 12|.5% of disk", "used |12|.5%", "used 12.|5% of disk|", "used 12|.5% of disk|", "|used 12.5|% of disk", "1,|234 requests|",
        "|total 1|,234 requests", "|after 3000|0ms", "|after 30000|ms", "balance -|5 units left|", "pool|-5 units left|", "10.|0.0.12 is down|",
        "|host 10.0.0.1|2", "|host 10.0.0|.12", "|version 1.2|.3", "12:|30:45 pool full|", "2024|-05-01 pool full|", "|pool full (100|/100)", "|HikariPool|-1 is full",
        "ORA-|12154 was raised|", "non-|zero exit code seen|", "|finished error|-free", "|the node didn|'t match", "didn'|t match any node|", "|req 8f2a|-77 failed",
        "1\u202f|234 requests|", "|total 1|\u00a0234 requests", "x 1e|-5 is small|", "|x is 1e|-5", "$|500 per day|", "10|⁶ errors seen|", "|seen 10|⁶ errors", "caf|e\u0301 is full|",
        "|is cafe|\u0301 full", "max_|pool size is 20|", "共二|十个连接被占用|", "|延迟达到 30|秒", "|连接数 10|万", "|使用率 95|％", "Timeout|Exception was raised|", "5–|10 errors seen|",
        "|limit of 5|.x is set", "Non-|Zero exit code seen|", "|the exit was non|-zero", "error-|free run seen|", "sub-|pool of payments|", "db-payments-|east-2 pool|", "all-non-|zero exit codes|", "हि|न्दी पूल भरा है|", "|पूल भरा हि|न्दी", "|all runs error|-free-ish", "|pool full at 12|:30", "10\u200b|0 errors seen|",
    ],
)  # fmt: skip
def test_an_excerpt_may_not_begin_or_end_inside_a_word_or_number(cut: str) -> None:
    parts = cut.split("|")
    ref, excerpts = "".join(parts), parts[1::2]
    for excerpt in excerpts:
        found = match(excerpt, f"log: {ref} -- end")
        assert found.rule == "evidence.excerpt_mismatch", excerpt


@pytest.mark.parametrize(
    "cut",
    [
        "pool=|main, size=20|, idle=0", "payments-|pool is full now|", "|the payments|-pool is full", "log: |took 5|.", "took |30 s, then failed|", "a=1,|b=2|",
        "连接池|已耗尽，请求|失败", "|服务 payment-service|已停止", "共|20个连接|被占用", "|GET /v1/pay 200| in 5ms", "say \"|pool is full|\"", "'|pool is full|'", "(|total=20|)",
        "|temperature -5|, low", "x|, active=20|, y", "-|Xmx512m was set|", "ratio |5 %|", "|timed out after 30| seconds", "|pool main|...", "retry...|5 attempts left|", "non-stop-|pool is full|", "--|pool is full|--", "code 5 |37 errors seen|", "|errors seen 37| 5", "日志。|pool is full|。", "→|pool is full|…",
    ],
)  # fmt: skip
def test_a_cut_between_words_is_no_fault(cut: str) -> None:
    before, excerpt, after = cut.split("|")
    found = match(excerpt, before + excerpt + after)
    assert (found.rule, found.text) == (None, excerpt)


def test_a_clean_place_is_found_behind_one_that_is_cut() -> None:
    found = match("0 errors in pool", "10 errors in pool\n0 errors in pool")
    assert (found.rule, found.start, found.warnings) == (None, 18, ())


@pytest.mark.parametrize(
    "cut",
    [
        "is not |available, request timed out|", "was never really |healthy since the restart|", "cannot |reach ledger-db at all|", "isn't |reachable from the node|",
        "isn’t |reachable from the node|", "|Connection to ledger-db is| not available", "|The failover of ledger-db| was never done", "without |any replica of ledger-db|",
        "no |errors found in the log|", "节点不|可用，请求超时|", "节点没有|触发自动扩容|", "尚未|恢复正常服务|", "|服务 payment-service 当前|不可用", "the lease was never\n|renewed by the node|",
        "is \x1b[31mnot\x1b[0m |available, request timed out|", "is not (yet) |available for writes|", "无法|连接到数据库|", "非|预期的重启操作|",
    ],
)  # fmt: skip
def test_a_cut_within_three_tokens_of_a_negation_warns(cut: str) -> None:
    before, excerpt, after = cut.split("|")
    found = match(excerpt, before + excerpt + after)
    assert found.rule is None
    assert found.warnings == ("evidence.negation_clipped",)


def test_a_negation_inside_escaped_text_is_seen() -> None:
    found = match('available "today" at noon', r'{"msg": "is not available \"today\" at noon"}')
    assert (found.rule, found.warnings) == (None, ("evidence.negation_clipped",))


@pytest.mark.parametrize(
    "cut",
    [
        "is not available, |request timed out after 30000ms|", "never mind. |The pool is exhausted now|", "is not ready\n|2024-05-01 pool is exhausted|", "|the pool is not full|",
        "|pool is full|; not slow", "|not a word of it is true|", "不可用，|请求已超时|", "a notable |pool is full now|", "not one two three |pool is full now|", "|服务非常繁忙|", "服务|非常繁忙的状态|",
        '"ready":"not yet","|reason":"pool is full|"', 'restarts <none> |pool is full now|', 'msg="not available" |pool=main size=20|', "不过|连接池已耗尽|",
    ],
)  # fmt: skip
def test_a_negation_in_another_clause_or_further_away_does_not_warn(cut: str) -> None:
    before, excerpt, after = cut.split("|")
    found = match(excerpt, before + excerpt + after)
    assert (found.rule, found.warnings) == (None, ())


@pytest.mark.parametrize(
    ("cut", "warnings"),
    [
        ("is not |available for writes| now", ("evidence.negation_clipped",)),
        ("is fine. |The pool is full| now", ()),
        ("never mind. |The pool is full| now", ()),
        ("ready |pool is full| now; not slow", ()),
        ("ready |pool is full| and not slow", ("evidence.negation_clipped",)),
    ],
)
def test_a_negation_is_looked_for_around_the_cut_wherever_in_a_long_line(cut: str, warnings: tuple[str, ...]) -> None:
    before, excerpt, after = cut.split("|")
    found = match(excerpt, f"{'the node was well, ' * 30}{before}{excerpt}{after}{', the node was well' * 30}")
    assert (found.rule, found.warnings) == (None, warnings)


def test_a_quote_mark_at_one_end_is_no_wrapper() -> None:
    assert match("x pool is full'", "log: pool is full now").rule == "evidence.excerpt_mismatch"


def test_an_elision_next_to_a_negation_warns() -> None:
    found = match(
        "pool main Connection is ... timed out after 30000ms",
        "pool main Connection is not available, timed out after 30000ms",
    )
    assert (found.rule, found.warnings) == (None, ("evidence.negation_clipped",))
