"""Bar J5: the offline claim check on public sets of labelled claims, beside the published numbers.

Fitted on half of the documents (`fit_claims.py`), reported on the other half. The sets are not in this repository:
`VERDICTLOG_BENCH_DATA` names their folder; where they are absent the bench says `not measured`.
Published balanced accuracies are of SummEdits as a whole (ten domains), ours of the domains that are here.
"""

from __future__ import annotations

from typing import Any

from handlers.agents.lexical import numbers_absent
from handlers.agents.lexical_support import support
from tests.bench.claim_sets import Row, balanced, summedits, wice

PUBLISHED = {
    "SummEdits": {"SummaCConv": 0.571, "DAE": 0.554, "QAFactEval": 0.674, "GPT-4": 0.832, "human": 0.906},
    "WiCE": {},
}
BARS = {"SummEdits": 0.62, "WiCE": 0.73, "numbers changed: recall": 0.75, "numbers changed: false flags": 0.05}


def run() -> dict[str, Any]:
    """`{"rows": [{name, value, bar, ok, published}]}`; `value` null and `note` `not measured` where a set is absent."""
    edits, oracle = summedits(), wice()
    return {"name": "J5 claims", "rows": [_accuracy("SummEdits", edits), _accuracy("WiCE", oracle), *_numbers(edits)]}


def _accuracy(name: str, rows: list[Row] | None) -> dict[str, Any]:
    if rows is None:
        return _absent(name)
    held = [row for row in rows if not row.tuning]
    groups: dict[str, list[tuple[bool, bool]]] = {}
    for row in held:
        said = support(row.claim, row.evidence.splitlines(), document=name == "SummEdits") >= 0.5
        groups.setdefault(row.group, []).append((row.supported, said))
    each = {group: round(balanced(found), 3) for group, found in groups.items()}
    value = round(sum(each.values()) / len(each), 3)
    return {
        "name": f"{name}: balanced accuracy",
        "value": value,
        "bar": BARS[name],
        "ok": value >= BARS[name],
        "n": len(held),
        "by_group": each,
        "published": PUBLISHED[name],
    }


def _numbers(rows: list[Row] | None) -> list[dict[str, Any]]:
    names = ("numbers changed: recall", "numbers changed: false flags")
    if rows is None:
        return [_absent(name) for name in names]
    held = [row for row in rows if not row.tuning]
    changed = [row for row in held if not row.supported and _has_new_number(row)]
    sound = [row for row in held if row.supported]
    recall = sum(_flagged(row) for row in changed) / len(changed)
    false = sum(_flagged(row) for row in sound) / len(sound)
    return [
        {"name": names[0], "value": round(recall, 3), "bar": BARS[names[0]], "ok": recall >= 0.75, "n": len(changed)},
        {"name": names[1], "value": round(false, 3), "bar": BARS[names[1]], "ok": false <= 0.05, "n": len(sound)},
    ]


def _has_new_number(row: Row) -> bool:
    return bool(set(_digits(row.claim)) - set(_digits(row.original)))


def _digits(text: str) -> list[str]:
    from handlers.agents.lexical_support import lexemes

    return list(lexemes(text))


def _flagged(row: Row) -> bool:
    return bool(numbers_absent(row.claim, row.evidence.splitlines()))


def _absent(name: str) -> dict[str, Any]:
    return {"name": name, "value": None, "bar": BARS[name], "ok": None, "note": "not measured: the set is not here"}


def main() -> None:
    for row in run()["rows"]:
        shown = row.get("note") or f"{row['value']} (bar {row['bar']}, n={row['n']})"
        print(f"{row['name']:40} {shown}  {row.get('by_group', '')} {row.get('published', '')}")


if __name__ == "__main__":
    main()
