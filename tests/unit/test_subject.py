"""What a question names, and what an answer without a model does when nothing that was searched has that name."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from handlers.agents.subject import named, subjects
from handlers.report import turn_report
from streams.events import QuestionAsked, Sources
from tests.play import Stage

LOG = """\
2026-03-17T10:09:01Z ERROR payment-service charge failed: request timed out after 30000ms
2026-03-17T10:09:02Z WARN payment-service retrying the charge
2026-03-17T10:09:03Z INFO ledger-db checkpoint complete
2026-03-17T10:09:04Z ERROR payment-service circuit breaker for ledger-db is open
"""


@pytest.mark.parametrize(
    ("question", "names"),
    [
        ("Why is kafka lagging?", ("kafka",)),
        ("Why does ledger-svc lag?", ("ledger-svc",)),
        ("Is redis up?", ("redis",)),
        ("is RabbitMQ healthy?", ("rabbitmq",)),
        ("kafka 为什么积压？", ("kafka",)),
        ("Why are there errors in checkout?", ("checkout",)),
        ("Why is the nightly billing job failing since 3 am?", ("billing",)),
        ("What happened to vault last night?", ("vault",)),
        ("Why is the website down?", ()),
        ("Why do customers see errors?", ()),
        ("Why is the website returning errors?", ()),
        ("Is there a memory leak?", ()),
        ("Are we running out of disk?", ()),
        ("Pod 一直 Pending 是什么原因", ()),
        ("Why does it say OOMKilled?", ()),
        ("为什么支付超时？", ()),
        ("", ()),
    ],
)
def test_a_question_s_names_are_compounds_and_the_words_in_its_subject_s_place(
    question: str, names: tuple[str, ...]
) -> None:
    assert subjects(question) == names


@pytest.mark.parametrize(
    ("subject", "text", "held"),
    [
        ("kafka", "KafkaConsumer closed", True),
        ("ledger-db", "pod ledger_db-0 is ready", True),
        ("payment-service", "PaymentService stopped", True),
        ("payments", "POST /v1/payment 500", True),
        ("ledger-svc", "pod ledger-db-0 is ready", False),
        ("redis", "a redirect was sent", False),
    ],
)
def test_a_name_is_found_whatever_its_case_separators_and_plural(subject: str, text: str, held: bool) -> None:
    assert named(subject, ["another line", text]) is held


def ask(question: str, folder: Path, name: str = "app.log") -> dict[str, Any]:
    (folder / name).write_text(LOG, encoding="utf-8")

    async def played() -> dict[str, Any]:
        stage = Stage()
        await stage.ask(QuestionAsked(question=question, lang="en", sources=Sources(logs=(str(folder),))))
        state = await stage.run()
        return turn_report(state, state.turns[-1])

    return asyncio.run(played())


def test_lines_about_something_else_do_not_pass_as_an_answer(tmp_path: Path) -> None:
    report = ask("Why is kafka lagging?", tmp_path)
    assert report["effective_verdict"] == "LOW_CONFID"
    assert 'No record containing "kafka" was found' in report["response"]["text"]
    assert "charge failed" in report["response"]["text"]
    assert "nothing of the name" in report["verifier_evaluation"]["rationale"]


def test_a_narrow_question_about_what_nothing_names_is_answered_by_the_search_alone(tmp_path: Path) -> None:
    report = ask("Is redis up?", tmp_path)
    assert report["effective_verdict"] == "LOW_CONFID"
    assert "charge failed" not in report["response"]["text"]
    assert [one["raw_path"] for one in report["response"]["citations"]] == ["summary"]


@pytest.mark.parametrize("question", ["Why does payment-service time out?", "Why is the website down?"])
def test_a_question_whose_name_is_known_or_that_names_nothing_gets_its_lines(question: str, tmp_path: Path) -> None:
    report = ask(question, tmp_path)
    assert report["effective_verdict"] == "PASS"
    assert "No record" not in report["response"]["text"]
    assert "timed out after 30000ms" in report["response"]["text"]


def test_the_name_of_the_file_names_its_lines(tmp_path: Path) -> None:
    report = ask("Why is kafka lagging?", tmp_path, "kafka.log")
    assert "No record" not in report["response"]["text"]
