"""The gate through the real roles: GAT, and each rule and stop of the rule table on a whole turn."""

from __future__ import annotations

import copy
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
    rnd,
    verdict,
)
from tests.play import judged

LOW, REJECT = "low_confid", "reject"
CAPPED = {"none": "PASS", LOW: "LOW_CONFID", REJECT: "REJECT"}


def bound(lang: Lang = "en", calls: list[Any] | None = None, more: Any = (), **changes: Any) -> dict[str, Any]:
    """`good` with its second binding changed (None takes a key away), judged PASS by the model, without a loop."""
    said = good(lang)
    second = said["claims"][1]["evidence_bindings"][0]
    for key, value in changes.items():
        if value is None:
            del second[key]
        else:
            second[key] = value
    said["claims"][1]["evidence_bindings"] += list(more)
    return judged(case(rnd(said, checked(lang), calls=calls), lang=lang, max_attempts=0))


def second(report: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = report["gatekeeper_result"]["checked_bindings"][1]
    return found


@pytest.mark.scenario("GAT-1", "GAT-10")
@pytest.mark.parametrize("lang", LANGS)
def test_a_precise_binding_passes(lang: Lang) -> None:
    report = bound(lang)
    gate = report["gatekeeper_result"]
    assert (gate["status"], gate["severity"]) == ("pass", "none")
    assert (gate["failed_rules"], gate["warnings"], gate["errors"]) == ([], [], [])
    one = second(report)
    assert (one["claim_id"], one["index"], one["status"], one["severity"]) == ("c2", 0, "pass", "none")
    assert (one["tier"], one["start"], one["end"], one["text"]) == ("exact", 0, len(RETRIES), RETRIES)
    assert (one["nearest_miss"], one["failed_rules"], one["warnings"]) == (None, [], [])
    assert report["effective_verdict"] == "PASS"


RULES: dict[str, tuple[dict[str, Any], str, str]] = {
    "GAT-2": ({"raw_path": None}, "evidence.raw_path_missing", LOW),
    "GAT-4": ({"raw_path": "lines[9]"}, "evidence.raw_path", REJECT),
    "GAT-5": ({"evidence_excerpt": RETRIES.replace("2", "9")}, "evidence.excerpt_mismatch", REJECT),
    "GAT-6": ({"source_invocation_id": "999"}, "evidence.invocation_id", REJECT),
    "GAT-7": ({"tool_name": "query_metrics"}, "evidence.tool_name", REJECT),
    "no tool": ({"tool_name": None}, "evidence.tool_name_missing", LOW),
    "no excerpt": ({"evidence_excerpt": None}, "evidence.excerpt_missing", REJECT),
    "blank excerpt": ({"evidence_excerpt": " \n"}, "evidence.excerpt_missing", REJECT),
    "zero width": ({"evidence_excerpt": "\u200b\u00ad"}, "evidence.excerpt_missing", REJECT),
    "trivial": ({"evidence_excerpt": "retry"}, "evidence.excerpt_trivial", LOW),
    "too large": ({"evidence_excerpt": RETRIES * 50}, "evidence.too_large", LOW),
    "cut number": ({"evidence_excerpt": "at most 2 retr"}, "evidence.excerpt_mismatch", REJECT),
    "paraphrase": (
        {"evidence_excerpt": "retry policy of ledger client at most 2 retries"},
        "evidence.excerpt_paraphrase",
        LOW,
    ),
    "small letters": ({"evidence_excerpt": RETRIES.upper()}, "", "none"),
}


@pytest.mark.scenario("GAT-2", "GAT-4", "GAT-5", "GAT-6", "GAT-7", "GAT-8", "GAT-9", "GAT-10")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("name", list(RULES))
def test_each_rule_has_its_severity_and_caps_a_model_that_says_pass(name: str, lang: Lang) -> None:
    changes, rule, severity = RULES[name]
    report = bound(lang, **changes)
    gate, one = report["gatekeeper_result"], second(report)
    assert one["failed_rules"] == ([rule] if rule else [])
    assert one["severity"] == severity
    assert one["status"] == ("fail" if rule else "pass")
    assert (gate["severity"], gate["status"]) == (severity, "fail" if rule else "pass")
    assert not rule or rule in gate["failed_rules"]
    assert report["verifier_evaluation"]["model_verdict"] == "PASS"
    assert report["effective_verdict"] == CAPPED[severity]
    facts = report["verifier_evaluation"]["facts_checked"]
    assert [f["verification"] for f in facts] == ["direct_evidence"] * 2, "GAT-12: the cap does that work"


@pytest.mark.scenario("GAT-3")
@pytest.mark.parametrize(
    ("details", "rule", "severity"),
    [
        ("absent", "evidence.refs_missing", LOW),
        (None, "evidence.refs_missing", LOW),
        ({}, "evidence.refs_missing", LOW),
        ({"evidence_refs": None, "matched": 3}, "evidence.refs_missing", LOW),
        ({"evidence_refs": []}, "evidence.raw_path", REJECT),
    ],
)
def test_old_data_is_low_and_an_empty_list_is_not_old_data(details: Any, rule: str, severity: str) -> None:
    old = call("102")
    if details == "absent":
        del old["retrieval_details"]
    else:
        old["retrieval_details"] = details
    report = bound(calls=[call(), old], source_invocation_id="102")
    assert (second(report)["failed_rules"], second(report)["severity"]) == ([rule], severity)
    assert report["effective_verdict"] == CAPPED[severity]


@pytest.mark.scenario("GAT-2", "GAT-14")
def test_a_missing_path_is_never_invented_and_stays_low_whatever_the_excerpt() -> None:
    for excerpt in (RETRIES, "nothing of the kind", "x"):
        one = second(bound(raw_path=None, evidence_excerpt=excerpt))
        assert (one["failed_rules"], one["severity"]) == (["evidence.raw_path_missing"], LOW)
        assert (one["raw_path"], one["text"], one["start"]) == (None, None, None)


@pytest.mark.scenario("GAT-2", "GAT-3", "GAT-7")
def test_rules_that_no_stop_precedes_fire_together() -> None:
    one = second(bound(tool_name="query_metrics", raw_path=None))
    assert set(one["failed_rules"]) == {"evidence.tool_name", "evidence.raw_path_missing"}
    assert one["severity"] == REJECT
    one = second(bound(tool_name="query_metrics", evidence_excerpt="at most 9 retries"))
    assert set(one["failed_rules"]) == {"evidence.tool_name", "evidence.excerpt_mismatch"}


@pytest.mark.scenario("GAT-6")
def test_behind_an_unknown_id_nothing_else_of_that_binding_runs() -> None:
    one = second(bound(source_invocation_id="999", tool_name="x", raw_path="y", evidence_excerpt="z"))
    assert one["failed_rules"] == ["evidence.invocation_id"]


@pytest.mark.scenario("GAT-6")
def test_ids_may_be_numbers_on_either_side() -> None:
    numbered = call()
    numbered["invocation_id"] = 101
    assert bound(calls=[numbered], source_invocation_id=101)["effective_verdict"] == "PASS"
    assert second(bound(source_invocation_id=101))["source_invocation_id"] == "101"
    assert second(bound(source_invocation_id=999))["failed_rules"] == ["evidence.invocation_id"]


@pytest.mark.scenario("GAT-11")
def test_the_worst_binding_counts_and_each_keeps_its_own_result() -> None:
    report = bound(more=[binding(RETRIES, None), binding("at most 9 retries", "lines[1]")])
    results = report["gatekeeper_result"]["checked_bindings"]
    assert [(r["claim_id"], r["index"], r["severity"]) for r in results] == [
        ("c1", 0, "none"),
        ("c2", 0, "none"),
        ("c2", 1, LOW),
        ("c2", 2, REJECT),
    ]
    assert report["gatekeeper_result"]["failed_rules"] == ["evidence.excerpt_mismatch", "evidence.raw_path_missing"]
    assert report["gatekeeper_result"]["severity"] == REJECT


@pytest.mark.scenario("GAT-12", "AUD-2")
def test_a_failed_binding_gives_no_evidence_and_relabels_nothing() -> None:
    said = good()
    said["claims"][1]["evidence_bindings"][0]["evidence_excerpt"] = "at most 9 retries"
    other = call("102", RETRIES)
    said["claims"][1]["evidence_bindings"][0]["source_invocation_id"] = "102"
    said["claims"][1]["evidence_bindings"][0]["raw_path"] = "lines[0]"
    reply = checked()
    reply["facts_checked"][1]["evidence_refs"] = ["trace-102"]
    report = judged(case(rnd(said, reply, calls=[call(), other]), max_attempts=0))
    found = report["verifier_evaluation"]["facts_checked"][1]
    assert found["verification"] == "direct_evidence"
    assert (report["groundedness_score"], report["effective_verdict"]) == (1.0, "REJECT")


@pytest.mark.scenario("GAT-12")
def test_a_verified_excerpt_may_carry_a_direct_fact_that_the_summary_lacks() -> None:
    """The summary shows the first records only; the fourth is direct evidence all the same."""
    texts = [f"line {i} " + "x" * 900 for i in range(6)] + [RETRIES]
    said = answer(claim("c2", TEXTS["en"]["c2"], binding(RETRIES, "lines[6]")), user_facing_answer=TEXTS["en"]["c2"])
    reply = verdict("PASS", fact(TEXTS["en"]["c2"], claim_id="c2", evidence_refs=[]))
    report = judged(case(rnd(said, reply, calls=[call("101", *texts)]), question="How many retries are allowed?"))
    assert RETRIES not in str(report["verifier_evaluation"]["tool_trace_summary"])
    assert (report["effective_verdict"], report["groundedness_score"]) == ("PASS", 1.0)


@pytest.mark.scenario("GAT-13")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("fitting", [0, 1, 2])
def test_an_id_is_filled_in_only_from_the_only_call_of_that_tool(fitting: int, lang: Lang) -> None:
    others = [call(str(200 + i), RETRIES, tool="query_traces") for i in range(fitting)]
    report = bound(
        lang, calls=[call(), *others], source_invocation_id=None, tool_name="query_traces", raw_path="lines[0]"
    )
    one = second(report)
    if fitting == 1:
        assert (one["status"], one["source_invocation_id"]) == ("pass", "200")
        assert one["warnings"] == ["evidence.backfilled_invocation_id"]
        assert [w["rule"] for w in report["gatekeeper_result"]["warnings"]] == ["evidence.backfilled_invocation_id"]
        assert report["effective_verdict"] == "PASS"
        assert report["response"]["citations"][1]["source_invocation_id"] == "200"
    else:
        assert (one["failed_rules"], one["severity"]) == (["evidence.invocation_id_missing"], LOW)
        assert (one["source_invocation_id"], report["effective_verdict"]) == (None, "LOW_CONFID")


@pytest.mark.scenario("GAT-13", "GAT-14")
def test_a_filled_in_id_fills_in_no_path() -> None:
    one = second(bound(source_invocation_id=None, raw_path=None))
    assert (one["source_invocation_id"], one["raw_path"]) == ("101", None)
    assert one["failed_rules"] == ["evidence.raw_path_missing"]


def searched(claim_kind: str, status: str, ref: str, text: str, said: str, excerpt: str, **more: Any) -> dict[str, Any]:
    quiet = call("102", tool="query_logs", status=status, arguments={"q": "ORA-00060", "service": "ledger-db"}, **more)
    quiet["retrieval_details"] = {"evidence_refs": [{"raw_path": ref, "text": text}], "matched": 0, "returned": 0}
    if ref == "none":
        del quiet["retrieval_details"]
    told = answer(claim("n1", said, binding(excerpt, "error" if ref == "none" else ref, "102"), kind=claim_kind))
    reply = verdict("PASS", fact(said, claim_id="n1", evidence_refs=["trace-102"]))
    return judged(
        case(rnd(told, reply, calls=[call(), quiet]), question="Was ORA-00060 found in ledger-db?", max_attempts=0)
    )


SUMMARY = "hits=0 window=30m status=ok query=ORA-00060"
ERROR = "403 forbidden: ledger-db logs"


@pytest.mark.scenario("GAT-1", "TRC-4")
@pytest.mark.parametrize("status", ["success", "no_data"])
def test_an_empty_search_supports_a_negative_observation_by_its_summary(status: str) -> None:
    report = searched(
        "negative_observation", status, "summary", SUMMARY, "No ORA-00060 was found in ledger-db.", SUMMARY
    )
    assert report["gatekeeper_result"]["failed_rules"] == []
    assert (report["effective_verdict"], report["groundedness_score"]) == ("PASS", 1.0)
    item = report["verifier_evaluation"]["tool_trace_summary"][1]
    assert (item["success"], item["evidence_level"]) == (False, "none")


@pytest.mark.scenario("GAT-1")
@pytest.mark.parametrize("kind", ["observation", "impact", "other", "root_cause"])
def test_a_summary_supports_nothing_else(kind: str) -> None:
    report = searched(kind, "success", "summary", SUMMARY, "The search in ledger-db was quiet.", "hits=0 window=30m")
    one = report["gatekeeper_result"]["checked_bindings"][0]
    assert (one["failed_rules"], one["severity"]) == (["evidence.summary_scope"], LOW)
    assert report["effective_verdict"] == "LOW_CONFID"


@pytest.mark.scenario("GAT-1")
@pytest.mark.parametrize("ref", ["error", "none"])
def test_a_failed_call_supports_only_the_statement_of_its_failure(ref: str) -> None:
    """With an `error` ref, and with an error text alone, which is quotable as `error`."""
    more = {"error": ERROR} if ref == "none" else {}
    failed = searched(
        "observation", "error", ref, ERROR, "Access to the ledger-db logs was forbidden (403).", ERROR, **more
    )
    assert failed["gatekeeper_result"]["failed_rules"] == []
    assert failed["effective_verdict"] == "PASS"
    assert failed["verifier_evaluation"]["tool_trace_summary"][1]["evidence_level"] == "none"
    for kind, said in (
        ("negative_observation", "No ORA-00060 was found in ledger-db."),
        ("negative_observation", "Access to the ledger-db logs was not granted: forbidden."),
        ("observation", "The ledger-db logs are quiet."),
        ("root_cause", "Access to the ledger-db logs was forbidden (403)."),
        ("observation", "Access to the ledger-db logs failed 7 times."),
    ):
        report = searched(kind, "error", ref, ERROR, said, ERROR, **more)
        one = report["gatekeeper_result"]["checked_bindings"][0]
        assert "evidence.failed_invocation" in one["failed_rules"], said
        assert (one["severity"], report["effective_verdict"]) == (REJECT, "REJECT"), said


@pytest.mark.scenario("GAT-4")
def test_an_error_text_of_a_call_with_refs_is_not_quotable() -> None:
    broken = call("102", RETRIES, status="error", error=ERROR)
    said = answer(claim("n1", "Access to ledger-db was forbidden.", binding(ERROR, "error", "102")))
    report = judged(case(rnd(said, verdict("PASS"), calls=[call(), broken]), max_attempts=0))
    assert "evidence.raw_path" in report["gatekeeper_result"]["checked_bindings"][0]["failed_rules"]


@pytest.mark.scenario("GAT-1", "TRC-3")
@pytest.mark.parametrize("declared", [True, False])
def test_a_helper_bears_no_evidence(declared: bool) -> None:
    clock = call("102", "now 2026-03-17 11:00:00 UTC", tool="current_time")
    if declared:
        clock = {**clock, "tool_name": "stopwatch", "evidence_kind": "helper"}
    tool = clock["tool_name"]
    report = bound(calls=[call(), clock], more=[binding("now 2026-03-17 11:00:00 UTC", "lines[0]", "102", tool)])
    one = report["gatekeeper_result"]["checked_bindings"][2]
    assert (one["failed_rules"], one["severity"]) == (["evidence.helper_invocation"], LOW)
    assert [i["trace_ref"] for i in report["verifier_evaluation"]["tool_trace_summary"]] == ["trace-101"]


@pytest.mark.scenario("GAT-12", "EXE-8")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("declared", [True, False])
def test_a_claim_that_rests_on_knowledge_alone_is_a_hypothesis(declared: bool, lang: Lang) -> None:
    book = call("102", RETRIES, tool="lookup_knowledge")
    if declared:
        book = call("102", RETRIES, tool="search_wiki", evidence_kind="knowledge")
    said = good(lang)
    said["claims"][1]["evidence_bindings"] = [binding(RETRIES, "lines[0]", "102", book["tool_name"])]
    reply = checked(lang)
    reply["facts_checked"][1]["evidence_refs"] = ["trace-102"]
    report = judged(case(rnd(said, reply, calls=[call(), book]), lang=lang, max_attempts=0))
    gate = report["gatekeeper_result"]
    assert (gate["failed_rules"], gate["severity"]) == (["claim.knowledge_only"], LOW)
    assert gate["checked_bindings"][1]["status"] == "pass"
    facts = report["verifier_evaluation"]["facts_checked"]
    assert [(f["verification"], f["is_critical"]) for f in facts] == [
        ("direct_evidence", True),
        ("indirect_support", True),
    ]
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.8)
    both = copy.deepcopy(said)
    both["claims"][1]["evidence_bindings"].append(binding(RETRIES, "lines[1]"))
    assert judged(case(rnd(both, checked(lang), calls=[call(), book]), lang=lang))["effective_verdict"] == "PASS"


