"""The Executor's contract through the real roles: EXE, and rulings 8 to 10 and 12 for its answer."""

from __future__ import annotations

import json
from typing import Any

import pytest

from handlers.agents.symptoms import is_narrow
from prompts import templates
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
    unfounded,
    verdict,
)
from tests.play import judged

GOOD = json.dumps(good())
CONTRACT = {
    "answer_version",
    "diagnosis_summary",
    "claims",
    "hypotheses",
    "recommended_actions",
    "missing_info",
    "user_facing_answer",
}


def changed(**changes: Any) -> str:
    return json.dumps({**good(), **changes})


def claim_changed(**changes: Any) -> str:
    said = good()
    said["claims"][0].update(changes)
    return json.dumps(said)


def claim_without(key: str) -> str:
    said = good()
    del said["claims"][0][key]
    return json.dumps(said)


MALFORMED = {
    "prose": "The time-out of ledger-db is 3s.",
    "prose around": f"Here it is: {GOOD}",
    "two objects": f"{GOOD}{GOOD}",
    "a list": f"[{GOOD}]",
    "cut": GOOD[:-20],
    "two fences": f"```json\n```json\n{GOOD}\n```\n```",
    "open think block": f"<think>hm {GOOD}",
    "two levels of string": json.dumps(json.dumps(GOOD)),
    "duplicate key": GOOD.replace('"missing_info"', '"claims": [], "missing_info"'),
    "duplicate key deep down": GOOD.replace(
        '"support_level": "direct"', '"support_level": "none", "support_level": "direct"', 1
    ),
    "NaN": changed(extra=float("nan")),
    "infinity": changed(extra=float("inf")),
    "unknown version": changed(answer_version="executor_evidence_v3"),
    "version as number": changed(answer_version=2),
    "unknown level": claim_changed(support_level="strong"),
    "level as number": claim_changed(support_level=1),
    "claims as object": changed(claims={}),
    "claims as text": changed(claims="none"),
    "claim as text": changed(claims=["the time-out is 3s"]),
    "missing_info of numbers": changed(missing_info=[3]),
    "missing_info as text": changed(missing_info="nothing"),
    "summary as number": changed(diagnosis_summary=3),
    "answer as object": changed(user_facing_answer={"text": "x"}),
    "bindings as object": claim_changed(evidence_bindings={}),
    "binding as text": claim_changed(evidence_bindings=["lines[0]"]),
    "id as list": claim_changed(claim_id=["c1"]),
    "id as truth": claim_changed(claim_id=True),
    "text as number": claim_changed(claim_text=3),
    "path as number": claim_changed(evidence_bindings=[{**binding(TIMEOUT, "x"), "raw_path": 0}]),
    "excerpt as number": claim_changed(evidence_bindings=[{**binding(TIMEOUT, "x"), "evidence_excerpt": 3}]),
    "no claim_id": claim_without("claim_id"),
    "no claim_text": claim_without("claim_text"),
    "no support_level": claim_without("support_level"),
    "needed_evidence as text": changed(hypotheses=[{"hypothesis_text": "x", "needed_evidence": "y"}]),
}
VALID = {
    "plain": (GOOD, "valid"),
    "with white space": (f"\n  {GOOD}\n", "valid"),
    "BOM": (f"\ufeff{GOOD}", "repaired_wrapper"),
    "fence": (f"```json\n{GOOD}\n```", "repaired_wrapper"),
    "bare fence": (f"```\n{GOOD}\n```", "repaired_wrapper"),
    "think block": (f"<think>The user asks for {{}}.</think>\n{GOOD}", "repaired_wrapper"),
    "think block and fence": (f"<think>x</think>```json\n{GOOD}\n```", "repaired_wrapper"),
    "JSON in a string": (json.dumps(GOOD), "repaired_wrapper"),
    "unknown key": (changed(confidence=0.9), "valid"),
    "no lists": (
        json.dumps({k: v for k, v in good().items() if k not in {"hypotheses", "recommended_actions", "missing_info"}}),
        "valid",
    ),
    "null answer": (changed(user_facing_answer=None), "valid"),
    "unknown claim type": (claim_changed(claim_type="symptom"), "valid"),
    "numbers as ids": (claim_changed(claim_id=1), "valid"),
    "version 1": (changed(answer_version="executor_evidence_v1"), "valid"),
}


