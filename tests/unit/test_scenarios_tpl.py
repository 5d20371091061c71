"""What the user reads, through the real roles: TPL, and rulings 9, 14 and 22."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

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
    miscopied,
    rnd,
    unplaced,
    verdict,
)
from tests.play import judged

HAN = re.compile("[\u4e00-\u9fff]")
TEMPLATES = Path(__file__).parents[2] / "prompts" / "templates"


def other(lang: Lang) -> Lang:
    return "zh-CN" if lang == "en" else "en"


def sections(text: str, lang: Lang) -> dict[str, list[str]]:
    """A degraded text, cut at its headings: `sentence`, `confirmed`, `gaps`, `steps`; nothing may be left over."""
    say = templates(lang)
    blocks = text.split("\n\n")
    found = {"sentence": blocks[0].splitlines()}
    for name, block in zip(("confirmed", "gaps", "steps"), blocks[1:], strict=True):
        heading, *lines = block.splitlines()
        assert heading == say(f"degraded/{name}")
        assert all(line.startswith("- ") for line in lines)
        found[name] = [line.removeprefix("- ") for line in lines]
    return found


@pytest.mark.scenario("TPL-1")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("second", [False, True])
def test_the_disclaimer_is_fixed_and_the_gaps_are_the_critical_facts_without_evidence(lang: Lang, second: bool) -> None:
    said = verdict(
        "LOW_CONFID",
        fact(TEXTS[lang]["c1"], claim_id="c1"),
        fact(TEXTS[lang]["c2"], "no_evidence", "c2"),
        fact("HikariPool-1", "no_evidence", is_critical=False),
    )
    rounds = [rnd(good(lang), said)]
    if second:
        rounds = [rnd(good(lang), checked(lang, "no_evidence", "no_evidence")), later(rounds[0])]
    response = judged(case(*rounds, lang=lang))["response"]
    assert response["text"] == f"{templates(lang)('disclaimer/low_confid')}\n\n{good(lang)['user_facing_answer']}"
    assert len(response["gaps"]) == 1
    assert "2" not in response["gaps"][0]
    assert ("retries" if lang == "en" else "重试") in response["gaps"][0]


@pytest.mark.scenario("TPL-2")
@pytest.mark.parametrize("lang", LANGS)
def test_a_withheld_answer_has_four_blocks_and_nothing_else(lang: Lang) -> None:
    said = good(lang)
    said["claims"][1] = miscopied(lang)["claims"][1]
    said["recommended_actions"] = [{"action_text": "Restart HikariPool-1", "reason": "x", "evidence_bindings": []}]
    report = judged(case(rnd(said, checked(lang, c2="no_evidence", said="REJECT")), lang=lang, max_attempts=0))
    shown = sections(report["response"]["text"], lang)
    say = templates(lang)
    assert shown["sentence"] == [say("degraded/withheld")]
    assert shown["confirmed"] == [TEXTS[lang]["c1"]]
    assert shown["gaps"] == report["response"]["gaps"]
    rules = report["gatekeeper_result"]["failed_rules"]
    assert shown["steps"][: len(rules)] == [say(f"next-steps/{rule}") for rule in rules]
    assert "Restart" not in report["response"]["text"]


@pytest.mark.scenario("TPL-2")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    "changed",
    ["indirect", "no claim", "second binding fails", "claim without a binding", "another claim's fact"],
)
def test_only_a_direct_fact_of_a_claim_all_of_whose_bindings_passed_is_confirmed(changed: str, lang: Lang) -> None:
    said, text = good(lang), TEXTS[lang]["c1"]
    facts = [fact(text, claim_id="c1"), fact(TEXTS[lang]["c2"], "contradicted", "c2")]
    if changed == "indirect":
        facts[0]["verification"] = "indirect_support"
    elif changed == "no claim":
        said["claims"] = said["claims"][1:]
        said["user_facing_answer"] = TEXTS[lang]["c2"]
        facts[0] = fact(text, evidence_refs=[])
    elif changed == "second binding fails":
        said["claims"][0]["evidence_bindings"].append(binding(TIMEOUT.replace("3s", "4s"), "lines[0]"))
    elif changed == "claim without a binding":
        said["claims"][0]["evidence_bindings"] = []
    else:
        facts[0]["claim_id"] = "c2"
    report = judged(case(rnd(said, verdict("REJECT", *facts)), lang=lang, max_attempts=0))
    assert report["response"]["kind"] == "degraded"
    assert sections(report["response"]["text"], lang)["confirmed"] == [templates(lang)("degraded/none")]
    assert report["response"]["citations"] == []


@pytest.mark.scenario("TPL-2")
@pytest.mark.parametrize("lang", LANGS)
def test_a_confirmed_fact_need_not_be_critical_and_keeps_its_words(lang: Lang) -> None:
    words = {"en": "The time-out is 3s", "zh-CN": "超时为 3s"}[lang]
    facts = [
        fact(words, claim_id="c1", is_critical=False),
        fact(TEXTS[lang]["c2"], "contradicted", "c2"),
    ]
    report = judged(case(rnd(good(lang), verdict("REJECT", *facts)), lang=lang))
    assert sections(report["response"]["text"], lang)["confirmed"] == [words]
    assert [c["claim_id"] for c in report["response"]["citations"]] == ["c1"]


@pytest.mark.scenario("TPL-3")
def test_chinese_is_the_default() -> None:
    raw = case(rnd(good("zh-CN"), checked("zh-CN", c2="no_evidence", said="LOW_CONFID")), lang="zh-CN")
    del raw["lang"]
    assert judged(raw)["response"]["text"].startswith(templates("zh-CN")("disclaimer/low_confid"))
    del raw["rounds"][0]["executor_output"]["user_facing_answer"]
    assert templates("zh-CN")("answer/confirmed") in judged(raw)["response"]["text"]


@pytest.mark.scenario("TPL-3")
def test_every_text_stands_in_files_and_the_two_languages_have_the_same_ones() -> None:
    files = {lang: {p.name: p.read_text(encoding="utf-8") for p in (TEMPLATES / lang).glob("*.md")} for lang in LANGS}
    keys = {
        lang: {(n, h) for n, t in found.items() for h in re.findall(r"^## (.+)$", t, re.MULTILINE)}
        for lang, found in files.items()
    }
    assert keys["en"] == keys["zh-CN"]
    assert not any(HAN.search(text) for text in files["en"].values())
    sentences = [
        line
        for found in files.values()
        for name, text in found.items()
        if name in {"disclaimer.md", "degraded.md", "gaps.md", "next-steps.md"}
        for line in text.splitlines()
        if len(line) > 24 and not line.startswith("#") and "$" not in line
    ]
    code = "\n".join(
        path.read_text(encoding="utf-8")
        for folder in ("handlers", "streams", "projections")
        for path in (TEMPLATES.parents[1] / folder).rglob("*.py")
    )
    assert len(sentences) > 60
    assert [line for line in sentences if line in code] == []


@pytest.mark.scenario("TPL-3", "TPL-4")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    "given", ["absent", "null", "empty", "blank", "json", "cut json", "contract", "other language"]
)
def test_an_answer_that_may_not_go_out_is_rendered_from_the_contract(given: str, lang: Lang) -> None:
    said = good(lang)
    said["hypotheses"] = [{"hypothesis_text": "HikariPool-1", "basis": "max=20", "needed_evidence": ["waiting=37"]}]
    said["recommended_actions"] = [{"action_text": "ledger-db", "reason": "HikariPool", "evidence_bindings": []}]
    said["missing_info"] = ["ledger"]
    texts: dict[str, Any] = {
        "null": None,
        "empty": "",
        "blank": "  \n",
        "json": '{"pool": 20}',
        "cut json": '{"claims": [{"claim_id": "c1", "claim_te',
        "contract": json.dumps(good(lang), ensure_ascii=False),
        "other language": good(other(lang))["user_facing_answer"],
    }
    if given == "absent":
        del said["user_facing_answer"]
    else:
        said["user_facing_answer"] = texts[given]
    report = judged(case(rnd(said, checked(lang)), lang=lang, max_attempts=0))
    text = report["response"]["text"]
    say = templates(lang)
    assert report["response"]["kind"] in {"answer", "disclaimer"}
    for wanted in (
        say("answer/confirmed"),
        TEXTS[lang]["c1"],
        TEXTS[lang]["c2"],
        say("answer/hypotheses"),
        "HikariPool-1",
    ):
        assert wanted in text
    for wanted in (say("answer/actions"), say("answer/gaps"), "waiting=37", "ledger-db"):
        assert wanted in text
    assert "claim_id" not in text and "{" not in text
    if lang == "zh-CN":
        assert HAN.search(text)
    else:
        assert not HAN.search(text)


@pytest.mark.scenario("TPL-3")
@pytest.mark.parametrize("mark", ['"{}"', "`{}`", "“{}”", "「{}」"])
def test_an_english_answer_may_quote_chinese_evidence_and_nothing_else_in_chinese(mark: str) -> None:
    line = "ledger-db 调用超时 3s"
    text = f"ledger-db timed out after 3s: {mark.format(line)}"
    said = answer(claim("c1", TEXTS["en"]["c1"], binding(line, "lines[0]")), user_facing_answer=text)
    facts = verdict("PASS", fact(TEXTS["en"]["c1"], claim_id="c1"))
    question = "What is the time-out of ledger-db?"
    report = judged(case(rnd(said, facts, calls=[call("101", line)]), question=question))
    assert report["response"]["text"] == text
    said["user_facing_answer"] = f"{text} 需要扩容"
    report = judged(case(rnd(said, facts, calls=[call("101", line)]), question=question, max_attempts=0))
    assert "扩容" not in report["response"]["text"]


@pytest.mark.scenario("TPL-4")
def test_the_text_set_aside_is_still_checked() -> None:
    said = good("zh-CN")
    said["user_facing_answer"] = "It failed with ORA-09999."
    report = judged(case(rnd(said, checked("zh-CN")), lang="zh-CN"))
    assert report["effective_verdict"] == "REJECT"
    assert "answer.identifier_absent" in report["gatekeeper_result"]["failed_rules"]


PROSE = {"en": "The time-out of ledger-db is 3s.", "zh-CN": "ledger-db 的超时为 3s。"}


def malformed(lang: Lang) -> dict[str, tuple[str, str, bool]]:
    """Reply, finish reason, whether it is prose."""
    whole = json.dumps(good(lang), ensure_ascii=False)
    return {
        "prose": (PROSE[lang], "stop", True),
        "cut prose": (PROSE[lang], "length", True),
        "prose behind a think block": (f"<think>SECRET {{</think>\n{PROSE[lang]}", "stop", True),
        "prose before an open think block": (f"{PROSE[lang]}\n<think>SECRET", "stop", True),
        "JSON of another version": (whole.replace("_v2", "_v9"), "stop", False),
        "JSON list": (f"[{whole}]", "stop", False),
        "two objects": (f"{whole}\n{whole}", "stop", False),
        "cut JSON": (whole[:-30], "stop", False),
        "cut JSON at the limit": (whole[: len(whole) // 2], "length", False),
        "whole JSON at the limit": (whole, "length", False),
        "cut fence": (f"```json\n{whole[:-30]}", "stop", False),
        "JSON behind an open think block": (f"<think>SECRET {whole}", "stop", False),
        "JSON in prose": (f"{PROSE[lang]}\n{whole.replace('_v2', '_v9')}", "stop", False),
        "unknown finish reason": (whole, "insufficient_system_resource", False),
    }


@pytest.mark.scenario("TPL-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("form", list(malformed("en")))
def test_malformed_output_goes_out_as_prose_or_not_at_all(form: str, lang: Lang) -> None:
    reply, reason, prose = malformed(lang)[form]
    facts = [fact(PROSE[lang]), fact(TEXTS[lang]["c2"], "no_evidence"), fact("HikariPool-1", "indirect_support")]
    report = judged(case(rnd(reply, verdict("LOW_CONFID", *facts), executor_finish_reason=reason), lang=lang))
    say, text = templates(lang), report["response"]["text"]
    status = "truncated" if reason == "length" else "malformed"
    assert report["verifier_evaluation"]["executor_output_parse_status"] == status
    assert report["verifier_evaluation"]["executor_structured_output"] is None
    assert report["effective_verdict"] == "LOW_CONFID"
    assert report["evaluations"] == []
    assert "SECRET" not in json.dumps(report, ensure_ascii=False)
    assert "think" not in report["verifier_evaluation"]["executor_final_answer"]
    assert text.startswith(say("disclaimer/low_confid") + "\n\n")
    body = text.removeprefix(say("disclaimer/low_confid")).strip()
    if prose:
        assert body == PROSE[lang]
    else:
        assert "{" not in body and "claim_id" not in body
        assert say("answer/facts") in body and PROSE[lang] in body
        assert say("answer/indirect") in body and "HikariPool-1" in body
        assert say("answer/gaps") in body and report["response"]["gaps"][0] in body
        assert TEXTS[lang]["c2"] not in body
    assert report["response"]["fallback_reason"] is None


@pytest.mark.scenario("TPL-2")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    ("spoil", "rule"),
    [
        ({"tool_name": "query_metrics"}, "evidence.tool_name"),
        ({"raw_path": "lines[9]"}, "evidence.raw_path"),
        ({"source_invocation_id": "999"}, "evidence.invocation_id"),
        ({"evidence_excerpt": ""}, "evidence.excerpt_missing"),
    ],
)
def test_next_steps_come_from_the_templates_of_the_failed_rules(spoil: dict[str, str], rule: str, lang: Lang) -> None:
    said = good(lang)
    said["claims"][1]["evidence_bindings"][0].update(spoil)
    report = judged(case(rnd(said, checked(lang)), lang=lang, max_attempts=0))
    assert report["response"]["kind"] == "degraded"
    assert templates(lang)(f"next-steps/{rule}") in sections(report["response"]["text"], lang)["steps"]


GAPS = {
    "en": [
        ("What is the connection time-out?", "The connection time-out is 3 s.", "time-out"),
        ("How many retries are allowed?", "9 retries are allowed.", "retries"),
    ],
    "zh-CN": [("连接超时是多少?", "连接超时为 3 秒。", "超时"), ("最多重试几次?", "最多重试 9 次。", "重试")],
}


@pytest.mark.scenario("TPL-1", "TPL-2", "ROU-7")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("at", [0, 1])
def test_a_gap_names_the_subject_and_not_the_value(at: int, lang: Lang) -> None:
    question, text, subject = GAPS[lang][at]
    said = answer(claim("c1", text, binding(POOL, "lines[2]")))
    for policy in ("cap", "fallback"):
        raw = case(rnd(said, verdict("LOW_CONFID", fact(text, "no_evidence", "c1"))), lang=lang, question=question)
        raw["settings"]["repair.on_exhausted"] = policy
        response = judged(raw)["response"]
        for gap in (*response["gaps"], *response["missing_claims"]):
            assert subject in gap
            assert not re.search(r"\d", gap)
            assert text.strip(".。") not in gap
        assert response["gaps"]


@pytest.mark.scenario("TPL-1")
@pytest.mark.parametrize("lang", LANGS)
def test_the_text_names_what_is_missing_where_the_loop_ended(lang: Lang) -> None:
    response = judged(case(rnd(unplaced(lang), checked(lang)), lang=lang))["response"]
    say = templates(lang)
    assert response["text"].startswith(f"{say('disclaimer/low_confid')}\n\n{good(lang)['user_facing_answer']}\n\n")
    assert all(gap in response["text"] for gap in response["missing_claims"])
    assert RETRIES not in response["text"]


@pytest.mark.scenario("TPL-1")
@pytest.mark.parametrize("lang", LANGS)
def test_a_gap_of_no_part_is_not_named_after_a_part_that_is_confirmed(lang: Lang) -> None:
    said = good(lang)
    said["user_facing_answer"] += {"en": " There were 516 calls.", "zh-CN": "共有 516 次调用。"}[lang]
    (gap,) = judged(case(rnd(said, checked(lang)), lang=lang))["response"]["gaps"]
    assert templates(lang)("gaps/any_subject") in gap
    assert not any(word in gap for word in ("time-out", "retries", "超时", "重试", "516"))