@pytest.mark.scenario("EXE-8")
def test_where_all_rests_on_knowledge_no_claim_is_confirmed() -> None:
    book = call("101", TIMEOUT, RETRIES, tool="lookup_knowledge")
    said = good()
    for told in said["claims"]:
        told["evidence_bindings"][0]["tool_name"] = "lookup_knowledge"
    report = judged(case(rnd(said, checked(), calls=[book]), max_attempts=0))
    assert report["gatekeeper_result"]["failed_rules"] == ["claim.knowledge_only", "claim.none_confirmed"]
    assert {f["verification"] for f in report["verifier_evaluation"]["facts_checked"]} == {"indirect_support"}
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.6)


@pytest.mark.scenario("GAT-10")
def test_claim_guards_look_at_the_full_verified_lines() -> None:
    text = "HikariPool-1 has 37 waiting, max 20."
    said = answer(claim("c1", text, binding("active=20 max=20", "lines[2]")), user_facing_answer=text)
    reply = verdict("PASS", fact(text, claim_id="c1"))
    assert judged(case(rnd(said, reply), question="How is HikariPool-1?"))["effective_verdict"] == "PASS"
    for old, new, rule, severity in (
        ("37", "38", "claim.number_absent", LOW),
        ("37 waiting", "waiting=20 seconds, 20s", "claim.unit_mismatch", LOW),
        ("HikariPool-1", "HikariPool-1 and ORA-12170", "claim.identifier_absent", REJECT),
    ):
        wrong = answer(claim("c1", text.replace(old, new), binding("active=20 max=20", "lines[2]")))
        wrong["user_facing_answer"] = "The pool is full."
        report = judged(case(rnd(wrong, reply), question="How is HikariPool-1?", max_attempts=0))
        assert rule in report["gatekeeper_result"]["failed_rules"]
        assert report["gatekeeper_result"]["severity"] == severity
        assert report["effective_verdict"] == CAPPED[severity]


