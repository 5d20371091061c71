"""Routing through the real roles: ROU, and rulings 13, 15 and 21 as far as a route depends on them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from handlers.case import read_case
from handlers.report import exit_code, turn_report
from handlers.roles import ROLES
from prompts import templates
from streams.envelope import Draft
from streams.events import TurnCancelled, TurnFailed
from streams.session import SessionState
from tests.ledger_case import (
    LANGS,
    POOL,
    RETRIES,
    TEXTS,
    TIMEOUT,
    Lang,
    answer,
    binding,
    case,
    checked,
    claim,
    fact,
    good,
    later,
    miscopied,
    rnd,
    unfounded,
    unplaced,
    verdict,
)
from tests.play import SESSION, Stage, judged, question_of

INSUFFICIENT = "evidence_insufficient"


@pytest.mark.scenario("ROU-1")
@pytest.mark.parametrize("lang", LANGS)
def test_a_pass_goes_out_unchanged_with_its_citations(lang: Lang) -> None:
    said = good(lang)
    said["user_facing_answer"] = f"  {said['user_facing_answer']}\n\n- HikariPool-1 max=20  "
    said["claims"].append(claim("c3", "HikariPool-1 max=20", binding("max=20", "lines[2]")))
    facts = [*checked(lang)["facts_checked"], fact("HikariPool-1 max=20", claim_id="c3")]
    report = judged(case(rnd(said, verdict("PASS", *facts)), lang=lang))
    assert report["effective_verdict"] == "PASS"
    assert report["response"]["kind"] == "answer"
    assert report["response"]["text"] == said["user_facing_answer"], "to the byte"
    assert report["response"]["citations"] == [
        {"claim_id": "c1", "source_invocation_id": "101", "raw_path": "lines[0]", "excerpt": TIMEOUT},
        {"claim_id": "c2", "source_invocation_id": "101", "raw_path": "lines[1]", "excerpt": RETRIES},
        {"claim_id": "c3", "source_invocation_id": "101", "raw_path": "lines[2]", "excerpt": "max=20"},
    ]
    assert (report["response"]["gaps"], report["response"]["missing_claims"]) == ([], [])
    assert report["response"]["fallback_reason"] is None


@pytest.mark.scenario("ROU-2", "TPL-1")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    ("c1", "c2", "score"),
    [
        ("direct_evidence", "no_evidence", 0.5),
        ("indirect_support", "indirect_support", 0.6),
        ("direct_evidence", "indirect_support", 0.8),
    ],
)
def test_low_confidence_from_a_half_on_is_marked_at_once(lang: Lang, c1: str, c2: str, score: float) -> None:
    report = judged(case(rnd(good(lang), checked(lang, c1, c2, "LOW_CONFID")), later(rnd(good(lang))), lang=lang))
    assert report["groundedness_score"] == score
    assert report["route"] == ["disclaimer"]
    response = report["response"]
    assert response["text"] == f"{templates(lang)('disclaimer/low_confid')}\n\n{good(lang)['user_facing_answer']}"
    assert [c["claim_id"] for c in response["citations"]] == ["c1", "c2"]
    assert len(response["gaps"]) == (c2 == "no_evidence")
    assert response["fallback_reason"] is None


@pytest.mark.scenario("ROU-2")
def test_a_marked_answer_cites_what_passed_only() -> None:
    report = judged(case(rnd(unplaced(), checked())))
    assert report["response"]["kind"] == "disclaimer"
    assert [c["claim_id"] for c in report["response"]["citations"]] == ["c1"]


def first_rounds(lang: Lang) -> dict[str, dict[str, Any]]:
    """Every cause of an extra round: labels, gate, repair loop, both parsers (ruling 13)."""
    return {
        "labels": rnd(good(lang), unfounded(lang)),
        "gate and loop": rnd(unplaced(lang), unfounded(lang)),
        "answer without JSON": rnd("no JSON at all", verdict("LOW_CONFID")),
        "cut answer": rnd('{"answer_version": "exec', verdict("LOW_CONFID"), executor_finish_reason="length"),
        "verifier malformed": rnd(good(lang), ["no verdict", "still none"]),
        "no critical fact": rnd(answer(), verdict("PASS")),
    }


@pytest.mark.scenario("ROU-3", "ROU-4")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("cause", list(first_rounds("en")))
def test_low_confidence_below_a_half_has_exactly_one_more_round(cause: str, lang: Lang) -> None:
    first = first_rounds(lang)[cause]
    again = {**json.loads(json.dumps(first).replace("101", "201"))}
    third = {**json.loads(json.dumps(rnd(good(lang), checked(lang))).replace("101", "301"))}
    report = judged(case(first, again, third, lang=lang))
    assert report["route"] == ["extra_round", "disclaimer"]
    assert (report["rounds"], report["attempts"]) == (2, [1, 1])
    assert report["effective_verdict"] == "LOW_CONFID"
    assert report["groundedness_score"] < 0.5
    assert report["exit_code"] == 10


@pytest.mark.scenario("ROU-4")
@pytest.mark.parametrize("lang", LANGS)
def test_a_second_round_above_a_half_is_marked_too(lang: Lang) -> None:
    second = later(rnd(good(lang), checked(lang, c2="no_evidence", said="LOW_CONFID")))
    report = judged(case(rnd(good(lang), unfounded(lang)), second, lang=lang))
    assert report["route"] == ["extra_round", "disclaimer"]
    assert report["groundedness_score"] == 0.5


@pytest.mark.scenario("ROU-5", "ROU-6")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("why", ["contradicted", "gate", "model"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_reject_withholds_the_answer_at_once_in_either_round(number: int, why: str, lang: Lang) -> None:
    bad = {
        "contradicted": rnd(good(lang), checked(lang, c2="contradicted", said="REJECT")),
        "gate": rnd(miscopied(lang), checked(lang)),
        "model": rnd(good(lang), checked(lang, said="REJECT")),
    }[why]
    sound = rnd(good(lang), checked(lang))
    rounds = [bad, later(sound)] if number == 1 else [rnd(good(lang), unfounded(lang)), later(bad)]
    report = judged(case(*rounds, lang=lang, max_attempts=0))
    assert report["route"] == (["degraded"] if number == 1 else ["extra_round", "degraded"])
    assert report["effective_verdict"] == "REJECT"
    assert report["response"]["fallback_reason"] == "rejected"
    assert report["exit_code"] == 20
    assert report["response"]["text"].startswith(templates(lang)("degraded/withheld"))


@pytest.mark.scenario("ROU-3", "ROU-4")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("cause", list(first_rounds("en")))
def test_a_script_without_a_second_round_lends_it_the_first(cause: str, lang: Lang) -> None:
    report = judged(case(first_rounds(lang)[cause], lang=lang))
    alone = judged(case(first_rounds(lang)[cause], lang=lang, max_attempts=0))
    assert report["route"] == ["extra_round", "disclaimer"]
    assert (report["rounds"], report["attempts"]) == (2, [1, 0])
    borrowed = [cap for cap in report["verifier_evaluation"]["caps"] if cap["source"] == "borrowed"]
    assert [cap["cap"] for cap in borrowed] == ["LOW_CONFID"]
    assert report["gatekeeper_result"] == alone["gatekeeper_result"]
    assert report["rule_evaluation"] == alone["rule_evaluation"]
    assert report["verifier_evaluation"]["facts_checked"] is not None
    assert report["groundedness_score"] < 0.5
    loop_ended = cause == "gate and loop" or (cause == "no critical fact")
    assert (report["response"]["fallback_reason"] == INSUFFICIENT) == loop_ended
    assert {e["round"] for e in report["evaluations"]} <= {1}
    assert report["self_evaluation"]["verifier_evaluation"] == report["verifier_evaluation"]
    assert report["self_evaluation"]["rule_evaluation"] == report["rule_evaluation"]
    assert report["exit_code"] == 10


@pytest.mark.scenario("ROU-4", "REP-10")
def test_a_borrowed_round_answers_with_the_firsts_answer_and_what_its_loop_missed() -> None:
    report = judged(case(rnd(unplaced(), unfounded())))
    assert good()["user_facing_answer"] in report["response"]["text"]
    assert [c["claim_id"] for c in report["response"]["citations"]] == ["c1"]
    assert len(report["response"]["missing_claims"]) == 1
    assert len(report["response"]["gaps"]) == 2


# --- what ends a turn before it is judged (ruling 15) ---


async def _played(raw: dict[str, Any], end: Any, at: str, count: int) -> SessionState:
    """The case played until the `count`-th event of type `at`, then `end` appended, then played on."""
    stage = Stage()
    await stage.ask(await question_of(stage, read_case(raw)))
    done = 0
    while True:
        events = await stage.log.read(SESSION)
        if sum(e.type == at for e in events) >= count:
            break
        event = events[done]
        done += 1
        for role in ROLES.values():
            if event.type in role.triggers and role.name != "deadline":
                await stage.deliver(role.name, event.n)
    for draft in end(await stage.state()):
        state = await stage.state()
        await stage.log.append(SESSION, [draft], state.head, stage.clock())
    return await stage.run(deliveries=2)


def _cancelled(state: SessionState) -> list[Draft]:
    return [Draft(TurnCancelled(who="on-call"), "intake", 1, state.turns[-1].rounds[-1].number)]


def _failed(reason: Any) -> Any:
    def drafts(state: SessionState) -> list[Draft]:
        return [Draft(TurnFailed(reason=reason), "x", 1, state.turns[-1].rounds[-1].number)]

    return drafts


ENDS = {
    "cancelled": _cancelled,
    "deadline": _failed("deadline"),
    "parked": _failed("parked"),
    "agent_failed": _failed("agent_failed"),
}


@pytest.mark.scenario("ROU-7", "ROU-8")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("reason", list(ENDS))
@pytest.mark.parametrize("place", ["planned", "drafted", "judged", "second planned", "second drafted", "second judged"])
def test_a_turn_that_is_ended_has_no_judgement_and_says_why(place: str, reason: str, lang: Lang) -> None:
    at = {"planned": "plan-made", "drafted": "answer-drafted", "judged": "facts-verified"}[place.rsplit(maxsplit=1)[-1]]
    second = place.startswith("second")
    raw = case(rnd(unplaced(lang), unfounded(lang)), later(rnd(unplaced(lang), checked(lang))), lang=lang)
    state = asyncio.run(_played(raw, ENDS[reason], at, 2 if second else 1))
    report = turn_report(state, state.turns[-1])
    assert report["response"]["kind"] == "degraded"
    assert report["response"]["fallback_reason"] == reason
    assert report["effective_verdict"] is report["verifier_evaluation"] is report["groundedness_score"] is None
    assert report["route"] == (["extra_round", "degraded"] if second else ["degraded"])
    assert report["rounds"] == len(report["route"]) == len(report["attempts"])
    assert exit_code(state.turns[-1]) == 1
    assert ("verifier_evaluation" in (report["self_evaluation"] or {})) == (second or place == "judged")
    assert [e.type for e in state.events].count("answer-given") == 1
    say = templates(lang)
    assert say(f"degraded/{reason}") in report["response"]["text"]
    assert report["response"]["citations"] == []


@pytest.mark.scenario("TPL-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("how", ["empty", "blank", "thinking only", "fence only", "refusal", "content_filter"])
@pytest.mark.parametrize("number", [1, 2])
def test_an_agent_that_gives_no_answer_has_failed_in_either_round(number: int, how: str, lang: Lang) -> None:
    text = {"blank": " \n\t ", "thinking only": "<think>hm</think>\n", "fence only": "```json\n```"}.get(how, "")
    bad = rnd(text, checked(lang))
    if how in {"refusal", "content_filter"}:
        bad = rnd(good(lang), checked(lang), executor_finish_reason=how)
    rounds = [bad] if number == 1 else [rnd(good(lang), unfounded(lang)), later(bad)]
    report = judged(case(*rounds, lang=lang))
    assert report["response"]["fallback_reason"] == "agent_failed"
    assert report["effective_verdict"] is report["verifier_evaluation"] is None
    assert report["route"] == ["extra_round"] * (number - 1) + ["degraded"]
    assert report["gatekeeper_result"] is report["rule_evaluation"] is None
    assert set(report["self_evaluation"] or {}) == (
        {"rule_evaluation", "verifier_evaluation"} if number == 2 else set()
    )
    assert report["exit_code"] == 1


# --- no leak (ROU-7) ---

MARKED = {
    "en": "The pod ledger-db-7f9c4 of build 88.77.66 answered in 4711ms with ORA-09999 near Quetzalcoatl.",
    "zh-CN": "ledger-db-7f9c4 在 88.77.66 版本上于 4711ms 返回 ORA-09999,涉及 Quetzalcoatl。",
}
MARKERS = ("4711", "09999", "7f9c4", "88.77.66", "Quetzalcoatl", "hunter2", "secret-claim")


def leaky(lang: Lang) -> dict[str, Any]:
    """One sound claim, and markers of what is not verified in every text that an Executor can write."""
    text = MARKED[lang]
    sound = claim("c1", TEXTS[lang]["c1"], binding(TIMEOUT, "lines[0]"))
    bad = claim("secret-claim-4711", text, binding(f"{RETRIES} {text}", "lines[1]"), binding(POOL, "lines[2]"))
    extra = claim("c3", f"{text} hunter2", binding(RETRIES, "lines[1]"))
    return answer(
        sound,
        bad,
        extra,
        diagnosis_summary=f"{text} hunter2",
        hypotheses=[{"hypothesis_text": text, "basis": text, "needed_evidence": [f"{text} hunter2"]}],
        recommended_actions=[{"action_text": text, "reason": text, "evidence_bindings": [binding(text, "lines[0]")]}],
        missing_info=[f"{text} hunter2"],
        user_facing_answer=f"{TEXTS[lang]['c1']} {text}",
    )


@pytest.mark.scenario("ROU-7", "TPL-2")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("policy", ["cap", "fallback"])
@pytest.mark.parametrize("attempts", [0, 2])
def test_a_withheld_answer_leaves_no_trace_of_what_is_not_verified(attempts: int, policy: str, lang: Lang) -> None:
    text = MARKED[lang]
    facts = [
        fact(TEXTS[lang]["c1"], claim_id="c1"),
        fact(text, claim_id="secret-claim-4711"),
        fact(f"{text} hunter2", "no_evidence", "c3"),
        fact(f"{text} hunter2", "no_evidence"),
        fact(text, "contradicted"),
        fact(f"{TEXTS[lang]['c1']} hunter2", claim_id="c1"),
    ]
    said = verdict("REJECT", *facts, rationale=text)
    report = judged(case(rnd(leaky(lang), said), lang=lang, max_attempts=attempts, on_exhausted=policy))
    response = report["response"]
    assert response["kind"] == "degraded"
    shown = json.dumps(response, ensure_ascii=False)
    assert [marker for marker in MARKERS if marker in shown] == []
    judged_turn = policy == "cap" or attempts == 0
    assert (TEXTS[lang]["c1"] in response["text"]) == judged_turn, "the confirmed fact is shown"
    cited = [{"claim_id": "c1", "source_invocation_id": "101", "raw_path": "lines[0]", "excerpt": TIMEOUT}]
    assert response["citations"] == (cited if judged_turn else [])


@pytest.mark.scenario("ROU-7")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("reason", list(ENDS))
@pytest.mark.parametrize("at", ["answer-drafted", "answer-evaluated", "facts-verified"])
def test_an_ended_turn_leaves_no_trace_either(at: str, reason: str, lang: Lang) -> None:
    raw = case(rnd(leaky(lang), verdict("PASS", fact(MARKED[lang], claim_id="c3"))), lang=lang)
    state = asyncio.run(_played(raw, ENDS[reason], at, 1))
    shown = json.dumps(turn_report(state, state.turns[-1])["response"], ensure_ascii=False)
    assert [marker for marker in MARKERS if marker in shown] == []


@pytest.mark.scenario("ROU-7", "TPL-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("form", ["prose", "json", "cut"])
def test_a_malformed_answer_that_is_rejected_leaves_no_trace(form: str, lang: Lang) -> None:
    given = json.dumps(leaky(lang), ensure_ascii=False)
    text = {"prose": MARKED[lang], "json": given.replace("_v2", "_v7"), "cut": given[:-40]}[form]
    said = verdict("REJECT", fact(MARKED[lang], "contradicted"), fact(MARKED[lang]), rationale=MARKED[lang])
    report = judged(case(rnd(text, said), lang=lang))
    assert report["response"]["kind"] == "degraded"
    shown = json.dumps(report["response"], ensure_ascii=False)
    assert [marker for marker in MARKERS if marker in shown] == []


@pytest.mark.scenario("ROU-7")
@pytest.mark.parametrize("lang", LANGS)
def test_what_the_question_repeats_of_an_unverified_answer_is_left_out_too(lang: Lang) -> None:
    asked = {
        "en": "Did ledger-db time out after 4711ms with ORA-09999?",
        "zh-CN": "ledger-db 是否在 4711ms 后超时并报 ORA-09999?",
    }
    report = judged(
        case(
            rnd(leaky(lang), verdict("REJECT", fact(MARKED[lang], "no_evidence", "c3"))),
            lang=lang,
            question=asked[lang],
        )
    )
    shown = json.dumps(report["response"], ensure_ascii=False)
    assert report["response"]["kind"] == "degraded"
    assert report["response"]["gaps"]
    assert [marker for marker in MARKERS if marker in shown] == []


@pytest.mark.scenario("ROU-7", "TPL-2")
@pytest.mark.parametrize("said", ["The ledger is corrupt.", "{c1} The primary ledger is corrupted beyond repair."])
def test_a_fact_about_a_confirmed_claim_carries_nothing_else_out(said: str) -> None:
    false = claim("c3", "The ledger is corrupt.", binding("ledger corrupt", "lines[0]"))
    given = good()
    given["claims"].append(false)
    smuggled = fact(said.format(c1=TEXTS["en"]["c1"]), claim_id="c1")
    report = judged(case(rnd(given, verdict("PASS", *checked()["facts_checked"], smuggled)), max_attempts=0))
    assert report["effective_verdict"] == "REJECT"
    assert "corrupt" not in json.dumps(report["response"])
    assert TEXTS["en"]["c1"].rstrip(".") in report["response"]["text"]


# --- once and only once (ROU-8) ---


@pytest.mark.scenario("ROU-8")
@pytest.mark.parametrize("deliveries", [2, 3])
@pytest.mark.parametrize(
    "rounds",
    [
        [rnd(good(), checked())],
        [rnd(good(), unfounded())],
        [rnd(good(), unfounded()), later(rnd(good(), unfounded()))],
        [rnd(unplaced(), unfounded(), repairs=[unplaced()]), later(rnd(miscopied(), checked()))],
        [rnd("", checked())],
    ],
    ids=["pass", "borrowed", "second round", "repairs and reject", "failed"],
)
def test_duplicates_change_nothing(rounds: list[dict[str, Any]], deliveries: int) -> None:
    async def played(times: int) -> SessionState:
        stage = Stage()
        await stage.ask(await question_of(stage, read_case(case(*rounds))))
        return await stage.run(deliveries=times)

    once, often = asyncio.run(played(1)), asyncio.run(played(deliveries))
    assert [e.type for e in often.events] == [e.type for e in once.events]
    assert [e.id for e in often.events] == [e.id for e in once.events]


@pytest.mark.scenario("ROU-8")
def test_workers_that_race_and_replay_every_event_out_of_order_decide_once() -> None:
    raw = case(rnd(unplaced(), unfounded(), repairs=[good()]), later(rnd(miscopied(), checked(), repairs=[unplaced()])))

    async def played() -> SessionState:
        stage = Stage()
        await stage.ask(await question_of(stage, read_case(raw)))
        seen = 0
        while True:
            events = await stage.log.read(SESSION)
            if seen == len(events):
                break
            seen = len(events)
            pairs = [
                (role.name, e.n)
                for e in reversed(events)
                for role in ROLES.values()
                if e.type in role.triggers and role.name != "deadline"
            ]
            await asyncio.gather(*(stage.deliver(role, n) for role, n in pairs for _ in range(2)))
        return await stage.state()

    state = asyncio.run(played())
    kinds = [e.type for e in state.events]
    assert kinds.count("answer-given") == 1
    assert kinds.count("round-routed") == kinds.count("facts-verified") == kinds.count("plan-made") == 2
    assert kinds.count("tool-invoked") == 2
    assert len({e.id for e in state.events}) == len(state.events)
    assert turn_report(state, state.turns[-1])["route"] == ["extra_round", "disclaimer"]
