"""The case file, sentence by sentence: what is read, what is refused and where, and what a turn then prints."""

from __future__ import annotations

import copy
import json
import re
from typing import Any

import pytest

from handlers.case import BadCase, case_schema, read_case
from handlers.cli.casefile import read_cases
from tests.cases import EXAMPLE
from tests.ledger_case import (
    POOL,
    RETRIES,
    TEXTS,
    TIMEOUT,
    binding,
    call,
    case,
    checked,
    fact,
    good,
    later,
    rnd,
    unfounded,
    unplaced,
    verdict,
)
from tests.play import judged

GOOD = case(rnd(good(), checked()))


def refused(raw: Any) -> BadCase:
    with pytest.raises(BadCase) as caught:
        read_case(raw)
    assert "\n" not in str(caught.value)
    return caught.value


def set_at(path: str, value: Any) -> dict[str, Any]:
    raw = copy.deepcopy(GOOD)
    place: Any = raw
    *way, last = path.split("/")
    for step in way:
        place = place[int(step)] if isinstance(place, list) else place[step]
    place[last] = value
    return raw


CALL = "rounds/0/tool_invocations/0"


@pytest.mark.parametrize(
    ("raw", "where"),
    [
        ([GOOD], "file"),
        ({}, "question"),
        (set_at("question", ""), "question"),
        (set_at("question", 3), "question"),
        (set_at("lang", "fr"), "lang"),
        (set_at("rounds", []), "rounds"),
        (set_at("rounds", {}), "rounds"),
        (set_at("rounds/0/executor_output", 3), "rounds[0].executor_output"),
        (set_at("rounds/0/executor_output", [[GOOD]]), "rounds[0].executor_output"),
        (set_at("rounds/0/verifier_output", True), "rounds[0].verifier_output"),
        (set_at("rounds/0/repairs", [3]), "rounds[0].repairs[0]"),
        (set_at("rounds/0/repairs", "text"), "rounds[0].repairs"),
        (set_at("rounds/0/executor_finish_reason", 3), "rounds[0].executor_finish_reason"),
        (set_at(f"{CALL}/status", "ok"), "rounds[0].tool_invocations[0].status"),
        (set_at(f"{CALL}/evidence_kind", "other"), "rounds[0].tool_invocations[0].evidence_kind"),
        (set_at(f"{CALL}/invocation_id", True), "rounds[0].tool_invocations[0].invocation_id"),
        (set_at(f"{CALL}/invocation_id", None), "rounds[0].tool_invocations[0].invocation_id"),
        (set_at(f"{CALL}/tool_name", None), "rounds[0].tool_invocations[0].tool_name"),
        (
            set_at(f"{CALL}/retrieval_details/evidence_refs", [{"text": "x"}]),
            "rounds[0].tool_invocations[0].retrieval_details.evidence_refs[0].raw_path",
        ),
        (set_at("settings", {"max_attempts": 2}), "settings.max_attempts"),
        (set_at("settings", {"on_exhausted": "cap"}), "settings.on_exhausted"),
        (set_at("settings", {"repair": {"max_attempts": 2}}), "settings.repair"),
        (set_at("settings", {"model": "x"}), "settings.model"),
        (set_at("settings", {"repair.max_attempts": 6}), "settings.repair.max_attempts"),
        (set_at("settings", {"repair.max_attempts": -1}), "settings.repair.max_attempts"),
        (set_at("settings", {"repair.max_attempts": "2"}), "settings.repair.max_attempts"),
        (set_at("settings", {"repair.max_attempts": True}), "settings.repair.max_attempts"),
        (set_at("settings", {"repair.on_exhausted": "stop"}), "settings.repair.on_exhausted"),
        (set_at("settings", {"agents": "scripted"}), "settings.agents"),
        (set_at("settings", {"deadline_s": 0}), "settings.deadline_s"),
        (set_at("settings", {"deadline_s": "5"}), "settings.deadline_s"),
    ],
)
def test_a_case_that_is_wrong_is_refused_with_its_place(raw: Any, where: str) -> None:
    assert refused(raw).where == where