@pytest.mark.scenario("GAT-10", "VER-5")
def test_an_identifier_of_another_line_is_low_only() -> None:
    text = "HikariPool-1 has a time-out of 3s."
    said = answer(claim("c1", text, binding(TIMEOUT, "lines[0]")), user_facing_answer=text)
    report = judged(case(rnd(said, verdict("PASS", fact(text, claim_id="c1"))), max_attempts=0))
    gate = report["gatekeeper_result"]
    assert (gate["failed_rules"], gate["severity"]) == (["claim.identifier_absent"], LOW)


@pytest.mark.scenario("GAT-12")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(("level", "severity"), [("direct", LOW), ("indirect", "none")])
def test_a_cause_that_no_line_shows_is_indirect_at_most(level: str, severity: str, lang: Lang) -> None:
    text = {
        "en": "ledger-db timed out because HikariPool-1 was full.",
        "zh-CN": "HikariPool-1 耗尽导致 ledger-db 超时。",
    }[lang]
    cause = {**claim("c1", text, binding(POOL, "lines[2]"), kind="root_cause"), "support_level": level}
    said = answer(cause, user_facing_answer=text)
    reply = verdict("PASS", fact(text, claim_id="c1"))
    question = {"en": "Why did ledger-db time out?", "zh-CN": "ledger-db 为什么超时?"}[lang]
    report = judged(case(rnd(said, reply), lang=lang, question=question, max_attempts=0))
    gate = report["gatekeeper_result"]
    assert gate["severity"] == severity
    assert ("claim.causal_unsupported" in gate["failed_rules"]) is (level == "direct")
    assert ("claim.causal_unsupported" in [w["rule"] for w in gate["warnings"]]) is (level == "indirect")
    assert report["verifier_evaluation"]["facts_checked"][0]["verification"] == "indirect_support"
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.6)


