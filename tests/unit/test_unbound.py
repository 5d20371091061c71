"""A claim without a binding: the reader is told what of it stands in no evidence, and nothing is decided by it."""

from __future__ import annotations

import time

import pytest

from handlers.gatekeeper import GateInput, judge
from handlers.unbound import READ_CHARS
from streams.contract import Claim, Contract, EvidenceRef, RetrievalDetails
from streams.events import ToolInvoked

POOL = 'hikaricp_connections_max{pool="payments-pool"} 100'
WEB_7 = "web-7   1/1   Running   3    2d"
WEB_8 = "web-8   1/1   Running   0    2d"
LOG = "ERROR payment-service HikariPool-1 - request timed out after 30000ms"
QUESTION = "Why does payment-service time out in the last 30 minutes?"
COUNTS = "the claim says that it is supported and binds no line: it counts as a hypothesis"


def told(text: str, *records: str, kind: str = "observation") -> str:
    refs = tuple(EvidenceRef(raw_path=f"lines[{k}]", text=record) for k, record in enumerate(records))
    call = ToolInvoked(invocation_id="1", tool_name="look", retrieval_details=RetrievalDetails(evidence_refs=refs))
    claim = Claim.model_validate(
        {"claim_id": "c1", "claim_type": kind, "claim_text": text, "support_level": "direct", "evidence_bindings": ()}
    )
    contract = Contract(answer_version="executor_evidence_v2", claims=(claim,))
    result = judge(GateInput(QUESTION, "valid", contract, invocations=(call,)))
    # What is told changes neither the rules nor how bad they are.
    assert result.failed_rules == ("claim.no_binding", "claim.none_confirmed")
    assert (result.severity, result.confirmed_claims) == ("low_confid", ())
    message = next(failure.message for failure in result.failures if failure.rule == "claim.no_binding")
    assert message.startswith(COUNTS)
    return message.removeprefix(COUNTS).removeprefix("; ")


@pytest.mark.scenario("EXE-4")
@pytest.mark.parametrize(
    ("text", "absent"),
    [
        ("The pool had 50 connections.", '"50"'),
        ("pod web-7 restarted 12 times.", '"12 times"'),
        ("web-7 重启了 12 次。", '"12 次"'),
        ("payments-pool has 50 of 100 connections on db-node-7.", '"db-node-7" or "50"'),
        ("ORA-12519 was raised 7 times within 4 s.", '"ORA-12519", "7 times" or "4 s"'),
    ],
)
def test_a_number_or_name_that_no_evidence_has_is_named(text: str, absent: str) -> None:
    assert told(text, POOL, WEB_7, WEB_8, LOG) == f"no evidence of this session has {absent}"


@pytest.mark.parametrize(
    "text",
    [
        "The pool has 100 connections.",
        "Requests timed out after 30 s.",
        "payment-service timed out in the last 30 minutes.",
        "web-7 restarted three times.",
        "The pool is full.",
    ],
)
def test_what_the_evidence_has_however_it_writes_it_is_not_named(text: str) -> None:
    assert told(text, POOL, WEB_7, WEB_8, LOG) == ""


def test_what_stands_in_records_apart_only_is_told_so() -> None:
    assert told("web-8 restarted 3 times.", WEB_7, WEB_8) == 'no one record of this session has "web-8" and "3 times"'
    assert told("web-7 restarted 3 times.", WEB_7, WEB_8) == ""


def test_what_a_claim_denies_may_be_absent() -> None:
    assert told("No ORA-00060 was found.", LOG, kind="negative_observation") == ""


def test_of_more_evidence_than_is_read_for_amounts_only_names_are_told() -> None:
    line = "2026-03-17T10:20:01Z INFO payment-service request {} took {}ms"
    records = [line.format(k, k % 900) for k in range(READ_CHARS // 40)]
    began = time.perf_counter()
    assert told("db-node-7 failed 123456 times.", *records) == 'no evidence of this session has "db-node-7"'
    assert time.perf_counter() - began < 3.0


def test_a_session_without_evidence_has_nothing_that_could_be_absent() -> None:
    assert told("The pool had 50 connections.") == ""