def test_what_may_be_absent() -> None:
    """Language, kinds, status, arguments, details, repairs, the Verifier's reply, settings."""
    raw = {"question": "What is the time-out?", "rounds": [{"executor_output": good()}]}
    read = read_case(raw)
    assert (read.lang, read.settings.max_attempts, read.settings.on_exhausted) == ("zh-CN", None, None)
    bare = {"invocation_id": 101, "tool_name": "query_logs"}
    for tool, kind in (("query_logs", "incident"), ("lookup_knowledge", "knowledge"), ("current_time", "helper")):
        raw["rounds"] = [{"executor_output": good(), "tool_invocations": [{**bare, "tool_name": tool}]}]
        recorded = read_case(raw).script["rounds"][0]["invocations"][0]
        assert (recorded["status"], recorded["evidence_kind"], recorded["invocation_id"]) == ("success", kind, "101")


@pytest.mark.parametrize(("given", "kept"), [(101, "101"), ("101", "101"), (101.0, "101"), (10**20, str(10**20))])
def test_an_invocation_id_may_be_a_number_and_is_kept_as_text(given: Any, kept: str) -> None:
    read = read_case(set_at(f"{CALL}/invocation_id", given))
    assert read.script["rounds"][0]["invocations"][0]["invocation_id"] == kept


@pytest.mark.parametrize("place", ["", "rounds/0/", f"{CALL}/", f"{CALL}/retrieval_details/"])
def test_a_key_that_nobody_knows_is_no_error_outside_the_settings(place: str) -> None:
    raw = set_at(f"{place}comment", "kept by somebody else")
    assert judged(raw)["effective_verdict"] == "PASS"


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: text.replace('"lang"', '"question": "x", "lang"'),
        lambda text: text.replace('"support_level"', '"support_level": "none", "support_level"', 1),
        lambda text: text.replace('"matched": 3', '"matched": 3, "matched": 4'),
        lambda text: text.replace('"matched": 3', '"matched": NaN'),
        lambda text: text[:-2],
    ],
)
@pytest.mark.parametrize("indent", [None, 2])
def test_duplicate_keys_anywhere_in_the_file_are_one_error_however_it_is_laid_out(
    spoil: Any, indent: int | None
) -> None:
    text = json.dumps(GOOD, indent=indent)
    spoilt = spoil(text)
    assert spoilt != text
    with pytest.raises(BadCase) as caught:
        read_cases(spoilt.encode(), "case")
    assert caught.value.where == "file"


def test_an_object_on_a_line_of_its_own_makes_no_json_lines_of_a_wrong_file() -> None:
    text = json.dumps(GOOD).replace('"arguments": {"q": "ledger"}', '"arguments":\n  {"q": "ledger"}\n ')
    assert read_cases(text.encode(), "case")[1]
    with pytest.raises(BadCase):
        read_cases(text.replace('"lang": "en"', '"lang": "en", "lang": "en"').encode(), "case")
    with pytest.raises(BadCase):
        read_cases(text[:-1].encode(), "case")


def test_json_lines_are_read_one_by_one_and_a_bad_line_keeps_its_place() -> None:
    wrong = json.dumps(set_at("settings", {"x": 1}))
    text = f"{json.dumps(GOOD)}\n\n{{broken\n{wrong}\r\n{json.dumps(GOOD)}\n"
    lines, single = read_cases(text.encode(), "case")
    assert not single
    assert [(line.number, line.case is not None) for line in lines] == [(1, True), (3, False), (4, False), (5, True)]
    errors = [line.error for line in lines if line.error is not None]
    assert [error.where for error in errors] == ["file", "settings.x"]
    assert all(error.why for error in errors)
    indented, _ = read_cases(f" {{broken}}\n {json.dumps(GOOD)}".encode(), "case")
    assert [line.case is not None for line in indented] == [False, True]
    none_good, single = read_cases(b"{nope}\n{nope}\n", "case")
    assert (single, [line.case for line in none_good]) == (False, [None, None])
    first_bad, _ = read_cases(f"{{broken\n{json.dumps(GOOD)}".encode(), "case")
    assert [line.case is not None for line in first_bad] == [False, True]


@pytest.mark.scenario("OUT-2", "EXE-3")
def test_a_list_holds_the_replies_in_order_and_takes_nothing_from_the_repairs() -> None:
    report = judged(
        case(
            rnd(
                ["no JSON", unplaced()],
                ["```json\n{}\n```", checked()],
                repairs=[["no JSON", good()]],
            )
        )
    )
    assert (report["attempts"], report["effective_verdict"]) == ([2], "PASS")
    alone = judged(case(rnd([good()], [checked()], repairs=[[good()]])))
    assert (alone["attempts"], alone["effective_verdict"]) == ([1], "PASS")


