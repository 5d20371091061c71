"""Ruling 3 through the real roles: making any input of a case worse never makes the effective verdict better."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from streams.contract import VERDICT_ORDER
from tests.ledger_case import LANGS, RETRIES, TEXTS, TIMEOUT, Lang, case, fact, good, rnd, verdict
from tests.play import judged

LABELS = ["direct_evidence", "indirect_support", "no_evidence", "contradicted"]
INVENTED = {"en": " It failed with ORA-09999.", "zh-CN": " 报错 ORA-09999。"}
UNCLAIMED = {"en": " There were 516 calls.", "zh-CN": " 共有 516 次调用。"}
# Each input with its values from best to worst.
INPUTS: dict[str, list[str]] = {
    "label of c1": LABELS,
    "label of c2": LABELS,
    "binding of c1": ["passes", "no path", "number changed"],
    "binding of c2": ["passes", "removed"],
    "second binding of c1": ["absent", "no path", "unknown call"],
    "binding of an action": ["passes", "no path", "wrong tool"],
    "fabricated": ["no", "yes"],
    "model's verdict": list(VERDICT_ORDER),
    "prose": ["sound", "states a number of its own", "names what is nowhere"],
    "repair loop": ["not bounded", "bounded"],
}


def built(levels: dict[str, int], lang: Lang) -> dict[str, Any]:
    at = {name: values[levels[name]] for name, values in INPUTS.items()}
    said = good(lang)
    first = said["claims"][0]["evidence_bindings"]
    if at["binding of c1"] == "no path":
        del first[0]["raw_path"]
    elif at["binding of c1"] == "number changed":
        first[0]["evidence_excerpt"] = TIMEOUT.replace("3s", "4s")
    if at["second binding of c1"] != "absent":
        second = {"tool_name": "query_logs", "source_invocation_id": "101", "evidence_excerpt": TIMEOUT}
        first.append(second if at["second binding of c1"] == "no path" else {**second, "source_invocation_id": "999"})
    if at["binding of c2"] == "removed":
        said["claims"][1]["evidence_bindings"] = []
    action = {
        "tool_name": "query_logs",
        "source_invocation_id": "101",
        "raw_path": "lines[1]",
        "evidence_excerpt": RETRIES,
    }
    if at["binding of an action"] == "no path":
        del action["raw_path"]
    elif at["binding of an action"] == "wrong tool":
        action["tool_name"] = "query_metrics"
    said["recommended_actions"] = [{"action_text": "ledger-db", "reason": "", "evidence_bindings": [action]}]
    said["user_facing_answer"] += {
        "sound": "",
        "states a number of its own": UNCLAIMED[lang],
        "names what is nowhere": UNCLAIMED[lang] + INVENTED[lang],
    }[at["prose"]]
    facts = [
        fact(TEXTS[lang]["c1"], at["label of c1"], "c1", fabricated=at["fabricated"] == "yes"),
        fact(TEXTS[lang]["c2"], at["label of c2"], "c2"),
    ]
    judgement = verdict(at["model's verdict"], *facts)
    attempts = 2 if at["repair loop"] == "bounded" else 0
    return case(rnd(said, judgement), lang=lang, max_attempts=attempts)


def rank(report: dict[str, Any]) -> int:
    found = report["effective_verdict"]
    assert found is not None
    shown = {"PASS": "answer", "LOW_CONFID": "disclaimer", "REJECT": "degraded"}[found]
    assert report["response"]["kind"] == shown
    return VERDICT_ORDER.index(found)


@pytest.mark.scenario("VER-7", "GAT-8", "GAT-9", "ROU-1", "ROU-5")
@settings(max_examples=60)
@given(
    st.fixed_dictionaries({k: st.integers(0, len(v) - 1) for k, v in INPUTS.items()}),
    st.sampled_from(list(INPUTS)),
    st.sampled_from(LANGS),
)
def test_any_input_made_worse_never_makes_the_verdict_better(levels: dict[str, int], worse: str, lang: Lang) -> None:
    better = {**levels, worse: max(levels[worse] - 1, 0)}
    assert rank(judged(built(levels, lang))) >= rank(judged(built(better, lang)))


@pytest.mark.scenario("VER-1")
@pytest.mark.parametrize("lang", LANGS)
def test_the_best_of_everything_passes_and_each_input_alone_can_spoil_it(lang: Lang) -> None:
    best = dict.fromkeys(INPUTS, 0)
    assert rank(judged(built(best, lang))) == 0
    spoilt = {name for name, values in INPUTS.items() if rank(judged(built({**best, name: len(values) - 1}, lang)))}
    assert spoilt == set(INPUTS) - {"repair loop"}
