"""The verdict through the real roles: VER, and rulings 1 to 5 as far as a verdict depends on them."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.ledger_case import (
    LANGS,
    POOL,
    RETRIES,
    TEXTS,
    TIMEOUT,
    Lang,
    answer,
    binding,
    call,
    case,
    checked,
    claim,
    fact,
    good,
    later,
    rnd,
    unplaced,
    verdict,
)
from tests.play import judged

LABELS = ("direct_evidence", "indirect_support", "no_evidence", "contradicted")
WEIGHT = {"direct_evidence": 1.0, "indirect_support": 0.6, "no_evidence": 0.0}
ORDER = ("PASS", "LOW_CONFID", "REJECT")
NOTES: dict[Lang, str] = {"en": "The pool was looked at too.", "zh-CN": "也看了连接池。"}
INVENTED = {
    "error code": "ORA-12170",
    "exception": "SQLTransientConnectionException",
    "host": "ledger-db-7.prod.internal",
    "pod": "payment-service-6f9c7d5b8-x2x9z",
    "ip": "10.20.30.40",
    "version": "v4.12.7",
    "id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
}


def settled(labels: tuple[str, str], said: str = "PASS", lang: Lang = "en", *more: Any) -> dict[str, Any]:
    """Two claims with these labels, judged once: no extra round is recorded."""
    reply = checked(lang, *labels, said)
    reply["facts_checked"] += more
    return judged(case(rnd(good(lang), reply), lang=lang))


def expected(labels: tuple[str, ...]) -> tuple[str, float]:
    if "contradicted" in labels:
        return "REJECT", 0.0
    score = round(sum(WEIGHT[label] for label in labels) / len(labels), 4)
    if "no_evidence" in labels or "direct_evidence" not in labels:
        return "LOW_CONFID", score
    return "PASS", score


@pytest.mark.scenario("VER-1", "VER-2", "VER-3", "VER-4", "OUT-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("labels", list(itertools.product(LABELS, repeat=2)))
def test_labels_give_verdict_and_score(labels: tuple[str, str], lang: Lang) -> None:
    report = settled(labels, lang=lang)
    judgement = report["verifier_evaluation"]
    wanted, score = expected(labels)
    assert (judgement["derived_verdict"], judgement["groundedness_score"]) == (wanted, score)
    assert (judgement["verdict"], report["effective_verdict"], report["groundedness_score"]) == (wanted, wanted, score)
    assert report["exit_code"] == {"PASS": 0, "LOW_CONFID": 10, "REJECT": 20}[wanted]


@pytest.mark.scenario("VER-1")
@pytest.mark.parametrize("label", LABELS)
def test_a_fact_that_is_not_critical_changes_neither_verdict_nor_score(label: str) -> None:
    aside = fact(NOTES["en"], label, is_critical=False)
    report = settled(("direct_evidence", "indirect_support"), "PASS", "en", aside)
    assert (report["effective_verdict"], report["groundedness_score"]) == ("PASS", 0.8)
    assert report["verifier_evaluation"]["critical_fact_count"] == 2
    assert len(report["verifier_evaluation"]["facts_checked"]) == 3


@pytest.mark.scenario("VER-2")
def test_nine_direct_and_one_without_evidence_is_low_at_nine_tenths() -> None:
    """Ruling 2: the verdict comes from the labels, not from the score."""
    facts = [fact(f"{TEXTS['en']['c1']} {'again ' * i}", claim_id="c1") for i in range(8)]
    facts += [fact(TEXTS["en"]["c2"], claim_id="c2"), fact("the client is idle", "no_evidence")]
    report = judged(case(rnd(good(), verdict("PASS", *facts))))
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.9)
    assert report["route"] == ["disclaimer"]


@pytest.mark.scenario("VER-1", "OUT-5")
def test_the_score_has_four_decimals() -> None:
    """Ruling 1: two direct and one indirect of three are 2.6 / 3."""
    reply = checked()
    reply["facts_checked"].append(fact("the client was configured once", "indirect_support"))
    assert judged(case(rnd(good(), reply)))["groundedness_score"] == 0.8667


@pytest.mark.scenario("VER-4")
def test_one_contradicted_fact_of_many_rejects_with_score_zero() -> None:
    reply = checked()
    reply["facts_checked"] += [fact("the client was configured once"), fact("the pool is idle", "contradicted")]
    report = judged(case(rnd(good(), reply)))
    assert (report["effective_verdict"], report["groundedness_score"]) == ("REJECT", 0.0)
    assert (report["route"], report["response"]["fallback_reason"]) == (["degraded"], "rejected")


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("kind", list(INVENTED))
@pytest.mark.parametrize("where", ["user_facing_answer", "diagnosis_summary", "claim_text"])
def test_an_invented_identifier_is_rejected_whatever_the_model_says(kind: str, where: str, lang: Lang) -> None:
    said, name = good(lang), INVENTED[kind]
    if where == "claim_text":
        said["claims"][0]["claim_text"] += f" ({name})"
    else:
        said[where] = f"{said['user_facing_answer']} {name}"
    report = judged(case(rnd(said, checked(lang)), lang=lang))
    rule = "claim.identifier_absent" if where == "claim_text" else "answer.identifier_absent"
    assert rule in report["gatekeeper_result"]["failed_rules"]
    assert report["gatekeeper_result"]["severity"] == "reject"
    judgement = report["verifier_evaluation"]
    assert (judgement["derived_verdict"], report["effective_verdict"]) == ("REJECT", "REJECT")
    assert report["groundedness_score"] == 0.0
    added = [f for f in judgement["facts_checked"] if f["verification"] == "contradicted"]
    assert added
    assert all(f["is_critical"] for f in added)
    assert name not in str(report["response"]), "ROU-7"


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("kind", list(INVENTED))
def test_the_question_lends_names_and_nothing_else(kind: str, lang: Lang) -> None:
    """Names of what is asked about: host and pod; an IP names a host, too. No error code, version or id."""
    said, name = good(lang), INVENTED[kind]
    said["user_facing_answer"] += f" {name}"
    question = {"en": f"What is the time-out of ledger-db at {name}?", "zh-CN": f"{name} 上 ledger-db 的超时是多少?"}
    report = judged(case(rnd(said, checked(lang)), lang=lang, question=question[lang]))
    lent = kind in {"host", "pod"}
    rules = report["gatekeeper_result"]["failed_rules"]
    if kind != "ip":
        assert ("answer.identifier_absent" not in rules) is lent


@pytest.mark.scenario("VER-5")
def test_arguments_echoed_queries_and_earlier_answers_are_no_evidence_text() -> None:
    code = "ORA-12170"
    said = good()
    said["user_facing_answer"] += f" {code} was seen."
    quiet = call("102", tool="query_logs", arguments={"q": code})
    quiet["retrieval_details"] = {
        "evidence_refs": [{"raw_path": "summary", "text": f"hits=0 window=30m status=ok query={code}"}],
        "matched": 0,
    }
    report = judged(case(rnd(said, checked(), calls=[call(arguments={"q": code}), quiet])))
    assert report["effective_verdict"] == "REJECT"
    assert report["gatekeeper_result"]["failed_rules"] == ["answer.identifier_absent"]
    shown = call("101", TIMEOUT, RETRIES, POOL, f"last error {code}")
    told = judged(case(rnd(said, checked(), calls=[shown])))
    assert "answer.identifier_absent" not in told["gatekeeper_result"]["failed_rules"]


@pytest.mark.scenario("VER-5")
@pytest.mark.parametrize("lang", LANGS)
def test_a_negative_observation_may_name_what_it_denies_if_the_search_asked_for_it(lang: Lang) -> None:
    code = "ORA-00060"
    text = {"en": f"No {code} was found.", "zh-CN": f"没有发现 {code}。"}[lang]
    summary = "hits=0 window=30m status=ok query=ORA-00060"
    quiet = call("101", arguments={"q": code})
    quiet["retrieval_details"] = {"evidence_refs": [{"raw_path": "summary", "text": summary}], "matched": 0}
    denied = claim("n1", text, binding("hits=0 window=30m status=ok", "summary"), kind="negative_observation")
    reply = verdict("PASS", fact(text, claim_id="n1"))
    asked = {"en": "Was ORA-00060 found in ledger-db?", "zh-CN": "ledger-db 有没有 ORA-00060?"}[lang]
    report = judged(case(rnd(answer(denied), reply, calls=[quiet]), lang=lang, question=asked))
    assert report["gatekeeper_result"]["failed_rules"] == []
    assert report["effective_verdict"] == "PASS"
    other = json_replace(answer(denied), code, "ORA-00061")
    told = judged(case(rnd(other, json_replace(reply, code, "ORA-00061"), calls=[quiet]), lang=lang, question=asked))
    assert told["effective_verdict"] == "REJECT"


def json_replace(value: Any, old: str, new: str) -> Any:
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, list):
        return [json_replace(item, old, new) for item in value]
    return {k: json_replace(v, old, new) for k, v in value.items()} if isinstance(value, dict) else value


@pytest.mark.scenario("VER-5", "GAT-3")
def test_without_any_evidence_text_the_guards_do_not_run() -> None:
    said = good()
    said["user_facing_answer"] = "ledger-db-7.prod.internal timed out."
    bare = {"invocation_id": "101", "tool_name": "query_logs", "arguments": {"q": "ledger"}}
    report = judged(case(rnd(said, checked(), calls=[bare])))
    gate = report["gatekeeper_result"]
    assert gate["severity"] == "low_confid"
    assert "evidence.refs_missing" in gate["failed_rules"]
    assert "answer.identifier_absent" not in gate["failed_rules"]
    assert {"answer.identifier_absent"} == {e["rule"] for e in gate["errors"]}
    assert report["effective_verdict"] == "LOW_CONFID"


@pytest.mark.scenario("VER-6")
@pytest.mark.parametrize("said", ["PASS", "LOW_CONFID"])
@pytest.mark.parametrize("facts", [[], [fact("the pool was looked at", is_critical=False)]])
def test_without_a_critical_fact_the_verdict_is_low_and_the_score_zero(facts: list[Any], said: str) -> None:
    empty = answer(missing_info=["the time-out"], user_facing_answer="Nothing was found.")
    report = judged(case(rnd(empty, verdict(said, *facts)), max_attempts=0))
    judgement = report["verifier_evaluation"]
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.0)
    assert judgement["critical_fact_count"] == 0
    assert "no_critical_facts" in judgement["reasons"]


@pytest.mark.scenario("VER-7")
@pytest.mark.parametrize("said", ORDER)
@pytest.mark.parametrize("label", ["direct_evidence", "no_evidence", "contradicted"])
def test_the_worse_of_the_models_and_the_derived_verdict_counts(label: str, said: str) -> None:
    report = settled(("direct_evidence", label), said)
    judgement = report["verifier_evaluation"]
    derived = expected(("direct_evidence", label))[0]
    assert (judgement["derived_verdict"], judgement["model_verdict"]) == (derived, said)
    assert judgement["effective_verdict"] == max(derived, said, key=ORDER.index)
    assert any("mismatch" in reason for reason in judgement["reasons"]) is (derived != said)
    model = [cap for cap in judgement["caps"] if cap["source"] == "model"]
    assert [cap["cap"] for cap in model] == ([said] if ORDER.index(said) > ORDER.index(derived) else [])
    assert judgement["groundedness_score"] == expected(("direct_evidence", label))[1], "a cap changes no score"


@pytest.mark.scenario("VER-8")
@pytest.mark.parametrize("lang", LANGS)
def test_a_claim_that_was_passed_over_gets_a_critical_fact_without_evidence(lang: Lang) -> None:
    reply = verdict("PASS", fact(TEXTS[lang]["c1"], claim_id="c1"))
    report = judged(case(rnd(good(lang), reply), lang=lang))
    judgement = report["verifier_evaluation"]
    added = judgement["facts_checked"][1]
    assert (added["claim_id"], added["is_critical"], added["verification"]) == ("c2", True, "no_evidence")
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.5)
    assert any("claim_passed_over" in reason for reason in judgement["reasons"]), "recorded"


@pytest.mark.scenario("VER-8")
def test_a_fact_belongs_by_claim_id_else_by_equal_text_else_by_a_shared_invocation() -> None:
    second = call("102", RETRIES, arguments={"q": "retries"})
    said = good()
    said["claims"][1]["evidence_bindings"] = [binding(RETRIES, "lines[0]", "102")]

    def owners(*facts: dict[str, Any]) -> list[str | None]:
        report = judged(case(rnd(said, verdict("PASS", *facts), calls=[call(), second])))
        return [f["claim_id"] for f in report["verifier_evaluation"]["facts_checked"]]

    by_id = fact("any words", claim_id="c2", evidence_refs=["trace-101"])
    by_text = fact(TEXTS["en"]["c2"], evidence_refs=["trace-101"])
    by_call = fact("the ledger client may try again twice", evidence_refs=["trace-102"])
    first = fact(TEXTS["en"]["c1"], claim_id="c1")
    for second_fact in (by_id, by_text, by_call):
        assert owners(first, second_fact) == ["c1", "c2"]
    nowhere = fact("the client is written in Java", evidence_refs=["trace-999"])
    assert owners(first, nowhere) == ["c1", None, "c2"]


@pytest.mark.scenario("VER-8")
def test_duplicate_facts_stand_for_one_claim() -> None:
    once = fact(TEXTS["en"]["c1"], claim_id="c1")
    report = judged(case(rnd(good(), verdict("PASS", once, once, once))))
    facts = report["verifier_evaluation"]["facts_checked"]
    assert [f["claim_id"] for f in facts] == ["c1", "c1", "c1", "c2"]
    assert report["groundedness_score"] == 0.75


@pytest.mark.scenario("VER-8", "EXE-4")
def test_a_hypothesis_needs_no_critical_fact() -> None:
    said = good()
    said["claims"].append({**claim("h1", "The pool may be too small."), "support_level": "none"})
    report = judged(case(rnd(said, checked())))
    assert [f["claim_id"] for f in report["verifier_evaluation"]["facts_checked"]] == ["c1", "c2"]
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("VER-5", "OUT-3")
@pytest.mark.parametrize("critical", [True, False])
@pytest.mark.parametrize("label", LABELS)
def test_a_fabricated_fact_is_critical_and_contradicted(label: str, critical: bool) -> None:
    """Ruling 5: whatever label and weight the model gives it, with refs or without."""
    said = fact("the pool leaks", label, is_critical=critical, fabricated=True, evidence_refs=[])
    report = settled(("direct_evidence", "direct_evidence"), "PASS", "en", said)
    last = report["verifier_evaluation"]["facts_checked"][2]
    assert (last["verification"], last["is_critical"], last["fabricated"]) == ("contradicted", True, True)
    assert (report["effective_verdict"], report["groundedness_score"]) == ("REJECT", 0.0)
    assert report["verifier_evaluation"]["critical_fact_count"] == 3


@pytest.mark.scenario("VER-7", "OUT-4")
def test_caps_are_stored_with_source_bound_and_reason_and_change_no_score() -> None:
    """Ruling 3."""
    report = judged(case(rnd(unplaced(), [checked(said="LOW_CONFID")]), max_attempts=1))
    judgement = report["verifier_evaluation"]
    assert {cap["source"]: cap["cap"] for cap in judgement["caps"]} == {
        "gate": "LOW_CONFID",
        "repair": "LOW_CONFID",
        "model": "LOW_CONFID",
    }
    assert all(cap["reason"] for cap in judgement["caps"])
    assert judgement["derived_verdict"] == "PASS"
    assert (judgement["groundedness_score"], judgement["effective_verdict"]) == (1.0, "LOW_CONFID")


@pytest.mark.scenario("VER-8", "TRC-2", "AUD-1")
def test_a_second_round_is_judged_with_the_calls_of_both() -> None:
    """Facts of round 2 may cite trace_refs of either round; so may its bindings."""
    first = rnd(good(), checked("en", "no_evidence", "no_evidence", "LOW_CONFID"))
    both = good()
    both["claims"][1]["evidence_bindings"] = [binding(RETRIES, "lines[1]", "201")]
    second = rnd(both, checked(), calls=[call("201")])
    second["verifier_output"]["facts_checked"][1]["evidence_refs"] = ["trace-101", "trace-201"]
    report = judged(case(first, second))
    assert (report["rounds"], report["route"], report["effective_verdict"]) == (2, ["extra_round", "answer"], "PASS")
    judgement = report["verifier_evaluation"]
    assert [item["trace_ref"] for item in judgement["tool_trace_summary"]] == ["trace-101", "trace-201"]
    refs = [[ref["trace_ref"] for ref in f["evidence_refs"]] for f in judgement["facts_checked"]]
    assert [sorted(r) for r in refs] == [["trace-101"], ["trace-101", "trace-201"]]
    assert report["groundedness_score"] == 1.0
    assert later(first)["tool_invocations"][0]["invocation_id"] == "201"