@pytest.mark.parametrize(("field", "status"), [("executor_output", "empty"), ("verifier_output", None)])
def test_an_empty_string_is_a_reply_and_not_an_absence(field: str, status: str | None) -> None:
    report = judged(set_at(f"rounds/0/{field}", ""))
    if status:
        assert report["response"]["fallback_reason"] == "agent_failed"
    else:
        assert report["verifier_evaluation"]["model_verdict"] is None
        assert report["effective_verdict"] == "LOW_CONFID"
    absent = copy.deepcopy(GOOD)
    del absent["rounds"][0]["verifier_output"]
    assert judged(absent)["verifier_evaluation"]["model_verdict"] is not None


@pytest.mark.scenario("REP-5")
@pytest.mark.parametrize("policy", ["cap", "fallback"])
@pytest.mark.parametrize("bound", [0, 1, 2, 3, 4, 5])
def test_max_attempts_bounds_the_evaluations(bound: int, policy: str) -> None:
    bad = [unplaced() for _ in range(6)]
    report = judged(case(rnd(unplaced(), checked(), repairs=bad), max_attempts=bound, on_exhausted=policy))
    assert report["attempts"] == [bound + 1 if bound else 1]
    assert [e["decision"] for e in report["evaluations"]] == ["repair"] * bound
    assert [e["attempt"] for e in report["evaluations"]] == list(range(bound))
    if bound == 0:
        assert (report["effective_verdict"], report["response"]["fallback_reason"]) == ("LOW_CONFID", None)
        assert {cap["source"] for cap in report["verifier_evaluation"]["caps"]} == {"gate"}
    elif policy == "fallback":
        assert (report["effective_verdict"], report["verifier_evaluation"], report["exit_code"]) == (None, None, 20)
        assert (report["route"], report["response"]["fallback_reason"]) == (["degraded"], "evidence_insufficient")
    else:
        assert (report["effective_verdict"], report["exit_code"]) == ("LOW_CONFID", 10)
        assert report["response"]["kind"] == "disclaimer"
        assert report["response"]["fallback_reason"] == "evidence_insufficient"


@pytest.mark.scenario("REP-5")
@pytest.mark.parametrize("repairs", [0, 1])
def test_with_no_repair_left_the_loop_ends_as_exhausted(repairs: int) -> None:
    report = judged(case(rnd(unplaced(), checked(), repairs=[unplaced()] * repairs)))
    assert [e["decision"] for e in report["evaluations"]] == ["repair"] * repairs + ["exhausted"]
    assert report["attempts"] == [1 + repairs]
    assert [c["reason"] for c in report["verifier_evaluation"]["caps"] if c["source"] == "repair"] == ["exhausted"]


def test_a_second_round_is_used_only_if_it_is_asked_for() -> None:
    spare = later(rnd(good(), unfounded()))
    assert judged(case(rnd(good(), checked()), spare))["rounds"] == 1
    rejected = checked("en", "contradicted", "direct_evidence", "REJECT")
    assert judged(case(rnd(good(), rejected), spare))["route"] == ["degraded"]
    third = rnd(good(), checked(), calls=[call("301")])
    asked = judged(case(rnd(good(), unfounded()), spare, third))
    assert (asked["rounds"], asked["route"]) == (2, ["extra_round", "disclaimer"])


def test_a_call_recorded_again_word_for_word_is_the_same_call_and_another_is_an_error() -> None:
    report = judged(case(rnd(good(), unfounded()), rnd(good(), checked())))
    assert (report["route"], report["effective_verdict"]) == (["extra_round", "answer"], "PASS")
    items = report["verifier_evaluation"]["tool_trace_summary"]
    assert [i["source_invocation_ids"] for i in items] == [["101"]]
    other = case(rnd(good(), unfounded()), rnd(good(), checked(), calls=[call("101", POOL)]))
    assert refused(other).where == "rounds[1].tool_invocations[0].invocation_id"


