"""What an answer without a model quotes for the questions that people ask: of one thing's health, of what is not there, of
how many; and how it tells JSON records and stack traces."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from handlers.agents.offline_counts import asks_how_many, counts, says_number, tallies
from handlers.agents.offline_evidence import metric_weight
from handlers.agents.offline_quotes import excerpt_of, reading_form
from handlers.agents.subject import asked_things, named, subjects
from handlers.report import turn_report
from streams.events import QuestionAsked, Sources
from tests.play import Stage

PODS = """\
NAME                               READY   STATUS             RESTARTS   AGE
payment-service-6c9f7d5b8-x2k4p    0/1     CrashLoopBackOff   14         52m
receipts-5d8b7c6f4-9hq2z           1/1     Running            0          6d
ledger-db-0                        1/1     Running            0          20d
"""
PREVIOUS = """\
starting payment-service 4.2.0
Error: required variable LEDGER_DB_URL is not set
    at readEnv (/srv/env.js:11:9)
"""
DESCRIBED = """\
Name:             payment-service-6c9f7d5b8-x2k4p
    State:          Waiting
      Reason:       CrashLoopBackOff
    Restart Count:  14
    Liveness:       http-get http://:8080/healthz delay=5s timeout=1s period=10s #success=1 #failure=3
Events:
  Warning  BackOff  2m (x240 over 52m)  kubelet  Back-off restarting failed container in pod payment-service-6c9f7d5b8-x2k4p