@pytest.mark.scenario("GAT-10", "EXE-9")
def test_an_actions_bindings_are_checked_as_action_0() -> None:
    said = good()
    said["recommended_actions"] = [
        {"action_text": "Raise the pool.", "reason": "It is full.", "evidence_bindings": [binding(POOL, "lines[2]")]},
        {"action_text": "Look again.", "reason": "", "evidence_bindings": [binding("active=99", "lines[2]")]},
        {"action_text": "Do nothing.", "reason": ""},
    ]
    report = judged(case(rnd(said, checked()), max_attempts=0))
    results = report["gatekeeper_result"]["checked_bindings"][2:]
    assert [(r["claim_id"], r["index"], r["severity"]) for r in results] == [
        ("action-0", 0, "none"),
        ("action-1", 0, REJECT),
    ]
    assert report["effective_verdict"] == "REJECT"
    for broken in (call("102", TIMEOUT, status="error"),):
        said["recommended_actions"] = [
            {
                "action_text": "Mend it.",
                "reason": "It failed.",
                "evidence_bindings": [binding(TIMEOUT, "lines[0]", "102")],
            }
        ]
        told = judged(case(rnd(said, checked(), calls=[call(), broken]), max_attempts=0))
        assert told["gatekeeper_result"]["checked_bindings"][2]["failed_rules"] == ["evidence.failed_invocation"]


