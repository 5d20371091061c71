"""`verdictlog judge` on files: exit codes, one line on stderr, JSON Lines, standard input, flags over the file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.ledger_case import case, checked, good, miscopied, rnd, unplaced


def judge(tmp_path: Path, text: str, *flags: str, stdin: bool = False) -> tuple[int, str, str]:
    file = tmp_path / "case.json"
    file.write_text(text, encoding="utf-8")
    command = [sys.executable, "-m", "handlers.cli.main", "judge", "-" if stdin else str(file), *flags]
    done = subprocess.run(
        [*command, "--data", str(tmp_path / "data")],
        input=text if stdin else "",
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
        env=dict(os.environ),
    )
    return done.returncode, done.stdout, done.stderr


def objects(printed: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in printed.splitlines() if line.strip()]


@pytest.mark.parametrize("stdin", [False, True])
def test_a_file_of_lines_prints_one_object_for_each_in_its_place(tmp_path: Path, stdin: bool) -> None:
    cases = [case(rnd(good(), checked())), case(rnd(miscopied(), checked())), case(rnd("", checked()))]
    lines = [json.dumps(c) for c in cases]
    bad = json.dumps({**cases[0], "settings": {"repair.max_attempts": 9}})
    code, out, _ = judge(tmp_path, "\n".join([lines[0], bad, lines[1], lines[2]]), "--json", stdin=stdin)
    found = objects(out)
    assert code == 2
    assert [o.get("effective_verdict") for o in found] == ["PASS", None, "REJECT", None]
    assert set(found[1]) == {"line", "error"}
    assert (found[1]["line"], set(found[1]["error"])) == (2, {"where", "why"})
    assert found[1]["error"]["where"] == "settings.repair.max_attempts"
    code, out, _ = judge(tmp_path, "\n".join(lines), "--json")
    assert (code, len(objects(out))) == (0, 3), "0 whatever the verdicts"


def test_one_object_exits_with_its_verdict_and_a_wrong_one_with_one_line(tmp_path: Path) -> None:
    for raw, wanted in (
        (case(rnd(good(), checked())), 0),
        (case(rnd(unplaced(), checked())), 10),
        (case(rnd(miscopied(), checked())), 20),
        (case(rnd("", checked())), 1),
    ):
        code, out, _ = judge(tmp_path, json.dumps(raw, indent=2), "--json")
        assert (code, json.loads(out)["turn"]) == (wanted, 1)
    spoilt = json.dumps(case(rnd(good(), checked())), indent=2).replace('"lang"', '"lang": "en", "lang"', 1)
    code, out, err = judge(tmp_path, spoilt, "--json")
    assert (code, out, err.count("\n")) == (2, "", 1), err


def test_the_table_says_whose_judgement_it_is(tmp_path: Path) -> None:
    own = case(rnd(good(), checked()))
    without = {**own, "rounds": [{k: v for k, v in own["rounds"][0].items() if k != "verifier_output"}]}
    _, out, _ = judge(tmp_path, "\n".join(map(json.dumps, (own, without, case(rnd("", checked()))))))
    said = [line.removeprefix("judged by").strip() for line in out.splitlines() if line.startswith("judged by")]
    assert said == ["the file's own verifier_output", "the Verifier of this program's agents", "nobody"]


def test_a_flag_wins_over_the_file(tmp_path: Path) -> None:
    raw = case(rnd(unplaced(), checked()), max_attempts=2, on_exhausted="cap")
    code, out, _ = judge(tmp_path, json.dumps(raw), "--json", "--on-exhausted", "fallback")
    assert (code, json.loads(out)["verifier_evaluation"]) == (20, None)
    code, out, _ = judge(tmp_path, json.dumps(raw), "--json", "--max-attempts", "0", "--lang", "zh-CN")
    report = json.loads(out)
    assert (code, report["evaluations"]) == (10, [])
    assert any("\u4e00" <= letter <= "\u9fff" for letter in report["response"]["text"])
