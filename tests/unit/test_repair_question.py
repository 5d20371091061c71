"""The parts of a question: split at clear joints and nowhere else (ruling 12)."""

from __future__ import annotations

import pytest

from handlers.question import content_words, own_words, parts, vocabulary


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is payment-service out of connections?", ("Is payment-service out of connections?",)),
        ("What is the time-out? How many retries?", ("What is the time-out", "How many retries")),
        ("What is the time-out; who changed it?", ("What is the time-out", "who changed it")),
        ("超时是多少；谁改的？", ("超时是多少", "谁改的")),
        ("超时是多少，以及最多重试几次？", ("超时是多少", "最多重试几次")),
        ("What is the time-out, and how many retries?", ("What is the time-out", "how many retries")),
        ("What failed, and did the pool recover?", ("What failed", "did the pool recover")),
        ("1. What is the time-out 2. How many retries", ("What is the time-out", "How many retries")),
        ("请回答：1）超时是多少 2）重试几次", ("请回答", "超时是多少", "重试几次")),
        ("- time-out\n- retries", ("time-out", "retries")),
        ("超时时间、重试次数分别是多少？", ("超时时间", "重试次数分别是多少")),
    ],
)
def test_a_question_is_split_at_clear_joints(question: str, expected: tuple[str, ...]) -> None:
    found = parts(question)
    assert found == expected or found == expected[1:]


@pytest.mark.parametrize(
    "question",
    [
        "Why are errors, warnings, and restarts rising?",
        "Why did payment-service and ledger-db slow down?",
        "payment-service、ledger-db 为什么变慢？",
        "Is 3.5 s the time-out since version 2.1?",
        "payment-service 在 10:42 之后为什么超时？？",
        "What happened at 2. shift?",
    ],
)
def test_a_list_of_nouns_or_a_number_is_no_joint(question: str) -> None:
    assert len(parts(question)) == 1


def test_a_question_of_nothing_has_no_parts() -> None:
    assert parts("  ") == ()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("retries", "the client retried"),
        ("connections", 'hikaricp_connections_active{pool="p"}'),
        ("payment-service", "PaymentService is down"),
        ("payment-service", "payment_service is down"),
        ("does it time out", "the timeout is 3s"),
        ("what is the time-out", "requests timed out"),
        ("连接池", "数据库连接池已耗尽"),
    ],
)
def test_a_word_is_found_in_its_other_forms(asked: str, said: str) -> None:
    assert {word.stem for word in content_words(asked)} & vocabulary([said])


@pytest.mark.parametrize(
    ("asked", "said"),
    [("retries", "the time-out"), ("为什么超时", "连接池为什么满了"), ("which pool is full", "which one is it")],
)
def test_function_words_tie_nothing_together(asked: str, said: str) -> None:
    assert not {word.stem for word in content_words(asked)} & vocabulary([said])


def test_a_part_is_told_by_the_words_that_no_other_part_has() -> None:
    first, second = own_words(("payment-service time-out", "payment-service retries"))
    assert not first & second
    assert first
    assert second