@pytest.mark.scenario("GAT-10", "EXE-4")
def test_bindings_of_a_hypothesis_are_checked_all_the_same() -> None:
    said = good()
    said["claims"].append(
        {**claim("h1", "It may be DNS.", binding("no such line", "lines[0]")), "support_level": "none"}
    )
    gate = judged(case(rnd(said, checked()), max_attempts=0))["gatekeeper_result"]
    assert (gate["checked_bindings"][2]["failed_rules"], gate["severity"]) == (["evidence.excerpt_mismatch"], REJECT)


STITCHED = "ledger-db call: time-out ... at most 2 retries"


@pytest.mark.scenario("GAT-5")
@pytest.mark.parametrize(
    ("text", "excerpt", "rule", "tier"),
    [
        (RETRIES, f'"{RETRIES}"', None, "unwrapped"),
        (RETRIES, f"```\n{RETRIES}\n```", None, "unwrapped"),
        (RETRIES, f"> {RETRIES}", None, "unwrapped"),
        (RETRIES, "retry policy of the ledger client: at most 2 ...", None, "unwrapped"),
        ("retry\u00a0policy  of the\tledger", "retry policy of the ledger", None, "normalized"),
        ("the pool \u201cledger\u201d is full", 'the pool "ledger" is full', None, "normalized"),
        ("\x1b[31mERROR\x1b[0m pool is full", "ERROR pool is full", None, "normalized"),
        ('{\\"pool\\":\\"ledger\\",\\"max\\":20}', '{"pool":"ledger","max":20}', None, "unescaped"),
        ("a &lt;b&gt; &amp; c is full", "a <b> & c is full", None, "unescaped"),
        ("ERROR Pool Is Full", "error pool is full", None, "casefolded"),
        (RETRIES, "retry policy ... at most 2 retries", None, "elided"),
        (f"{TIMEOUT}\n{RETRIES}", STITCHED, "evidence.excerpt_stitched", None),
        ("10 errors in the pool", "0 errors in the pool", "evidence.excerpt_mismatch", None),
        ("waited 12.5 seconds there", "waited 12", "evidence.excerpt_mismatch", None),
        ("waited 30000 ms there", "waited 3000", "evidence.excerpt_mismatch", None),
        ("offset is -5 seconds there", "5 seconds there", "evidence.excerpt_mismatch", None),
        ("a total of 1,234 errors", "234 errors", "evidence.excerpt_mismatch", None),
        ("10\u2076 errors in the pool", "106 errors in the pool", "evidence.excerpt_mismatch", None),
        ("the pool is not full today", "the pool is full today", "evidence.excerpt_mismatch", None),
        ("waited 3 s for the pool", "waited 3 ms for the pool", "evidence.excerpt_mismatch", None),
    ],
)
def test_excerpts_are_matched_step_by_step(text: str, excerpt: str, rule: str | None, tier: str | None) -> None:
    said = answer(claim("c1", "It is as the line says.", binding(excerpt, "lines[0]")))
    report = judged(case(rnd(said, verdict("PASS"), calls=[call("101", text)]), max_attempts=0))
    one = report["gatekeeper_result"]["checked_bindings"][0]
    assert one["failed_rules"] == ([rule] if rule else [])
    if rule is None:
        assert one["tier"] == tier
        assert text[one["start"] : one["end"]] == one["text"], "the source's text"
        assert len(one["ref_sha256"]) == 64


