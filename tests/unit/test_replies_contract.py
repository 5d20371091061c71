"""The Executor's answer: what parses, what is unwrapped, what is read with a warning, what is malformed."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.replies import is_prose, parse_answer, usable_user_answer
from streams.contract import Contract
from tests.pool_case import CLAIMS, claim, contract, text

GOOD = text(contract())


def notices(reply: str) -> list[tuple[str, str | None]]:
    return [(n.rule, n.claim_id) for n in parse_answer(reply).notices]


@pytest.mark.scenario("EXE-1", "EXE-2", "EXE-9")
def test_a_contract_is_valid_and_its_structure_reads_back_as_the_same_contract() -> None:
    parsed = parse_answer(GOOD)
    assert parsed.status == "valid"
    assert parsed.error is None
    assert parsed.notices == ()
    assert parsed.contract is not None
    assert Contract.model_validate(parsed.structured) == parsed.contract
    assert parsed.structured == contract()
    assert parsed.final_answer == "payment-service 的连接池已耗尽。"


@pytest.mark.parametrize(
    "wrapped",
    [
        "\ufeff" + GOOD,
        f"```json\n{GOOD}\n```",
        f"```\n{GOOD}```",
        f"<think>the pool is full, so</think>\n{GOOD}",
        f"<thinking>x</thinking>{GOOD}",
        text(GOOD),
        "\ufeff<think>a</think>\n```json\n" + text(GOOD) + "\n```\n",
    ],
)
def test_lossless_wrappers_come_off_and_the_status_says_so(wrapped: str) -> None:
    parsed = parse_answer(wrapped)
    assert parsed.status == "repaired_wrapper"
    assert parsed.structured == contract()


@pytest.mark.scenario("EXE-3")
@pytest.mark.parametrize(
    "reply",
    [
        f"Here is the answer:\n{GOOD}",
        f"{GOOD}\nHope this helps",
        f"{GOOD}{GOOD}",
        f"```json\n{GOOD}\n```\n```json\n{GOOD}\n```",
        f"<think>a</think><think>b</think>{GOOD}",
        f"<think>never closed {GOOD}",
        text(text(GOOD)),
        f"[{GOOD}]",
        GOOD[:-1],
        GOOD.replace('"claims"', '"diagnosis_summary"'),
        GOOD.replace('"c1"', "NaN"),
        GOOD.replace('"c1"', "1e999"),
        GOOD[:-1] + ', "confidence": 1e999}',
        GOOD.replace("}", ",}"),
        GOOD.replace('"', "'"),
        "// note\n" + GOOD,
        "null",
        "42",
        "连接池已耗尽",
    ],
)
def test_everything_else_is_malformed_and_says_where(reply: str) -> None:
    parsed = parse_answer(reply)
    assert parsed.status == "malformed"
    assert parsed.error
    assert parsed.contract is None
    assert parsed.structured is None


@pytest.mark.scenario("EXE-3")
@pytest.mark.parametrize(
    ("changed", "where"),
    [
        (contract(answer_version="executor_evidence_v3"), "answer_version"),
        ({k: v for k, v in contract().items() if k != "answer_version"}, "answer_version"),
        ({**contract(), "claims": {"c1": "x"}}, "claims"),
        ({**contract(), "claims": "none"}, "claims"),
        (contract([{**CLAIMS[0], "support_level": "strong"}]), "claims[0].support_level"),
        (contract([{**CLAIMS[0], "support_level": None}]), "claims[0].support_level"),
        (contract([{k: v for k, v in CLAIMS[0].items() if k != "claim_id"}]), "claims[0].claim_id"),
        (contract([{k: v for k, v in CLAIMS[0].items() if k != "claim_text"}]), "claims[0].claim_text"),
        (contract([{**CLAIMS[0], "claim_text": "  "}]), "claims[0]"),
        (contract([{**CLAIMS[0], "claim_id": " "}]), "claims[0]"),
        (contract([{**CLAIMS[0], "claim_id": True}]), "claims[0].claim_id"),
        (contract([{**CLAIMS[0], "claim_id": 1e300}]), "claims[0].claim_id"),
        (contract([{**CLAIMS[0], "claim_type": 3}]), "claims[0].claim_type"),
        (contract(diagnosis_summary=["a"]), "diagnosis_summary"),
        (contract(user_facing_answer={"text": "x"}), "user_facing_answer"),
        (contract(missing_info=[1]), "missing_info[0]"),
        (contract(hypotheses=["the pool leaks"]), "hypotheses[0]"),
        (contract(hypotheses=[{"hypothesis_text": "x", "needed_evidence": "y"}]), "hypotheses[0].needed_evidence"),
        (contract([{**CLAIMS[0], "evidence_bindings": [{"raw_path": 3}]}]), "claims[0].evidence_bindings[0].raw_path"),
        (contract([{**CLAIMS[0], "evidence_bindings": [{"source_invocation_ids": "7"}]}]), "source_invocation_ids"),
        (contract(confidence=10**30), "number"),
        (contract(note="\0"), "U+0000"),
        (contract(note={"\0": 1}), "U+0000"),
    ],
)
def test_a_wrong_type_or_a_missing_part_is_malformed_with_its_path(changed: dict, where: str) -> None:
    parsed = parse_answer(text(changed))
    assert parsed.status == "malformed"
    assert where in (parsed.error or "")


def test_one_reask_can_name_several_faults() -> None:
    error = parse_answer(text(contract([{}, {}], answer_version="x"))).error or ""
    assert "answer_version" in error
    assert "claims[0].claim_id" in error
    assert "more" in error


@pytest.mark.scenario("EXE-9")
@pytest.mark.parametrize(
    ("given_id", "kept"),
    [(7, "7"), ("7", "7"), (10**30, str(10**30)), (101.0, "101"), (1.5, "1.5"), (-3, "-3"), ("007", "007")],
)
def test_ids_are_numbers_or_strings_and_are_kept_as_text(given_id: object, kept: str) -> None:
    bound = [{"source_invocation_id": given_id, "source_id": given_id, "source_invocation_ids": [given_id]}]
    parsed = parse_answer(text(contract([{**CLAIMS[0], "claim_id": given_id, "evidence_bindings": bound}])))
    assert parsed.contract is not None
    read = parsed.contract.claims[0]
    binding = read.evidence_bindings[0]
    assert (read.claim_id, binding.source_invocation_id, binding.source_id) == (kept, kept, kept)
    assert binding.source_invocation_ids == (kept,)


@pytest.mark.scenario("EXE-9")
def test_absent_and_null_lists_read_as_empty() -> None:
    parsed = parse_answer(text({"answer_version": "executor_evidence_v1", "claims": None, "user_facing_answer": None}))
    assert parsed.status == "valid"
    assert parsed.contract == Contract(answer_version="executor_evidence_v1")


@pytest.mark.scenario("EXE-9")
def test_absent_parts_of_a_binding_are_left_to_the_gate() -> None:
    parsed = parse_answer(text(contract([{**CLAIMS[0], "evidence_bindings": [{}, {"raw_path": None}]}])))
    assert parsed.status == "valid"
    assert parsed.contract is not None
    assert len(parsed.contract.claims[0].evidence_bindings) == 2


@pytest.mark.scenario("EXE-9")
def test_an_unknown_key_is_kept_with_a_warning() -> None:
    bound = [{**CLAIMS[0]["evidence_bindings"][0], "page": 4}]
    reply = text(contract([{**CLAIMS[0], "evidence_bindings": bound}], confidence=0.9, override_gatekeeper=True))
    assert notices(reply) == [("contract.unknown_key", None)] * 2 + [("contract.unknown_key", "c1")]
    structured = parse_answer(reply).structured or {}
    assert structured["confidence"] == 0.9
    assert structured["claims"][0]["evidence_bindings"][0]["page"] == 4


@pytest.mark.scenario("EXE-9")
@pytest.mark.parametrize("kind", ["symptom", "OBSERVATION", "", None])
def test_an_unknown_claim_type_reads_as_other_with_a_warning(kind: str | None) -> None:
    reply = text(contract([{**CLAIMS[0], "claim_type": kind}]))
    assert notices(reply) == [("contract.claim_type", "c1")]
    parsed = parse_answer(reply)
    assert parsed.contract is not None
    assert parsed.contract.claims[0].claim_type == "other"


@pytest.mark.scenario("EXE-2")
def test_support_level_contradicted_reads_as_none_with_a_warning() -> None:
    reply = text(contract([{**CLAIMS[0], "support_level": "contradicted"}]))
    assert notices(reply) == [("contract.support_level", "c1")]
    parsed = parse_answer(reply)
    assert parsed.contract is not None
    assert parsed.contract.claims[0].support_level == "none"


@pytest.mark.parametrize(
    ("finish_reason", "status"),
    [
        ("stop", "valid"),
        ("tool_calls", "valid"),
        ("length", "truncated"),
        ("content_filter", "refused"),
        ("refusal", "refused"),
        ("end_turn", "malformed"),
        ("", "malformed"),
    ],
)
def test_the_finish_reason_comes_before_the_text(finish_reason: str, status: str) -> None:
    assert parse_answer(GOOD, finish_reason).status == status


@pytest.mark.parametrize("reply", ["", " \n", "\ufeff", "<think>only thought</think>", "```json\n```"])
def test_nothing_said_is_empty(reply: str) -> None:
    assert parse_answer(reply).status == "empty"


THOUGHTS = [
    ("<think>secret</think>池满", "池满"),
    ("池满<think>secret</think>", "池满"),
    ("池满 <think>secret", "池满"),
    ("secret</think>池满", "池满"),
    ("<THINK>secret</THINK>池满", "池满"),
    ("<think>a<think>secret</think>b</think>池满", "池满"),
    ("secret <think>secret</think> secret</think>池满", "池满"),
    ("<think>secret", ""),
]


@pytest.mark.scenario("INP-3")
@pytest.mark.parametrize(("said", "shown"), THOUGHTS)
def test_no_think_block_of_a_malformed_answer_reaches_a_reader(said: str, shown: str) -> None:
    parsed = parse_answer(said)
    assert parsed.status == "malformed"
    assert parsed.final_answer == shown


@pytest.mark.scenario("INP-3")
@pytest.mark.parametrize("said", [said for said, _ in THOUGHTS])
def test_no_think_block_inside_a_contract_reaches_a_reader(said: str) -> None:
    parsed = parse_answer(text(contract(user_facing_answer=said, diagnosis_summary="<think>secret</think>")))
    assert parsed.status == "valid"
    assert "secret" not in parsed.final_answer
    assert "secret" not in json.dumps(parsed.structured)


@pytest.mark.scenario("TPL-5")
@pytest.mark.parametrize(
    ("said", "prose"),
    [
        ("payment-service 的连接池已耗尽。", True),
        ("[ERROR] is what the log says: the pool is exhausted.", True),
        ('The log line {"level":"ERROR"} stands there 516 times, so the pool of payment-service is exhausted.', True),
        (GOOD, False),
        (GOOD[: len(GOOD) // 2], False),
        (GOOD[len(GOOD) // 2 :], False),
        ('sion": "executor_evidence_v2", "diagnosis_summary": "连接池耗尽"', False),
        (f"Sure, here is the JSON:\n{GOOD[:200]}", False),
        (f"```json\n{GOOD}", False),
        ("{'answer_version': 'executor_evidence_v2'", False),
        ('Sure! {"answer": "the pool is exhausted", "confidence": 0.9}', False),
        ("null", False),
        ('"a string"', False),
        ("[1, 2]", False),
        ("----", False),
        ("", False),
    ],
)
def test_prose_is_told_from_json_and_cut_json(said: str, prose: bool) -> None:
    assert is_prose(said) is prose
    assert parse_answer(said, "length").is_prose is prose


def test_refused_and_empty_are_never_prose() -> None:
    assert not parse_answer("I cannot help with that.", "content_filter").is_prose
    assert not parse_answer("").is_prose


def read(**changes: object) -> Contract:
    parsed = parse_answer(text(contract(**changes)))
    assert parsed.contract is not None
    return parsed.contract


@pytest.mark.scenario("TPL-4")
@pytest.mark.parametrize(
    ("lang", "said", "usable"),
    [
        ("zh-CN", "payment-service 的连接池已耗尽。", True),
        ("zh-CN", "The pool of payment-service is exhausted.", False),
        ("en", "The pool of payment-service is exhausted.", True),
        ("en", "The pool 连接池 is exhausted.", False),
        ("en", "The log says `连接池耗尽` at 10:09.", True),
        ("en", 'The log says "ledger-db 连接池耗尽" at 10:09.', True),
        ("en", 'The team says "数据库很慢" about it.', False),
        ("zh-CN", "", False),
        ("zh-CN", None, False),
        ("zh-CN", text({"answer": "连接池已耗尽"}), False),
        ("zh-CN", text(["连接池已耗尽"]), False),
        ("zh-CN", '{"answer": "连接池', False),
        ("zh-CN", "<think>连接池</think>", False),
    ],
)
def test_a_user_answer_goes_out_only_as_prose_in_the_sessions_language(
    lang: str, said: str | None, usable: bool
) -> None:
    quoting = claim("c1", "the pool is exhausted", quote="ledger-db 连接池耗尽")
    assert (usable_user_answer(read(claims=[quoting], user_facing_answer=said), lang) is not None) is usable


def test_without_a_user_answer_the_contracts_own_sentences_are_judged() -> None:
    parsed = parse_answer(text(contract(user_facing_answer=None)))
    assert parsed.final_answer.splitlines() == ["连接池耗尽", *(c["claim_text"] for c in CLAIMS)]


@given(st.text(st.characters(codec=None), max_size=200), st.sampled_from(["stop", "length", "x"]))
@settings(max_examples=300)
def test_any_text_gets_a_status_and_can_be_stored(reply: str, finish_reason: str) -> None:
    parsed = parse_answer(reply, finish_reason)
    assert (parsed.contract is None) == (parsed.error is not None)
    parsed.final_answer.encode()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)
KEYS = st.sampled_from([*contract(), *CLAIMS[0], *CLAIMS[0]["evidence_bindings"][0], "model_fields", "__class__"])


@given(st.dictionaries(KEYS, JSON, max_size=4), st.dictionaries(KEYS, JSON, max_size=3), st.booleans())
@settings(max_examples=300)
def test_any_object_near_the_contract_is_read_or_refused_and_never_crashes(top: dict, inner: dict, deep: bool) -> None:
    changed = contract([{**CLAIMS[0], **inner}, CLAIMS[1]])
    parsed = parse_answer(json.dumps({**changed, **top} if not deep else {**top, **changed}))
    if parsed.contract is not None:
        assert Contract.model_validate(parsed.structured) == parsed.contract


@pytest.mark.parametrize(
    "reply",
    ["{" * 10**6, "[" + "[]," * 10**6, "<think>" * 10**5, '{"a":"' + "x" * 10**7 + '"}', "1" * 10**7, '"' * 10**6],
)
def test_a_huge_reply_is_refused_and_nothing_else(reply: str) -> None:
    assert parse_answer(reply).status == "malformed"