@pytest.mark.scenario("EXE-1", "EXE-9")
@pytest.mark.parametrize("name", list(VALID))
def test_the_contract_is_read_through_a_lossless_wrapper(name: str) -> None:
    text, status = VALID[name]
    judgement = judged(case(rnd(text, verdict("PASS"))))["verifier_evaluation"]
    assert judgement["executor_output_parse_status"] == status
    assert [c["claim_text"] for c in judgement["executor_structured_output"]["claims"]] == list(TEXTS["en"].values())
    assert "think" not in judgement["executor_final_answer"]
    assert "parse" not in {cap["source"] for cap in judgement["caps"]}


@pytest.mark.scenario("EXE-1", "EXE-2")
def test_an_object_is_read_like_its_text() -> None:
    report = judged(case(rnd(good(), checked())))
    said = report["verifier_evaluation"]["executor_structured_output"]
    assert set(said) <= CONTRACT
    assert set(said["claims"][0]) == {"claim_id", "claim_type", "claim_text", "support_level", "evidence_bindings"}
    assert (report["effective_verdict"], report["response"]["kind"]) == ("PASS", "answer")


@pytest.mark.scenario("EXE-3")
@pytest.mark.parametrize("name", list(MALFORMED))
def test_malformed_output_is_kept_capped_and_not_evaluated(name: str) -> None:
    text = MALFORMED[name]
    report = judged(case(rnd([text, text], verdict("PASS", fact("the time-out is 3s")))))
    judgement = report["verifier_evaluation"]
    assert judgement["executor_output_parse_status"] == "malformed"
    assert judgement["executor_structured_output"] is None
    assert report["effective_verdict"] == "LOW_CONFID"
    assert (report["evaluations"], report["attempts"]) == ([], [1])
    assert "claim.none_confirmed" in report["gatekeeper_result"]["failed_rules"]
    sources = [cap["source"] for cap in judgement["caps"]]
    assert "parse" in sources
    assert "repair" not in sources
    assert report["response"]["kind"] == "disclaimer"
    assert "claim_text" not in report["response"]["text"], "JSON never goes out"


@pytest.mark.scenario("EXE-3")
@pytest.mark.parametrize("name", ["prose", "cut", "two objects", "duplicate key", "unknown level"])
def test_one_re_ask_comes_first_and_takes_nothing_from_the_repairs(name: str) -> None:
    report = judged(case(rnd([MALFORMED[name], good()], checked())))
    assert report["verifier_evaluation"]["executor_output_parse_status"] == "valid"
    assert (report["effective_verdict"], report["attempts"]) == ("PASS", [1])
    third = judged(case(rnd([MALFORMED[name], "no", good()], verdict("PASS"))))
    assert third["verifier_evaluation"]["executor_output_parse_status"] == "malformed", "one re-ask, not two"


@pytest.mark.scenario("EXE-3", "TPL-5")
@pytest.mark.parametrize("lang", LANGS)
def test_prose_goes_out_behind_the_disclaimer_and_its_invented_names_reject(lang: Lang) -> None:
    prose = f"{TEXTS[lang]['c1']} {TEXTS[lang]['c2']}"
    report = judged(case(rnd(prose, verdict("PASS", fact(TEXTS[lang]["c1"]))), lang=lang))
    assert report["response"]["text"] == f"{templates(lang)('disclaimer/low_confid')}\n\n{prose}"
    assert report["verifier_evaluation"]["executor_final_answer"] == prose
    invented = judged(case(rnd(f"{prose} ORA-12170", verdict("PASS")), lang=lang))
    assert "answer.identifier_absent" in invented["gatekeeper_result"]["failed_rules"]
    assert (invented["effective_verdict"], invented["response"]["kind"]) == ("REJECT", "degraded")
    cut = judged(case(rnd('{"claims": [{"claim_text": "ORA-12170', verdict("PASS")), lang=lang))
    assert cut["gatekeeper_result"]["failed_rules"] == ["claim.none_confirmed"], "only over prose"


