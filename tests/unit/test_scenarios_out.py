"""The Verifier's output through the real roles: OUT, rulings 4 and 8 for its reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.ledger_case import LANGS, TEXTS, Lang, answer, binding, call, case, checked, claim, fact, good, rnd, verdict
from tests.play import judged

GOOD = json.dumps(checked())
KEYS = {"fact", "is_critical", "verification", "detail", "evidence_refs"}
OPTIONAL = {"claim_id", "derivability", "fabricated"}


def spoilt(**changes: Any) -> str:
    return json.dumps({**checked(), **changes})


def fact_spoilt(**changes: Any) -> str:
    reply = checked()
    reply["facts_checked"][0].update(changes)
    return json.dumps(reply)


def without(key: str) -> str:
    return json.dumps({k: v for k, v in checked().items() if k != key})


def fact_without(key: str) -> str:
    reply = checked()
    del reply["facts_checked"][0][key]
    return json.dumps(reply)


MALFORMED = {
    "markdown": "## Verdict\n\n**PASS**",
    "fence": f"```json\n{GOOD}\n```",
    "prose before": f"Here you are: {GOOD}",
    "prose behind": f"{GOOD}\nDone.",
    "two objects": f"{GOOD}{GOOD}",
    "a list": f"[{GOOD}]",
    "a string": json.dumps(GOOD),
    "think block": f"<think>hm</think>{GOOD}",
    "cut": GOOD[:-3],
    "empty": "",
    "blank": " \n",
    "wrong verdict": spoilt(verdict="OK"),
    "verdict in small letters": spoilt(verdict="pass"),
    "null verdict": spoilt(verdict=None),
    "wrong label": fact_spoilt(verification="supported"),
    "wrong derivability": fact_spoilt(derivability="seen"),
    "duplicate key": GOOD.replace('{"verdict": "PASS"', '{"verdict": "REJECT", "verdict": "PASS"'),
    "duplicate key in a fact": GOOD.replace('"is_critical": true', '"is_critical": false, "is_critical": true', 1),
    "NaN": spoilt(groundedness_score=float("nan")),
    "infinity": spoilt(groundedness_score=float("inf")),
    "1e999": GOOD[:-1] + ', "groundedness_score": 1e999}',
    "score as text": spoilt(groundedness_score="0.9"),
    "count as text": spoilt(critical_fact_count="2"),
    "truth as text": fact_spoilt(is_critical="true"),
    "truth as number": fact_spoilt(is_critical=1),
    "unknown key": spoilt(confidence=0.9),
    "unknown key in a fact": fact_spoilt(note="x"),
    "fabricated as text": fact_spoilt(fabricated="yes"),
    "refs as text": fact_spoilt(evidence_refs="trace-101"),
    "facts as object": spoilt(facts_checked={}),
    "no verdict": without("verdict"),
    "no facts": without("facts_checked"),
    "no rationale": without("rationale"),
    **{f"fact without {key}": fact_without(key) for key in sorted(KEYS)},
}


@pytest.mark.scenario("OUT-2")
@pytest.mark.parametrize("name", list(MALFORMED))
def test_a_reply_that_is_not_strict_is_asked_for_once_more_and_then_done_without(name: str) -> None:
    report = judged(case(rnd(good(), [MALFORMED[name], MALFORMED[name], GOOD])))
    judgement = report["verifier_evaluation"]
    assert judgement["model_verdict"] is None
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.0)
    assert {f["verification"] for f in judgement["facts_checked"]} == {"no_evidence"}, "the runtime's alone (VER-8)"
    assert [f["claim_id"] for f in judgement["facts_checked"]] == ["c1", "c2"]
    assert [cap["source"] for cap in judgement["caps"] if cap["source"] == "parse"] == ["parse"]
    assert report["route"] == ["extra_round", "disclaimer"]


@pytest.mark.scenario("OUT-2")
@pytest.mark.parametrize("name", ["fence", "duplicate key", "empty", "wrong verdict"])
def test_the_reply_to_the_re_ask_counts(name: str) -> None:
    report = judged(case(rnd(good(), [MALFORMED[name], GOOD])))
    assert (report["effective_verdict"], report["groundedness_score"]) == ("PASS", 1.0)
    assert report["verifier_evaluation"]["caps"] == []


@pytest.mark.scenario("OUT-2", "VER-5")
def test_what_the_runtime_found_stays_without_a_reply() -> None:
    said = good()
    said["user_facing_answer"] += " ORA-12170 was seen."
    report = judged(case(rnd(said, "no JSON")))
    judgement = report["verifier_evaluation"]
    assert (report["effective_verdict"], report["groundedness_score"]) == ("REJECT", 0.0)
    assert "contradicted" in {f["verification"] for f in judgement["facts_checked"]}
    assert judgement["model_verdict"] is None


@pytest.mark.scenario("OUT-1")
@pytest.mark.parametrize("more", [{}, {"groundedness_score": 0.1, "critical_fact_count": 9}, {"groundedness_score": 1}])
def test_a_judgement_has_its_fields_and_the_runtime_counts(more: dict[str, Any]) -> None:
    report = judged(case(rnd(good(), {**checked("en", "direct_evidence", "indirect_support"), **more})))
    judgement = report["verifier_evaluation"]
    assert (judgement["verdict"], judgement["groundedness_score"]) == ("PASS", 0.8)
    assert (judgement["critical_fact_count"], judgement["rationale"]) == (2, "checked")
    assert judgement["model_score"] == more.get("groundedness_score")
    assert judgement["model_critical_fact_count"] == more.get("critical_fact_count")


@pytest.mark.scenario("OUT-1")
def test_verdict_is_the_effective_one() -> None:
    said = good()
    del said["claims"][1]["evidence_bindings"][0]["raw_path"]
    judgement = judged(case(rnd(said, checked()), max_attempts=0))["verifier_evaluation"]
    assert (judgement["verdict"], judgement["effective_verdict"]) == ("LOW_CONFID", "LOW_CONFID")
    assert (judgement["derived_verdict"], judgement["model_verdict"]) == ("PASS", "PASS")


@pytest.mark.scenario("OUT-3")
@pytest.mark.parametrize(
    "reply",
    [
        checked(),
        verdict("PASS", fact(TEXTS["en"]["c1"], "direct_observation", "c1", derivability="direct_observation")),
        verdict("REJECT", fact("the pool leaks", "no_evidence", fabricated=True)),
        verdict("PASS"),
        "no JSON",
    ],
)
def test_a_fact_has_its_keys_and_no_other_whoever_added_it(reply: Any) -> None:
    report = judged(case(rnd(good(), reply)))
    for judgement in (report["verifier_evaluation"], report["self_evaluation"]["verifier_evaluation"]):
        assert judgement["facts_checked"]
        for found in judgement["facts_checked"]:
            assert set(found) >= KEYS
            assert set(found) <= KEYS | OPTIONAL


@pytest.mark.scenario("OUT-4")
@pytest.mark.parametrize(
    ("kind", "reads"),
    [
        ("observation", "direct_evidence"),
        ("negative_observation", "direct_evidence"),
        ("root_cause", "indirect_support"),
        ("contributing_factor", "indirect_support"),
        ("impact", "indirect_support"),
        ("other", "indirect_support"),
        ("something else", "indirect_support"),
    ],
)
def test_direct_observation_is_an_alias_for_observations_only(kind: str, reads: str) -> None:
    """Ruling 4: never malformed; the fact also keeps `derivability`."""
    quoted = claim(
        "c1",
        "HikariPool-1 max=20 waiting=37",
        binding("HikariPool-1 active=20 max=20 waiting=37", "lines[2]"),
        kind=kind,
    )
    reply = verdict("PASS", fact("HikariPool-1 max=20 waiting=37", "direct_observation", "c1"))
    report = judged(case(rnd(answer(quoted), reply), question="How is HikariPool-1?"))
    found = report["verifier_evaluation"]["facts_checked"][0]
    assert (found["verification"], found["derivability"]) == (reads, "direct_observation")


@pytest.mark.scenario("OUT-4")
@pytest.mark.parametrize("derivability", ["direct_observation", "derived", "not_derivable", None])
def test_derivability_is_kept_and_changes_nothing(derivability: str | None) -> None:
    reply = checked()
    reply["facts_checked"][0]["derivability"] = derivability
    report = judged(case(rnd(good(), reply)))
    assert report["verifier_evaluation"]["facts_checked"][0]["derivability"] == derivability
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("OUT-5", "VER-6")
@pytest.mark.parametrize("claimed", [0.0, 0.4, 1.0])
def test_the_models_number_is_recorded_and_never_used(claimed: float) -> None:
    reply = {**checked("en", "direct_evidence", "no_evidence", "PASS"), "groundedness_score": claimed}
    report = judged(case(rnd(good(), reply)))
    assert (report["groundedness_score"], report["verifier_evaluation"]["model_score"]) == (0.5, claimed)
    assert report["route"] == ["disclaimer"]


@pytest.mark.scenario("OUT-1", "OUT-2")
@pytest.mark.parametrize("lang", LANGS)
def test_without_a_recorded_reply_the_offline_verifier_judges(lang: Lang) -> None:
    report = judged(case(rnd(good(lang)), lang=lang))
    judgement = report["verifier_evaluation"]
    assert judgement["verdict"] in {"PASS", "LOW_CONFID", "REJECT"}
    assert {f["claim_id"] for f in judgement["facts_checked"]} >= {"c1", "c2"}
    assert judgement["model_verdict"] is not None
    assert judged(case(rnd(good(lang)), lang=lang))["verifier_evaluation"] == judgement, "the same again"


@pytest.mark.scenario("OUT-1")
def test_offline_a_plain_answer_passes_and_a_wrong_number_does_not() -> None:
    assert judged(case(rnd(good())))["effective_verdict"] == "PASS"
    said = good()
    said["claims"][1]["claim_text"] = said["user_facing_answer"] = "At most 7 retries are allowed."
    assert judged(case(rnd(said)))["effective_verdict"] != "PASS"


@pytest.mark.scenario("OUT-3", "AUD-1")
def test_refs_may_be_plain_or_objects_and_are_stored_as_objects() -> None:
    """Ruling 19."""
    plain, objects = checked(), checked()
    for found in objects["facts_checked"]:
        found["evidence_refs"] = [{"trace_ref": "trace-101", "source_invocation_ids": [101]}]
    stored = [
        [f["evidence_refs"] for f in judged(case(rnd(good(), reply)))["verifier_evaluation"]["facts_checked"]]
        for reply in (plain, objects)
    ]
    assert stored[0] == stored[1] == [[{"trace_ref": "trace-101", "source_invocation_ids": ["101"]}]] * 2
    assert call("101")["invocation_id"] == "101"
