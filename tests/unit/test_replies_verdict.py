"""The Verifier's reply: strict, no unwrapping, no other key, no other label."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.replies import parse_verdict
from tests.pool_case import FACTS, fact, text, verdict

GOOD = text(verdict())


@pytest.mark.scenario("OUT-1", "OUT-3")
def test_the_required_parts_alone_are_valid() -> None:
    parsed = parse_verdict(GOOD)
    assert parsed.status == "valid"
    assert (parsed.verdict, parsed.score, parsed.critical_fact_count) == ("PASS", None, None)
    assert [f.verification for f in parsed.facts] == ["direct_evidence", "direct_evidence"]
    assert [f.claim_id for f in parsed.facts] == ["c1", "c2"]
    assert [f.evidence_refs[0].trace_ref for f in parsed.facts] == ["trace-101", "trace-102"]


@pytest.mark.scenario("OUT-1", "OUT-3", "OUT-5")
def test_optional_parts_are_read_and_null_is_absent() -> None:
    every = fact(claim_id=7, derivability="derived", fabricated=False)
    none = fact(claim_id=None, derivability=None, fabricated=None)
    parsed = parse_verdict(text(verdict([every, none], groundedness_score=1, critical_fact_count=2)))
    assert (parsed.score, parsed.critical_fact_count) == (1.0, 2)
    assert (parsed.facts[0].claim_id, parsed.facts[0].derivability) == ("7", "derived")
    assert (parsed.facts[1].claim_id, parsed.facts[1].fabricated) == (None, None)


def test_white_space_around_the_object_is_json() -> None:
    assert parse_verdict(f"\n  {GOOD}\r\n").status == "valid"


@pytest.mark.scenario("OUT-2")
@pytest.mark.parametrize(
    "reply",
    [
        "",
        "PASS",
        f"```json\n{GOOD}\n```",
        f"# Verdict\n{GOOD}",
        f"{GOOD}\nThe answer is well grounded.",
        f"<think>fine</think>{GOOD}",
        "\ufeff" + GOOD,
        text(GOOD),
        f"[{GOOD}]",
        GOOD + GOOD,
        GOOD[:-1],
        GOOD.replace("PASS", "pass"),
        GOOD.replace("PASS", "OK"),
        GOOD.replace('{"verdict"', '{"verdict": "REJECT", "verdict"'),
        GOOD.replace("direct_evidence", "supported"),
        GOOD.replace("direct_evidence", "DIRECT_EVIDENCE"),
        GOOD.replace("true", '"true"'),
        GOOD.replace("true", "1"),
    ],
)
def test_whatever_is_not_exactly_one_strict_object_is_malformed(reply: str) -> None:
    parsed = parse_verdict(reply)
    assert parsed.status == "malformed"
    assert parsed.error
    assert (parsed.verdict, parsed.facts) == (None, ())


@pytest.mark.scenario("OUT-2", "OUT-3", "OUT-4")
@pytest.mark.parametrize(
    ("reply", "where"),
    [
        (verdict(groundedness_score="0.9"), "groundedness_score"),
        (verdict(groundedness_score=85), "groundedness_score"),
        (verdict(groundedness_score=True), "groundedness_score"),
        (verdict(critical_fact_count=1.5), "critical_fact_count"),
        (verdict(critical_fact_count=10**40), "critical_fact_count"),
        (verdict(override_gatekeeper=True), "override_gatekeeper"),
        ({**verdict(), "facts_checked": None}, "facts_checked"),
        ({**verdict(), "facts_checked": {}}, "facts_checked"),
        ({k: v for k, v in verdict().items() if k != "rationale"}, "rationale"),
        ({k: v for k, v in verdict().items() if k != "verdict"}, "verdict"),
        ({k: v for k, v in verdict().items() if k != "facts_checked"}, "facts_checked"),
        (verdict(["the pool is full"]), "facts_checked[0]"),
        (verdict([fact(confidence=1)]), "facts_checked[0].confidence"),
        (verdict([fact("")]), "facts_checked[0].fact"),
        (verdict([fact(detail=None)]), "facts_checked[0].detail"),
        (verdict([fact(evidence_refs=None)]), "facts_checked[0].evidence_refs"),
        (verdict([fact(evidence_refs="trace-101")]), "facts_checked[0].evidence_refs"),
        (verdict([fact(evidence_refs=[101])]), "facts_checked[0].evidence_refs[0]"),
        (verdict([fact(evidence_refs=[{"trace_ref": "t", "page": 1}])]), "evidence_refs[0].page"),
        (verdict([fact(derivability="guessed")]), "facts_checked[0].derivability"),
        (verdict([fact(fabricated="no")]), "facts_checked[0].fabricated"),
        (verdict([fact(claim_id=True)]), "facts_checked[0].claim_id"),
        *[(verdict([{k: v for k, v in FACTS[0].items() if k != key}]), key) for key in FACTS[0] if key != "claim_id"],
    ],
)
def test_a_wrong_part_is_malformed_and_the_reask_can_name_it(reply: dict, where: str) -> None:
    parsed = parse_verdict(text(reply))
    assert parsed.status == "malformed"
    assert where in (parsed.error or "")


@pytest.mark.scenario("OUT-4")
def test_the_alias_direct_observation_is_no_fault() -> None:
    assert parse_verdict(text(verdict([fact(label="direct_observation")]))).status == "valid"


@pytest.mark.scenario("AUD-1")
def test_refs_may_be_plain_or_objects_with_invocations() -> None:
    refs = ["trace-101", {"trace_ref": "trace-102", "source_invocation_ids": [102, "103"]}]
    parsed = parse_verdict(text(verdict([fact(evidence_refs=refs)])))
    assert [r.trace_ref for r in parsed.facts[0].evidence_refs] == ["trace-101", "trace-102"]
    assert parsed.facts[0].evidence_refs[1].source_invocation_ids == ("102", "103")


@pytest.mark.scenario("OUT-2")
@pytest.mark.parametrize("finish_reason", ["length", "content_filter", "refusal", "end_turn", ""])
def test_a_reply_that_did_not_end_by_itself_is_malformed(finish_reason: str) -> None:
    assert parse_verdict(GOOD, finish_reason).status == "malformed"


@given(st.text(st.characters(codec=None), max_size=200))
@settings(max_examples=200)
def test_no_text_crashes_the_reader(reply: str) -> None:
    assert parse_verdict(reply).error
