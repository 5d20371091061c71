"""What the user reads: ROU-1 to ROU-7, TPL, REP-6, rulings 9, 14, 15, 22."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handlers.gaps import Wording
from handlers.templates import Response, render_answer
from prompts import Templates, templates
from streams.contract import Claim, Contract
from streams.events import TurnOptions
from tests.answers import CALLS, POOL, RETRIES, TIMEOUT, answer, claim, fact, respond, turn_of

LANGS = ("en", "zh-CN")
QUESTION = "What is the time-out, and how many retries are allowed?"
GOOD = claim("c1", "The time-out is 3s.", TIMEOUT)
WRONG = claim("c2", "There are 9 retries.", RETRIES, "lines[1]")
SAID = "The time-out is 3s."
CAP, FALLBACK = TurnOptions(max_attempts=1), TurnOptions(max_attempts=1, on_exhausted="fallback")


def everything(response: Response) -> str:
    """Every field of a response as one text, as a client gets it."""
    cited = [c.model_dump() for c in response["citations"]]
    return json.dumps({**response, "citations": cited}, ensure_ascii=False)


def because(say: Templates, reason: str) -> str:
    return say("degraded/because", sentence=say("degraded/withheld"), reason=say(f"degraded/{reason}"))


@pytest.mark.scenario("ROU-1")
def test_an_accepted_answer_goes_out_unchanged_with_its_citations_beside_it() -> None:
    said = "The time-out is 3s.\n\n  See `ledger-db`."
    turn = turn_of(
        "What is the time-out of ledger-db?", answer(GOOD, user_facing_answer=said), [fact(SAID, claim_id="c1")]
    )
    response = respond(turn, "answer")
    assert response["text"] == said
    assert response["kind"] == "answer"
    assert [c.model_dump() for c in response["citations"]] == [
        {"claim_id": "c1", "source_invocation_id": "101", "raw_path": "lines[0]", "excerpt": TIMEOUT}
    ]
    assert (response["gaps"], response["missing_claims"], response["fallback_reason"]) == ((), (), None)


@pytest.mark.scenario("ROU-2")
@pytest.mark.scenario("TPL-1")
@pytest.mark.parametrize("lang", LANGS)
def test_a_marked_answer_stands_behind_the_fixed_disclaimer_and_cites_what_passed(lang: str) -> None:
    said = "The time-out is 3s." if lang == "en" else "超时为 3s。"
    tampered = claim("c2", "There are 9 retries.", RETRIES.replace("2", "9"), "lines[1]")
    facts = [fact(SAID, claim_id="c1"), fact("There are 9 retries.", "no_evidence", "c2")]
    turn = turn_of(QUESTION, answer(GOOD, tampered, user_facing_answer=said), facts, lang=lang)
    response = respond(turn, "disclaimer")
    assert response["text"] == f"{templates(lang)('disclaimer/low_confid')}\n\n{said}"
    assert [c.claim_id for c in response["citations"]] == ["c1"]
    assert len(response["gaps"]) == 1
    assert "9" not in response["gaps"][0]
    assert "retries" in response["gaps"][0]


@pytest.mark.scenario("ROU-1")
def test_a_citation_is_the_sources_text_and_not_the_models() -> None:
    quoted = claim("c1", "The time-out is 3s.", "LEDGER-DB CALL: TIME-OUT AFTER 3S")
    turn = turn_of("What is the time-out?", answer(quoted, user_facing_answer=SAID), [fact(SAID, claim_id="c1")])
    assert [c.excerpt for c in respond(turn, "answer")["citations"]] == [TIMEOUT]


@pytest.mark.scenario("TPL-4")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("given_text", [None, "", '{"claims": []}', "other language"])
def test_without_a_usable_text_the_answer_is_rendered_from_the_contract(lang: str, given_text: str | None) -> None:
    text = {"en": "超时为 3s", "zh-CN": "The time-out is 3s"}[lang] if given_text == "other language" else given_text
    said = answer(
        GOOD,
        hypotheses=[
            {"hypothesis_text": "The index is gone", "basis": "the calls got slow", "needed_evidence": ["a plan"]}
        ],
        recommended_actions=[
            {"action_text": "Look at the plan", "reason": "it shows the index", "evidence_bindings": []}
        ],
        missing_info=["the plan"],
        **({} if text is None else {"user_facing_answer": text}),
    )
    response = respond(turn_of("What is the time-out?", said, [fact(SAID, claim_id="c1")], lang=lang), "answer")
    shown = response["text"]
    for expected in (
        "The time-out is 3s.",
        "The index is gone",
        "the calls got slow",
        "Look at the plan",
        "a plan",
        "the plan",
    ):
        assert expected in shown
    assert templates(lang)("answer/confirmed") in shown
    assert "claim_id" not in shown


@pytest.mark.scenario("EXE-8")
def test_a_claim_that_rests_on_a_runbook_is_rendered_as_not_confirmed() -> None:
    contract = Contract(
        answer_version="executor_evidence_v2",
        claims=(Claim(claim_id="c1", claim_text="It is a leak.", support_level="direct", evidence_bindings=({},)),),
    )
    assert templates("en")("answer/confirmed") in render_answer(contract, "en")
    rendered = render_answer(contract, "en", confirmed=())
    assert rendered.startswith(templates("en")("answer/hypotheses"))


def test_a_claim_whose_evidence_failed_is_rendered_as_not_confirmed() -> None:
    facts = [fact(SAID, claim_id="c1"), fact("There are 9 retries.", "no_evidence", "c2")]
    text = respond(turn_of(QUESTION, answer(GOOD, WRONG), facts), "disclaimer")["text"]
    before, after = text.split(templates("en")("answer/hypotheses"))
    assert "The time-out is 3s." in before
    assert "9 retries" not in before
    assert "There are 9 retries." in after


@pytest.mark.scenario("TPL-4")
@pytest.mark.parametrize("lang", LANGS)
def test_a_contract_of_nothing_says_that_nothing_is_confirmed(lang: str) -> None:
    assert render_answer(Contract(answer_version="executor_evidence_v2"), lang) == templates(lang)("answer/nothing")


@pytest.mark.scenario("TPL-5")
@pytest.mark.scenario("EXE-3")
def test_malformed_prose_goes_out_behind_the_disclaimer() -> None:
    turn = turn_of("What is the time-out?", "The time-out is 3s, I think.", [fact(SAID, "indirect_support")])
    response = respond(turn, "disclaimer")
    assert response["text"] == f"{templates('en')('disclaimer/low_confid')}\n\nThe time-out is 3s, I think."


@pytest.mark.scenario("TPL-5")
@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize(
    "text",
    [
        '{"answer_version": "executor_evidence_v2", "claims": [{"claim_id": "c1"',
        '{"answer_version": "executor_evidence_v9", "claims": []}',
        '```json\n{"claims": [',
        '[{"claim_id": "c1"}]',
    ],
)
def test_json_never_goes_out_but_the_checked_facts_do(text: str, lang: str) -> None:
    facts = [fact("ledger-db calls end after 3s"), fact("9 retries were made", "no_evidence")]
    response = respond(turn_of(QUESTION, text, facts, lang=lang), "disclaimer")
    assert "ledger-db calls end after 3s" in response["text"]
    assert "claim" not in response["text"].replace("claims of", "")
    assert "{" not in response["text"]
    assert response["gaps"][0] in response["text"]
    assert "9 retries" not in response["text"]


@pytest.mark.scenario("TPL-2")
@pytest.mark.scenario("ROU-5")
@pytest.mark.scenario("ROU-6")
@pytest.mark.parametrize("lang", LANGS)
def test_a_withheld_answer_has_the_sentence_facts_gaps_steps_and_nothing_else(lang: str) -> None:
    say = templates(lang)
    facts = [fact("ledger-db calls end after 3s", claim_id="c1"), fact("There are 9 retries", "contradicted", "c2")]
    facts.append(fact("The pool is full", "no_evidence"))
    action = {"action_text": "Reboot the ledger", "reason": "it helps", "evidence_bindings": []}
    said = answer(GOOD, WRONG, user_facing_answer="3s and 9 retries", recommended_actions=[action])
    response = respond(turn_of(QUESTION, said, facts, lang=lang, verdict="REJECT"), "degraded", "rejected")
    blocks = response["text"].split("\n\n")
    assert blocks[0] == say("degraded/withheld")
    assert [block.splitlines()[0] for block in blocks[1:]] == [
        say(f"degraded/{k}") for k in ("confirmed", "gaps", "steps")
    ]
    assert blocks[1].splitlines()[1:] == ["- ledger-db calls end after 3s"]
    assert blocks[2].splitlines()[1:] == [f"- {gap}" for gap in response["gaps"]]
    steps = blocks[3].splitlines()[1:]
    assert f"- {say('next-steps/claim.number_absent')}" in steps
    assert f"- {say('next-steps/gap.contradicted')}" in steps
    assert "Reboot" not in everything(response)
    assert "9" not in everything(response)
    assert [c.claim_id for c in response["citations"]] == ["c1"]
    assert response["fallback_reason"] == "rejected"


@pytest.mark.scenario("TPL-2")
@pytest.mark.parametrize(
    "claims",
    [
        [claim("c1", "The time-out is 3s.", TIMEOUT.replace("3", "4"))],
        [claim("c1", "The time-out is 3s, with 9 retries.", TIMEOUT)],
        [claim("c1", "The time-out is 3s.", None)],
        [claim("c1 time-out 77s", "The time-out is 3s.", TIMEOUT)],
    ],
    ids=["a binding failed", "the claim breaks a rule", "no binding", "the id is no label"],
)
def test_a_fact_of_a_claim_that_does_not_hold_is_not_confirmed(claims: list[dict[str, Any]]) -> None:
    facts = [fact("The time-out is 3s", claim_id=claims[0]["claim_id"])]
    response = respond(turn_of("What is the time-out?", answer(*claims, user_facing_answer=SAID), facts), "degraded")
    assert "The time-out is 3s" not in everything(response)
    assert response["citations"] == ()


@pytest.mark.scenario("TPL-2")
def test_every_binding_of_the_claim_must_have_passed() -> None:
    bound = GOOD["evidence_bindings"][0]
    both = GOOD | {"evidence_bindings": [bound, bound | {"raw_path": "lines[9]"}]}
    facts = [fact("The time-out is 3s", claim_id="c1")]
    response = respond(turn_of("What is the time-out?", answer(both, user_facing_answer=SAID), facts), "degraded")
    assert "The time-out is 3s" not in response["text"]
    assert response["citations"] == ()


@pytest.mark.scenario("ROU-7")
@pytest.mark.parametrize(
    "words",
    [
        "The time-out is 3s and 417 calls failed",
        "The time-out is 3s on ledger-db-7",
        "The time-out is 3s since 10:42:07",
        "The time-out is 3s, error ORA-12170",
        "The time-out is 3s in LedgerGateway",
        "The time-out is 3s (v2.4.1)",
    ],
)
@pytest.mark.parametrize("label", ["direct_evidence", "indirect_support"])
def test_a_fact_whose_words_its_lines_lack_is_not_printed(words: str, label: str) -> None:
    turn = turn_of("What is the time-out?", answer(GOOD, user_facing_answer=SAID), [fact(words, label, "c1")])
    response = respond(turn, "degraded", "rejected")
    assert words not in response["text"]
    assert response["citations"] == ()


@pytest.mark.scenario("ROU-7")
def test_a_fact_of_a_claim_that_another_fact_contradicts_is_not_printed() -> None:
    facts = [fact("The time-out is 3s", claim_id="c1"), fact("It is 3s everywhere", "contradicted", "c1")]
    response = respond(
        turn_of("What is the time-out?", answer(GOOD, user_facing_answer=SAID), facts), "degraded", "rejected"
    )
    assert "The time-out is 3s" not in response["text"]


@pytest.mark.scenario("REP-6")
@pytest.mark.scenario("REP-10")
@pytest.mark.parametrize("lang", LANGS)
def test_a_loop_that_ended_without_acceptance_says_that_evidence_is_insufficient_and_what_is_missing(lang: str) -> None:
    said = "The time-out is 3s." if lang == "en" else "超时为 3s。"
    facts = [fact(SAID, claim_id="c1"), fact("There are 9 retries.", "no_evidence", "c2")]
    turn = turn_of(QUESTION, answer(GOOD, WRONG, user_facing_answer=said), facts, lang=lang, options=CAP)
    response = respond(turn, "disclaimer", "evidence_insufficient")
    say = templates(lang)
    assert response["text"].startswith(f"{say('disclaimer/low_confid')}\n\n{said}\n\n")
    assert say("degraded/evidence_insufficient").rstrip(".。") in response["text"]
    assert response["missing_claims"]
    for text in (*response["missing_claims"], *response["gaps"]):
        assert text in response["text"]
        assert "9" not in text
    assert any("retries" in text for text in response["missing_claims"])


@pytest.mark.scenario("REP-10")
@pytest.mark.scenario("TPL-1")
@pytest.mark.parametrize("lang", LANGS)
def test_policy_fallback_sends_the_degraded_template_with_the_last_reports_missing_claims(lang: str) -> None:
    said = answer(GOOD, WRONG, user_facing_answer="3s and 9 retries")
    turn = turn_of(QUESTION, said, None, lang=lang, options=FALLBACK)
    response = respond(turn, "degraded", "evidence_insufficient")
    say = templates(lang)
    assert response["text"].startswith(because(say, "evidence_insufficient"))
    assert response["gaps"] == response["missing_claims"] != ()
    assert "9" not in everything(response)
    assert response["citations"] == (), "nothing was judged, so nothing is confirmed"


def test_what_a_loop_misses_is_named_even_where_no_statement_is_lacking() -> None:
    misplaced = claim(
        "c1",
        "The time-out is 3s.",
        TIMEOUT,
        evidence_bindings=[GOOD["evidence_bindings"][0], GOOD["evidence_bindings"][0] | {"raw_path": "lines[9]"}],
    )
    turn = turn_of(
        "What is the time-out?", answer(misplaced, user_facing_answer=SAID), [fact(SAID, claim_id="c1")], options=CAP
    )
    response = respond(turn, "disclaimer", "evidence_insufficient")
    assert templates("en")("gaps/citations") in response["text"]


@pytest.mark.parametrize("lang", LANGS)
@pytest.mark.parametrize("reason", ["cancelled", "deadline", "parked", "agent_failed"])
@pytest.mark.parametrize("drafted", [True, False])
def test_a_turn_without_judgement_says_why_and_confirms_nothing(reason: str, lang: str, drafted: bool) -> None:
    said = answer(GOOD, user_facing_answer=SAID) if drafted else None
    facts = [fact("The time-out is 3s", claim_id="c1")] if drafted else None
    response = respond(turn_of(QUESTION, said, facts, lang=lang), "degraded", reason)
    say = templates(lang)
    assert response["text"].startswith(because(say, reason))
    assert f"- {say(f'next-steps/reason.{reason}')}" in response["text"]
    assert "3s" not in everything(response)
    assert len(response["gaps"]) == 2, "each part of the question is open"
    assert response["fallback_reason"] == reason


@pytest.mark.parametrize(
    ("question", "given_claim", "lang", "kind", "subject"),
    [
        ("What is the time-out?", {"claim_text": "time-out 3 s"}, "en", "value", "time-out"),
        ("超时时间是多少？", {"claim_text": "超时时间 3 秒"}, "zh-CN", "value", "超时时间"),
        (
            "Why does payment-service time out?",
            {"claim_text": "pool leak", "claim_type": "root_cause"},
            "en",
            "cause",
            "time out",
        ),
        ("payment-service 为什么超时？", {"claim_text": "leak", "claim_type": "root_cause"}, "zh-CN", "cause", "超时"),
        ("Which host fails?", {"claim_text": "ledger-db-7 fails"}, "en", "name", "fails"),
        ("Is the pool full?", {"claim_text": "the pool is full"}, "en", "observation", "pool"),
        (
            "Were there errors?",
            {"claim_text": "no errors", "claim_type": "negative_observation"},
            "en",
            "absence",
            "errors",
        ),
        (
            "Who is affected by the outage?",
            {"claim_text": "the outage hits all", "claim_type": "impact"},
            "en",
            "impact",
            "outage",
        ),
    ],
)
def test_a_gap_is_named_by_the_part_and_its_subject(
    question: str, given_claim: dict[str, Any], lang: str, kind: str, subject: str
) -> None:
    contract = Contract.model_validate(answer(claim("c1", "", None) | given_claim))
    gap = Wording(question, contract, templates(lang)).gap("any words of the Verifier", "c1")
    assert gap.kind == kind
    assert subject in gap.text
    assert "3" not in gap.text
    assert "ledger-db-7" not in gap.text
    assert f"next-steps/gap.{kind}" in templates(lang)


def test_a_gap_in_a_question_of_several_parts_names_the_part_it_belongs_to() -> None:
    wording = Wording(QUESTION, None, templates("en"))
    assert "how many retries are allowed" in wording.gap("9 retries").text
    assert wording.gap("9 retries").text != wording.gap("time-out of 4s").text


def test_a_part_of_the_question_is_a_gap_of_its_own() -> None:
    gap = Wording(QUESTION, None, templates("en")).gap("how many retries are allowed")
    assert gap.kind == "unanswered"


def test_the_questions_own_numbers_and_codes_are_left_out_of_a_gap() -> None:
    question = "Did payment-service fail with ORA-12170 on 10.2.3.4 after 417 calls since v2.4.1?"
    text = Wording(question, None, templates("en")).gap("it failed with ORA-12170 417 times").text
    assert "payment-service" in text
    for hidden in ("ORA-12170", "10.2.3.4", "417", "2.4.1"):
        assert hidden not in text


NUMBERS = st.integers(min_value=100_000, max_value=999_999)
NAMES = st.sampled_from(
    ["zq-gateway-{}", "ZQ-{}", "zq{}.ledger.internal", "ZqFault{}Exception", "10.77.{}.9", "zq_pool_{}"]
)
PLACES = st.sampled_from(["claim", "id", "quote", "hypothesis", "action", "missing", "text", "summary", "fact"])


@pytest.mark.scenario("ROU-7")
@settings(max_examples=60)
@given(number=NUMBERS, name=NAMES, tail=st.integers(10, 99), places=st.sets(PLACES, min_size=1), lang=st.sampled_from(LANGS),
       label=st.sampled_from(["direct_evidence", "indirect_support", "no_evidence", "contradicted"]),
       reason=st.sampled_from([None, "rejected", "evidence_insufficient", "deadline", "cancelled", "parked", "agent_failed"]))  # fmt: skip
def test_no_unverified_number_or_name_is_in_any_field_of_a_withheld_answer(
    number: int, name: str, tail: int, places: set[str], lang: str, label: str, reason: Any
) -> None:
    named = name.format(tail)
    marker = f"{number} errors on {named}"
    at = {place: f" {marker}" if place in places else "" for place in ("claim", "quote", "text", "summary", "fact")}
    bad_id = f"c9-{named}" if "id" in places else "c9"
    said = answer(
        GOOD,
        claim(bad_id, f"retries failed{at['claim']}", f"{RETRIES}{at['quote']}", "lines[1]"),
        claim("c3", f"the pool is full{at['claim']}", POOL, "lines[2]"),
        hypotheses=[{"hypothesis_text": marker, "basis": marker, "needed_evidence": [marker]}]
        if "hypothesis" in places
        else [],
        recommended_actions=[{"action_text": marker, "reason": marker, "evidence_bindings": []}]
        if "action" in places
        else [],
        missing_info=[marker] if "missing" in places else [],
        diagnosis_summary=f"retries{at['summary']}",
        user_facing_answer=f"{'超时' if lang == 'zh-CN' else 'time-out'} 3s{at['text']}",
    )
    facts = [
        fact(f"The time-out is 3s{at['fact']}", label, "c1"),
        fact(f"retries failed {marker}", label, bad_id),
        fact(f"the pool is full {marker}", "direct_evidence", "c3"),
        fact(marker, "no_evidence"),
    ]
    response = respond(turn_of(QUESTION, said, facts, CALLS, lang, CAP), "degraded", reason)
    shown = everything(response)
    assert str(number) not in shown
    assert named not in shown
    assert "zq" not in shown.lower()


@pytest.mark.scenario("ROU-7")
@pytest.mark.parametrize("lang", LANGS)
def test_a_malformed_answer_leaves_nothing_behind_when_it_is_withheld(lang: str) -> None:
    turn = turn_of(QUESTION, "Surely 417 errors on zq-gateway-7.", [fact("417 errors on zq-gateway-7")], lang=lang)
    shown = everything(respond(turn, "degraded", "rejected"))
    assert "417" not in shown
    assert "zq" not in shown