"""


def asked(question: str, sources: Sources, lang: Any = "en") -> dict[str, Any]:
    async def played() -> dict[str, Any]:
        stage = Stage()
        await stage.ask(QuestionAsked(question=question, lang=lang, sources=sources))
        state = await stage.run()
        return turn_report(state, state.turns[-1])

    return asyncio.run(played())


def claims(report: dict[str, Any]) -> list[str]:
    output = report["verifier_evaluation"]["executor_structured_output"]
    return [claim["claim_text"] for claim in output["claims"]]


@pytest.fixture
def cluster(tmp_path: Path) -> Sources:
    folder = tmp_path / "cluster"
    folder.mkdir()
    for name, text in (("pods.txt", PODS), ("previous.txt", PREVIOUS), ("described.txt", DESCRIBED)):
        (folder / name).write_text(text, encoding="utf-8")
    return Sources(tools={"kubectl": (str(folder),)})


@pytest.fixture
def logs(tmp_path: Path) -> Sources:
    calm = [f"2026-03-17T10:{at // 60:02d}:{at % 60:02d}Z INFO [receipts] heartbeat ok" for at in range(400)]
    loud = [
        f"2026-03-17T10:05:{at:02d}Z ERROR [payment-service] HikariPool-1 - request timed out after 30000ms"
        for at in range(37)
    ]
    file = tmp_path / "all.log"
    file.write_text("\n".join((*calm, *loud)) + "\n", encoding="utf-8")
    return Sources(logs=(str(file),))


def test_the_health_of_one_thing_is_told_by_the_records_that_name_it(cluster: Sources, logs: Sources) -> None:
    assert claims(asked("Is receipts healthy?", cluster)) == [
        'The recorded state shows: "receipts-5d8b7c6f4-9hq2z 1/1 Running 0 6d"'
    ]
    said = claims(asked("Is receipts healthy?", logs))
    assert said and all("[receipts] heartbeat ok" in claim for claim in said)


def test_what_describes_one_thing_speaks_of_it_in_every_line(cluster: Sources) -> None:
    said = claims(asked("Is payment-service healthy?", cluster))
    assert any("CrashLoopBackOff" in claim for claim in said)
    assert not any("receipts" in claim for claim in said)


def test_each_recorded_output_has_its_say_in_a_question_of_why(cluster: Sources) -> None:
    said = claims(asked("Why is payment-service crashing?", cluster))
    assert any("LEDGER_DB_URL is not set" in claim for claim in said[:3])
    assert not any("Liveness" in claim for claim in said)


@pytest.mark.parametrize(
    ("question", "term", "verdict"),
    [("Was there an OutOfMemoryError?", "OutOfMemoryError", "PASS"), ("Was the disk full?", "disk", "LOW_CONFID")],
)
def test_a_condition_that_no_record_has_is_denied_and_not_answered_by_other_lines(
    question: str, term: str, verdict: str, logs: Sources
) -> None:
    report = asked(question, logs)
    assert report["effective_verdict"] == verdict
    assert [one["raw_path"] for one in report["response"]["citations"]] == ["summary"]
    assert f'"{term}"' in claims(report)[0]
    assert report["response"]["text"].isascii()


def test_how_many_is_answered_by_how_often_the_kind_occurs(logs: Sources) -> None:
    said = claims(asked("How many errors are there?", logs))
    assert "count=37" in said[0]
    assert "request timed out" in said[0]


def test_how_many_of_what_a_record_counts_is_answered_by_that_record(cluster: Sources) -> None:
    said = claims(asked("How many times did payment-service restart?", cluster))
    assert any("Restart Count: 14" in claim for claim in said[:3])


def test_lines_that_count_nothing_do_not_pass_for_a_number(logs: Sources) -> None:
    report = asked("How many 502 responses did payment-service give?", logs)
    assert report["effective_verdict"] == "LOW_CONFID"
    assert "asks how many" in report["verifier_evaluation"]["rationale"]


@pytest.mark.parametrize(
    ("line", "counted"),
    [
        ('"RestartCount": 61', True),
        ("restart counter is at 3", True),
        ("count=37 of=437 level=error", True),
        ("ledger_db_errors_total value=12", True),
        ("active threads 200/200", True),
        ("2026/03/17 10:05:00 [error] 29#29: connect() failed (111: Connection refused)", False),
        ("10.0.4.17:9000 answered 502", False),
    ],
)
def test_a_line_counts_where_it_states_a_number_of_things(line: str, counted: bool) -> None:
    assert counts([line]) is counted


def test_questions_of_how_many() -> None:
    assert asks_how_many("How many errors?") and asks_how_many("有多少个报错?") and asks_how_many("重启了几次?")
    assert not asks_how_many("How long does it take?") and not asks_how_many("耗时多少时间")
    assert tallies("How many errors?") and not tallies("How many 502 responses?")
    assert says_number("payment-service restarted 14 times") and says_number("twice")
    assert not says_number('The log says: "restarted 14 times"')


def test_a_stack_trace_is_quoted_by_its_last_cause_and_never_by_a_frame() -> None:
    trace = (
        "java.lang.IllegalStateException: charge aborted\n\tat com.example.Charge.run(Charge.java:88)\n"
        "Caused by: java.sql.SQLTransientConnectionException: HikariPool-1 - Connection is not available\n"
        "\tat com.example.PoolException.raise(PoolException.java:7)\n\t... 3 more"
    )
    assert excerpt_of(trace).startswith("Caused by: java.sql.SQLTransientConnectionException")
    framed = 'Traceback (most recent call last):\n  File "/srv/fail.py", line 3, in fail_error\nOSError: no space left'
    assert excerpt_of(framed) == "OSError: no space left"


def test_a_json_record_is_told_with_what_went_wrong_in_it() -> None:
    pino = {
        "level": 50,
        "time": 1773741600000,
        "err": {"type": "PoolError", "message": "ledger-db refused"},
        "msg": "charge failed",
    }
    assert reading_form(json.dumps(pino)) == "ERROR charge failed (err=ledger-db refused)"
    zap = {"level": "error", "msg": "charge failed", "error": f"dial ledger-db: {'x509 ' * 20}expired", "attempt": 3}
    assert "expired, attempt=3)" in reading_form(json.dumps(zap))
    serilog = {"@t": "2026-03-17T10:05:00Z", "@l": "Error", "@mt": "Charge {ChargeId} failed", "ChargeId": 7731}
    assert reading_form(json.dumps(serilog)) == "Error Charge 7731 failed (ChargeId=7731)"


def test_a_target_that_is_down_says_more_than_one_that_is_up() -> None:
    down, well = ('up{job="ledger-db"} value=0', 'up{job="payment-service"} value=1')
    assert metric_weight(down) >= 1.0 > metric_weight(well)
    assert metric_weight('replicas_unavailable{job="payment-service"} value=0') < 1.0


def test_short_names_are_words_of_their_own_and_verbs_are_no_names() -> None:
    assert subjects("Is pg healthy?") == ("pg",)
    assert named("pg", ["5432->5432/tcp pg"]) and not named("pg", ["pgtables: 12924kB"])
    assert subjects("Why did the database reject connections?") == ()


def test_a_condition_goes_before_the_words_of_a_resource() -> None:
    assert asked_things("Is there an OOMKilled container?") == (("OOMKilled",),)
    assert "disk" in asked_things("Was the disk full?")[0]
    assert asked_things("Is payment-service healthy?") == ()


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("为什么支付服务超时?", ("支付服务",)),
        ("请问昨天的结算系统正常吗?", ("结算系统",)),
        ("后端服务为什么慢?", ()),
        ("服务为什么重启?", ()),
    ],
)
def test_a_system_has_a_chinese_name(question: str, names: tuple[str, ...]) -> None:
    assert subjects(question) == names


def test_a_chinese_name_is_denied_only_where_systems_have_chinese_names(tmp_path: Path) -> None:
    file = tmp_path / "app.log"
    file.write_text("2026-03-17 10:05:00 [ERROR] [账本服务] 连接被拒绝 ledger-db:5432\n", encoding="utf-8")
    report = asked("支付服务有异常吗?", Sources(logs=(str(file),)), "zh-CN")
    assert report["effective_verdict"] == "LOW_CONFID"
    assert "支付服务" in claims(report)[0] and "账本服务" not in report["response"]["text"]
    file.write_text("2026-03-17 10:05:00 ERROR [payment-service] request timed out\n", encoding="utf-8")
    report = asked("支付服务为什么超时?", Sources(logs=(str(file),)), "zh-CN")
    assert "request timed out" in claims(report)[0]


def test_both_halves_of_a_question_are_answered(cluster: Sources) -> None:
    said = claims(asked("Is receipts healthy and why does payment-service crash?", cluster))
    assert any("receipts-5d8b7c6f4-9hq2z 1/1 Running" in claim for claim in said)
    assert any("LEDGER_DB_URL is not set" in claim for claim in said)


def test_the_value_of_a_key_that_the_question_names_is_quoted(cluster: Sources) -> None:
    said = claims(asked("What is the restart count of payment-service?", cluster))
    assert any("Restart Count: 14" in claim for claim in said[:3])


def test_how_many_of_one_thing_is_not_answered_by_the_number_of_another(cluster: Sources) -> None:
    said = claims(asked("How many times did receipts restart?", cluster))
    assert said and all("receipts" in claim for claim in said)