@pytest.mark.scenario("GAT-1")
@pytest.mark.parametrize(
    ("text", "excerpt", "warning"),
    [
        ("ERROR Pool Is Full", "error pool is full", "evidence.excerpt_case"),
        ("pool is full; pool is full", "pool is full", "evidence.ambiguous_span"),
        ("there is no pool left at all here", "pool left at all here", "evidence.negation_clipped"),
    ],
)
def test_warnings_change_no_severity(text: str, excerpt: str, warning: str) -> None:
    said = answer(claim("c1", "The pool is as the line says.", binding(excerpt, "lines[0]")))
    report = judged(case(rnd(said, verdict("PASS"), calls=[call("101", text)]), max_attempts=0))
    gate = report["gatekeeper_result"]
    assert (gate["severity"], gate["checked_bindings"][0]["warnings"]) == ("none", [warning])
    assert [set(w) for w in gate["warnings"]] == [{"rule", "claim_id", "message"}]
    assert gate["warnings"][0]["claim_id"] == "c1"


@pytest.mark.scenario("GAT-1")
def test_a_ref_over_the_limit_is_refused_and_never_cut() -> None:
    said = answer(claim("c1", "It is there.", binding(RETRIES, "lines[0]")))
    big = call("101", f"{RETRIES}\n" + "x" * (256 * 1024))
    report = judged(case(rnd(said, verdict("PASS"), calls=[big]), max_attempts=0))
    one = report["gatekeeper_result"]["checked_bindings"][0]
    assert (one["failed_rules"], one["severity"]) == (["evidence.too_large"], LOW)


@pytest.mark.scenario("GAT-6")
def test_a_call_of_the_second_round_is_unknown_in_the_first() -> None:
    said = good()
    said["claims"][0]["evidence_bindings"][0]["source_invocation_id"] = "201"
    later = rnd(good(invocation_id="201"), checked(), calls=[call("201")])
    report = judged(case(rnd(said, checked()), later, max_attempts=0))
    assert report["rounds"] == 1
    assert "evidence.invocation_id" in report["gatekeeper_result"]["failed_rules"]