@pytest.mark.scenario("ROU-3")
def test_a_round_that_was_not_recorded_is_borrowed() -> None:
    """Ruling 21 and the shape of a borrowed round."""
    report = judged(case(rnd(good(), unfounded())))
    assert (report["rounds"], report["attempts"], report["route"]) == (2, [1, 0], ["extra_round", "disclaimer"])
    assert {"source": "borrowed", "cap": "LOW_CONFID"}.items() <= report["verifier_evaluation"]["caps"][-1].items()
    assert (report["effective_verdict"], report["groundedness_score"]) == ("LOW_CONFID", 0.0)
    assert report["gatekeeper_result"]["status"] == "pass"
    assert report["rule_evaluation"]["score"] == 1.0
    assert report["self_evaluation"]["verifier_evaluation"]["caps"][-1]["source"] == "borrowed"


@pytest.mark.scenario("SEV-3")
@pytest.mark.parametrize("second", ["", "refused"])
def test_what_was_never_made_is_null(second: str) -> None:
    """Ruling 15: the channel keeps the first round's judgement, the printed one is null."""
    failed = judged(set_at("rounds/0/executor_output", ""))
    names = ("effective_verdict", "groundedness_score", "verifier_evaluation", "gatekeeper_result", "rule_evaluation")
    assert [failed[name] for name in (*names, "self_evaluation")] == [None] * 6
    assert (failed["rounds"], failed["route"], failed["evaluations"]) == (1, ["degraded"], [])
    assert failed["attempts"] == [1]
    more = {"executor_finish_reason": "refusal"} if second else {}
    report = judged(case(rnd(good(), unfounded()), later(rnd("" if not second else good(), checked(), **more))))
    assert [report[name] for name in names[:3]] == [None] * 3
    assert report["route"] == ["extra_round", "degraded"]
    assert report["self_evaluation"]["verifier_evaluation"]["effective_verdict"] == "LOW_CONFID"
    assert (report["response"]["kind"], report["response"]["fallback_reason"]) == ("degraded", "agent_failed")
    assert report["exit_code"] == 1


def test_output_never_creates_refs_and_no_summary_is_made() -> None:
    raw = set_at(f"{CALL}/output", f"{TIMEOUT}\n{RETRIES}")
    del raw["rounds"][0]["tool_invocations"][0]["retrieval_details"]
    raw["settings"] = {"repair.max_attempts": 0}
    gate = judged(raw)["gatekeeper_result"]
    assert "evidence.refs_missing" in gate["failed_rules"]
    quiet = call("102", retrieval_details={"evidence_refs": [], "matched": 0})
    said = good()
    said["claims"][1]["evidence_bindings"] = [binding("hits=0", "summary", "102")]
    told = judged(case(rnd(said, checked(), calls=[call(), quiet]), max_attempts=0))
    assert told["gatekeeper_result"]["checked_bindings"][1]["failed_rules"] == ["evidence.raw_path"]


def test_the_same_file_gives_the_same_result() -> None:
    raw = case(rnd(unplaced(), checked(), repairs=[unplaced(), good()]), later(rnd(good())))
    assert judged(raw) == judged(raw)


@pytest.mark.parametrize("lang", ["zh-CN", "en", None])
def test_the_language_is_chinese_unless_the_case_says_english(lang: str | None) -> None:
    raw = case(rnd(good(), verdict("REJECT", fact(TEXTS["en"]["c1"], "contradicted", "c1"))))
    if lang is None:
        del raw["lang"]
    else:
        raw["lang"] = lang
    text = judged(raw)["response"]["text"]
    assert any("\u4e00" <= letter <= "\u9fff" for letter in text) is (lang != "en")


def test_the_schema_of_a_case_tells_every_key_that_the_example_has() -> None:
    told = case_schema()
    defs = told["$defs"]

    def keys(value: Any, schema: dict[str, Any]) -> None:
        known = schema["properties"]
        assert set(value) <= set(known), set(value) - set(known)
        for name, item in value.items():
            for one in item if isinstance(item, list) else [item]:
                kinds = re.findall(r"#/\$defs/(\w+)", json.dumps(known[name]))
                if isinstance(one, dict) and len(kinds) == 1:
                    keys(one, defs[kinds[0]])

    keys(json.loads(EXAMPLE.read_text(encoding="utf-8")), told)
    assert {"claims", "user_facing_answer"} <= set(defs["Contract"]["properties"])
    assert {"evidence_excerpt", "raw_path", "source_invocation_id"} <= set(defs["Binding"]["properties"])
