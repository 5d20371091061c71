"""Questions about verdicts, with pictures, over a snapshot of the read model.

`verdictlog snapshot verdicts.duckdb`, then `marimo edit infra/examples/notebook.py -- --snapshot verdicts.duckdb`
(`marimo run` shows it without its code, `marimo export html` writes it as a page).
"""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="What became of the answers")


@app.cell
def _():
    from html import escape

    import duckdb
    import marimo as mo

    from projections.catalog import questions

    return duckdb, escape, mo, questions


@app.cell
def _(mo):
    snapshot = str(mo.cli_args().get("snapshot") or "verdicts.duckdb")
    return (snapshot,)


@app.cell
def _(duckdb, mo, questions, snapshot):
    try:
        connection = duckdb.connect(snapshot, read_only=True)
    except duckdb.IOException as error:
        mo.stop(True, mo.md(f"`{error}`: make it by `verdictlog snapshot {snapshot}`"))
    documented = {question.name: question for question in questions()}

    def asked(name):
        """Rows of a documented question, as dictionaries."""
        found = connection.execute(documented[name].sql)
        names = [column[0] for column in found.description]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    return asked, connection, documented


@app.cell
def _(escape, mo):
    def bars(rows, label, value, told, most=None):
        """A bar for each row. `label` and `told` are text of others: shown, not obeyed."""
        top = most or max((row[value] for row in rows), default=1) or 1
        height = 26
        lines = []
        for i, row in enumerate(rows):
            y, width = i * height, 340 * row[value] / top
            lines.append(
                f'<text x="205" y="{y + 16}" text-anchor="end">{escape(str(label(row)))[:34]}</text>'
                f'<rect x="215" y="{y + 3}" width="{width:.1f}" height="18" rx="2" fill="#3b7dd8"/>'
                f'<text x="{width + 222:.1f}" y="{y + 16}">{escape(str(told(row)))}</text>'
            )
        size = f'viewBox="0 0 760 {max(len(rows), 1) * height}"'
        font = 'style="font: 12px sans-serif; max-width: 760px" fill="currentColor"'
        return mo.Html(f'<svg role="img" {size} {font}>{"".join(lines)}</svg>' if rows else "<p>none yet</p>")

    return (bars,)


@app.cell
def _(connection, mo):
    [(sessions, judged, passed)] = connection.execute(
        "SELECT count(DISTINCT session), count(*), count(*) FILTER (effective_verdict = 'PASS') FROM v_verdict"
    ).fetchall()
    mo.md(f"# What became of the answers\n\n{judged} judged turns in {sessions} sessions, {passed} of them `PASS`.")
    return judged, passed


@app.cell
def _(asked, bars, mo):
    by_day = asked("pass_rate_by_day")
    mo.vstack(
        [
            mo.md("## PASS rate by day"),
            bars(by_day, lambda r: r["day"], "pass_rate", lambda r: f"{r['passed']} of {r['judged']}", most=1),
        ]
    )
    return (by_day,)


@app.cell
def _(asked, bars, mo):
    by_prompt = asked("pass_rate_by_prompt")
    mo.vstack(
        [
            mo.md("## PASS rate by the Executor's prompt\n\nThe first signs of the prompt's SHA-256, and the model."),
            bars(
                by_prompt,
                lambda r: f"{(r['prompt_sha256'] or 'no prompt')[:9]} {r['model']}",
                "pass_rate",
                lambda r: f"{r['passed']} of {r['judged']}",
                most=1,
            ),
        ]
    )
    return (by_prompt,)


@app.cell
def _(asked, bars, mo):
    failing = asked("rules_that_fail_most")[:12]
    mo.vstack(
        [
            mo.md("## Rules that fail most"),
            bars(failing, lambda r: r["rule"], "failures", lambda r: f"{r['failures']} in {r['sessions']} sessions"),
        ]
    )
    return (failing,)


@app.cell
def _(asked, bars, mo):
    second_round = asked("does_the_extra_round_help")
    mo.vstack(
        [
            mo.md("## Does the extra round help?\n\nThe verdict of the first round, and what the user got."),
            bars(
                second_round,
                lambda r: f"{r['first_verdict']} to {r['final_verdict']}",
                "turns",
                lambda r: f"{r['turns']}" + (f", score {r['score_gain']:+.2f}" if r["score_gain"] is not None else ""),
            ),
        ]
    )
    return (second_round,)


@app.cell
def _(asked, documented, mo):
    others = sorted(set(documented) - {"pass_rate_by_day", "pass_rate_by_prompt", "rules_that_fail_most"})
    mo.vstack(
        [mo.md("## Other questions")]
        + [mo.vstack([mo.md(documented[name].doc), mo.plain_text(table(asked(name)))]) for name in others]
    )


@app.function
def table(rows):
    """Rows as lines of text, columns with tabs between them."""
    if not rows:
        return "no rows"
    return "\n".join(["\t".join(rows[0]), *("\t".join(str(value) for value in row.values()) for row in rows)])


if __name__ == "__main__":
    app.run()