@pytest.mark.scenario("EXE-3")
@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("stop", "valid"),
        ("length", "truncated"),
        ("content_filter", "refused"),
        ("refusal", "refused"),
        ("eos?", "malformed"),
    ],
)
def test_the_finish_reason_comes_before_the_text(reason: str, status: str) -> None:
    report = judged(case(rnd([good(), good()], checked(), executor_finish_reason=reason)))
    if status == "refused":
        assert (report["response"]["fallback_reason"], report["exit_code"]) == ("agent_failed", 1)
        assert report["verifier_evaluation"] is None
        return
    judgement = report["verifier_evaluation"]
    assert judgement["executor_output_parse_status"] == status, "it belongs to every reply of the list"
    assert report["effective_verdict"] == ("PASS" if status == "valid" else "LOW_CONFID")


@pytest.mark.scenario("EXE-3")
def test_a_finish_reason_does_not_belong_to_the_repairs() -> None:
    said = good()
    del said["claims"][1]["evidence_bindings"][0]["raw_path"]
    report = judged(case(rnd(said, checked(), repairs=[good()], executor_finish_reason="stop")))
    assert (report["attempts"], report["effective_verdict"]) == ([2], "PASS")


@pytest.mark.scenario("EXE-3")
@pytest.mark.parametrize("text", ["", " \n", "\ufeff", "<think>all thought</think>", "```json\n```"])
def test_an_empty_answer_is_the_agents_failure(text: str) -> None:
    report = judged(case(rnd([text, good()], checked())))
    assert (report["response"]["fallback_reason"], report["effective_verdict"]) == ("agent_failed", None)
    assert (report["route"], report["exit_code"]) == (["degraded"], 1)


@pytest.mark.scenario("EXE-3")
def test_a_valid_second_round_is_free_of_the_firsts_parse_cap() -> None:
    report = judged(case(rnd("prose only", verdict("LOW_CONFID")), later(rnd(good(), checked()))))
    assert (report["route"], report["effective_verdict"]) == (["extra_round", "answer"], "PASS")
    assert report["verifier_evaluation"]["caps"] == []


@pytest.mark.scenario("EXE-4")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("level", ["direct", "indirect", "none", "contradicted"])
def test_a_claim_without_binding_or_support_is_not_confirmed(level: str, lang: Lang) -> None:
    said = good(lang)
    loose = {**claim("h1", {"en": "The pool may be small.", "zh-CN": "连接池可能太小。"}[lang]), "support_level": level}
    said["claims"].append(loose)
    report = judged(case(rnd(said, checked(lang)), lang=lang, max_attempts=0))
    gate = report["gatekeeper_result"]
    fires = level in {"direct", "indirect"}
    assert gate["failed_rules"] == (["claim.no_binding"] if fires else [])
    assert report["effective_verdict"] == ("LOW_CONFID" if fires else "PASS")
    assert gate["confirmed_claims"] == ["c1", "c2"]
    assert [w["rule"] for w in gate["warnings"]] == (["contract.support_level"] if level == "contradicted" else [])


@pytest.mark.scenario("EXE-4")
def test_no_support_with_a_passing_binding_is_a_hypothesis_still() -> None:
    said = good()
    for told in said["claims"]:
        told["support_level"] = "none"
    report = judged(case(rnd(said, verdict("PASS")), max_attempts=0))
    assert report["gatekeeper_result"]["failed_rules"] == ["claim.none_confirmed"]
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.0)


@pytest.mark.scenario("EXE-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("where", ["user_facing_answer", "diagnosis_summary"])
@pytest.mark.parametrize(
    ("sentence", "extra"),
    [
        ({"en": "The pool has 20 connections, 37 wait.", "zh-CN": "连接池有 20 个连接，37 个在等待。"}, True),
        ({"en": "It waits on HikariPool-1.", "zh-CN": "它在等待 HikariPool-1。"}, True),
        ({"en": "All is well otherwise.", "zh-CN": "其余一切正常。"}, False),
        ({"en": "This concerns ledger-db.", "zh-CN": "这涉及 ledger-db。"}, False),
        ({"en": "It was set to 3s.", "zh-CN": "它被设为 3s。"}, False),
    ],
)
def test_a_sentence_with_an_anchor_of_its_own_is_an_extra_fact(
    sentence: dict[str, str], extra: bool, where: str, lang: Lang
) -> None:
    said = good(lang)
    said[where] = f"{said['user_facing_answer']} {sentence[lang]}"
    report = judged(case(rnd(said, checked(lang), repairs=[said, said]), lang=lang))
    added = [f for f in report["verifier_evaluation"]["facts_checked"] if f["claim_id"] is None]
    assert [(f["is_critical"], f["verification"]) for f in added] == [(True, "no_evidence")] * extra
    assert report["effective_verdict"] == ("LOW_CONFID" if extra else "PASS")
    assert report["evaluations"][0]["coverage"] == (round(2 / 3, 4) if extra else 1.0)


@pytest.mark.scenario("EXE-5")
@pytest.mark.parametrize(
    "place",
    [
        {"hypotheses": [{"hypothesis_text": "37 wait for HikariPool-1.", "basis": "", "needed_evidence": []}]},
        {"hypotheses": [{"hypothesis_text": "x", "basis": "37 wait for HikariPool-1", "needed_evidence": []}]},
        {"recommended_actions": [{"action_text": "Look at the 37 of HikariPool-1.", "reason": ""}]},
        {"missing_info": ["why 37 wait for HikariPool-1"]},
        {
            "missing_info": ["why 37 wait"],
            "recommended_actions": [{"action_text": "Look at HikariPool-1.", "reason": ""}],
        },
    ],
)
def test_what_stands_anywhere_in_the_contract_is_no_extra_fact(place: dict[str, Any]) -> None:
    said = {**good(), **place}
    said["user_facing_answer"] += " 37 wait for HikariPool-1."
    report = judged(case(rnd(said, checked())))
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("EXE-5")
def test_a_time_window_of_the_question_is_no_extra_fact() -> None:
    said = good()
    said["user_facing_answer"] += " This holds for the last 30 minutes."
    asked = "What is the time-out of ledger-db in the last 30 minutes? How many retries are allowed?"
    assert judged(case(rnd(said, checked()), question=asked))["effective_verdict"] == "PASS"
    assert judged(case(rnd(said, checked())))["effective_verdict"] == "LOW_CONFID"


def v1(**changes: Any) -> dict[str, Any]:
    given = {
        "source_type": "tool_trace",
        "source_id": "trace-101",
        "tool_name": "query_logs",
        "source_invocation_ids": [101],
        "raw_path": "lines[1]",
        "evidence_excerpt": RETRIES,
    }
    return {k: v for k, v in {**given, **changes}.items() if v != "absent"}


@pytest.mark.scenario("EXE-6")
@pytest.mark.parametrize("version", ["executor_evidence_v1", "executor_evidence_v2"])
@pytest.mark.parametrize(
    ("changes", "rules", "warnings"),
    [
        ({}, [], ["contract.plural_id"]),
        ({"raw_path": "absent"}, ["evidence.raw_path_missing"], ["contract.plural_id"]),
        ({"source_invocation_ids": ["101", 102]}, [], []),
        ({"source_invocation_ids": ["101", 999]}, ["evidence.invocation_id"], []),
        ({"source_invocation_ids": [999]}, ["evidence.invocation_id"], []),
        ({"source_invocation_ids": "absent"}, ["evidence.invocation_id_missing"], []),
        ({"source_invocation_ids": []}, ["evidence.invocation_id_missing"], []),
        ({"source_invocation_ids": [999], "source_id": "101"}, ["evidence.invocation_id"], []),
        ({"source_id": "no-such-block", "source_type": "lookup_evidence_block"}, [], ["contract.plural_id"]),
        ({"source_id": 7, "source_type": "another_family"}, [], ["contract.plural_id"]),
        ({"tool_name": "absent"}, ["evidence.tool_name_missing"], ["contract.plural_id"]),
    ],
)
def test_v1_bindings_are_read_and_are_not_precise(
    changes: dict[str, Any], rules: list[str], warnings: list[str], version: str
) -> None:
    said = {**good(), "answer_version": version}
    said["claims"][1]["evidence_bindings"] = [v1(**changes)]
    report = judged(case(rnd(said, checked(), calls=[call(), call("102")]), max_attempts=0))
    assert report["verifier_evaluation"]["executor_output_parse_status"] == "valid"
    one = report["gatekeeper_result"]["checked_bindings"][1]
    assert (one["failed_rules"], one["warnings"]) == (rules, warnings)
    severity = "reject" if "evidence.invocation_id" in rules else "low_confid" if rules else "none"
    assert one["severity"] == severity
    assert report["effective_verdict"] == {"none": "PASS", "low_confid": "LOW_CONFID", "reject": "REJECT"}[severity]


@pytest.mark.scenario("EXE-6", "GAT-13")
def test_a_source_id_never_supplies_the_invocation_id_but_the_only_call_may() -> None:
    said = good()
    said["claims"][1]["evidence_bindings"] = [v1(source_invocation_ids="absent", source_id="999")]
    report = judged(case(rnd(said, checked())))
    assert report["gatekeeper_result"]["checked_bindings"][1]["warnings"] == ["evidence.backfilled_invocation_id"]
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("EXE-7")
@pytest.mark.parametrize("lang", LANGS)
def test_a_question_for_one_service_is_narrow_in_both_languages(lang: Lang) -> None:
    assert is_narrow({"en": "Is payment-service healthy?", "zh-CN": "payment-service 正常吗?"}[lang])


@pytest.mark.scenario("EXE-9")
def test_parts_of_the_contract_are_read_with_their_warnings() -> None:
    said = good()
    said["confidence"] = 0.9
    said["claims"][0]["note"] = "x"
    said["claims"][0]["evidence_bindings"][0]["score"] = 1
    said["claims"][1]["claim_type"] = "symptom"
    said["hypotheses"] = [
        {"hypothesis_text": "It may be DNS.", "basis": "none", "needed_evidence": ["a trace"], "rank": 1}
    ]
    said["recommended_actions"] = [{"action_text": "Look at DNS.", "reason": "It may be DNS.", "evidence_bindings": []}]
    said["missing_info"] = ["the trace"]
    report = judged(case(rnd(said, checked())))
    rules = [w["rule"] for w in report["gatekeeper_result"]["warnings"]]
    assert rules.count("contract.unknown_key") == 4
    assert rules.count("contract.claim_type") == 1
    assert report["gatekeeper_result"]["severity"] == "none"
    structured = report["verifier_evaluation"]["executor_structured_output"]
    assert structured["claims"][1]["claim_type"] == "other"
    assert structured["hypotheses"][0]["needed_evidence"] == ["a trace"]
    assert report["effective_verdict"] == "PASS"


@pytest.mark.scenario("EXE-9")
def test_ids_are_numbers_or_strings_everywhere_and_kept_as_text() -> None:
    said = good()
    said["claims"][0]["claim_id"] = 7
    said["claims"][0]["evidence_bindings"][0]["source_invocation_id"] = 101
    numbered = {**call(), "invocation_id": 101}
    reply = checked()
    reply["facts_checked"][0]["claim_id"] = 7
    report = judged(case(rnd(said, reply, calls=[numbered])))
    assert report["effective_verdict"] == "PASS"
    assert report["gatekeeper_result"]["checked_bindings"][0]["claim_id"] == "7"
    assert report["verifier_evaluation"]["facts_checked"][0]["claim_id"] == "7"
    assert report["response"]["citations"][0] == {
        "claim_id": "7",
        "source_invocation_id": "101",
        "raw_path": "lines[0]",
        "excerpt": TIMEOUT,
    }


@pytest.mark.scenario("TPL-4", "EXE-5")
@pytest.mark.parametrize(
    ("lang", "text", "goes_out"),
    [
        ("zh-CN", "The time-out is 3s.", False),
        ("zh-CN", "超时为 3s, at most 2 retries.", True),
        ("en", "超时为 3s。", False),
        ("en", f'The line says "{TIMEOUT}".', True),
        ("en", '{"answer": "3s"}', False),
        ("en", "", False),
        ("en", "   ", False),
        ("en", None, False),
        ("en", "<think>hm</think>The time-out is 3s.", True),
    ],
)
def test_an_answer_in_the_wrong_form_or_language_is_rendered_from_the_contract(
    lang: Lang, text: str | None, goes_out: bool
) -> None:
    """Ruling 9."""
    said = {**good(lang), "user_facing_answer": text}
    report = judged(case(rnd(said, checked(lang)), lang=lang))
    assert report["effective_verdict"] == "PASS"
    shown = report["response"]["text"]
    assert "think" not in shown
    if goes_out:
        assert shown == (text or "").replace("<think>hm</think>", "")
    else:
        assert TEXTS[lang]["c1"] in shown
        assert TEXTS[lang]["c2"] in shown


@pytest.mark.scenario("EXE-5")
def test_a_text_that_is_set_aside_is_checked_all_the_same() -> None:
    said = {**good("zh-CN"), "user_facing_answer": "It was ORA-12170."}
    report = judged(case(rnd(said, checked("zh-CN")), lang="zh-CN"))
    assert report["effective_verdict"] == "REJECT"
    assert "ORA-12170" not in json.dumps(report["response"])


@pytest.mark.scenario("EXE-1", "EXE-3")
@pytest.mark.parametrize("repaired", ["good", "bad", "malformed", "malformed then good", "empty"])
def test_repairs_that_mend_do_not_mend_or_cannot_be_read(repaired: str) -> None:
    bad = good()
    bad["claims"][1]["evidence_bindings"][0]["evidence_excerpt"] = RETRIES.replace("2", "9")
    repairs = {
        "good": [good()],
        "bad": [bad, bad],
        "malformed": [["no JSON", "nor here"]],
        "malformed then good": [["no JSON", good()]],
        "empty": [""],
    }[repaired]
    report = judged(case(rnd(bad, checked(), repairs=repairs)))
    if repaired in {"good", "malformed then good"}:
        assert (report["attempts"], report["effective_verdict"]) == ([2], "PASS")
        assert [e["decision"] for e in report["evaluations"]] == ["repair", "accepted"]
    elif repaired == "bad":
        assert (report["attempts"], report["effective_verdict"]) == ([3], "REJECT")
        assert [e["decision"] for e in report["evaluations"]] == ["repair", "repair"]
        assert report["response"]["fallback_reason"] == "evidence_insufficient"
    elif repaired == "malformed":
        assert report["attempts"] == [2]
        assert report["verifier_evaluation"]["executor_output_parse_status"] == "malformed"
        assert report["effective_verdict"] == "LOW_CONFID"
        assert "repair" not in {cap["source"] for cap in report["verifier_evaluation"]["caps"]}
    else:
        assert (report["response"]["fallback_reason"], report["effective_verdict"]) == ("agent_failed", None)
        assert report["exit_code"] == 1


@pytest.mark.scenario("EXE-8", "EXE-5")
def test_unrelated_findings_and_excluded_topics_are_not_confirmed() -> None:
    said = good()
    said["claims"].append(claim("c3", "Redis failover caused it.", binding(POOL, "lines[2]"), kind="root_cause"))
    report = judged(case(rnd(said, checked("en", "direct_evidence", "direct_evidence")), max_attempts=0))
    assert report["effective_verdict"] != "PASS"
    third = [f for f in report["verifier_evaluation"]["facts_checked"] if f["claim_id"] == "c3"]
    assert [f["verification"] for f in third] == ["no_evidence"]


@pytest.mark.scenario("EXE-4", "EXE-9")
def test_an_answer_without_claims_confirms_nothing() -> None:
    report = judged(case(rnd(answer(missing_info=["the time-out"], user_facing_answer="Not known."), unfounded())))
    assert "claim.none_confirmed" in report["gatekeeper_result"]["failed_rules"]
    assert report["evaluations"][0]["coverage"] == 0.0
    assert (report["evaluations"][0]["supported"], report["evaluations"][0]["complete"]) == (False, False)
    assert (report["rule_evaluation"]["score"], report["rule_evaluation"]["reason"]) == (0.0, "no_claims")


@pytest.mark.scenario("EXE-8", "REP-10")
@pytest.mark.parametrize("lang", LANGS)
def test_offline_a_runbook_answers_no_part_of_the_question(lang: Lang) -> None:
    book = call("101", TIMEOUT, RETRIES, tool="lookup_knowledge")
    said = good(lang)
    for told in said["claims"]:
        told["evidence_bindings"][0]["tool_name"] = "lookup_knowledge"
    report = judged(case(rnd(said, calls=[book]), lang=lang))
    facts = report["verifier_evaluation"]["facts_checked"]
    assert facts
    assert {f["verification"] for f in facts if f["is_critical"]} == {"no_evidence"}
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.0)
