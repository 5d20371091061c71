"""The live view: a line per event: what, how long, how much, and the verdict so far."""

from __future__ import annotations

import sys
from datetime import datetime
from typing import Any

from handlers.cli.main import one_line
from handlers.parked import resolution_told
from streams import events as ev
from streams.envelope import Event

STYLES = {"PASS": "bold green", "LOW_CONFID": "bold yellow", "REJECT": "bold red"}
QUOTED = 110


def describe(event: Event) -> str:
    """One event in words, on one line; nothing of the text of others is obeyed by a terminal."""
    return one_line(_told(event.data))


def _told(data: Any) -> str:
    match data:
        case ev.QuestionAsked():
            return f"{data.question[:QUOTED]}  [{data.lang}, agents {data.agents}]"
        case ev.AgentReplied():
            asked = f"asks for {len(data.tool_calls)} tool calls" if data.tool_calls else f"{len(data.text)} characters"
            usage = f", {data.usage.input_tokens}+{data.usage.output_tokens} tokens" if data.usage else ""
            return f"{data.role} {asked} ({data.model}, {data.latency_ms:.0f} ms{usage})"
        case ev.PlanMade():
            steps = ", ".join(step.tool_name for step in data.steps)
            return f"{steps or data.note or 'no steps'}{' (narrow question)' if data.narrow else ''}"
        case ev.ToolInvoked():
            return _tool(data)
        case ev.AnswerDrafted():
            claims = len((data.structured or {}).get("claims", ()))
            return f"{data.parse_status}, {claims} claims" + (f": {data.parse_error}" if data.parse_error else "")
        case ev.GateJudged():
            result = data.result
            passed = sum(b.status == "pass" for b in result.checked_bindings)
            rules = f": {', '.join(result.failed_rules)}" if result.failed_rules else ""
            return f"{result.status}, severity {result.severity}, {passed} of {len(result.checked_bindings)} bindings pass{rules}"
        case ev.RulesScored():
            return f"score {data.evaluation.score:g}"
        case ev.AnswerEvaluated():
            return f"{data.decision}, coverage {data.report.coverage:.2f}" + (
                f": {data.report.repair_request[:QUOTED]}" if data.decision == "repair" else ""
            )
        case ev.FactsVerified():
            e = data.evaluation
            sources = sorted({"the Verifier's word" if c.source == "model" else c.source for c in e.caps})
            caps = f", capped by {', '.join(sources)}" if sources else ""
            return f"{e.effective_verdict}, score {e.groundedness_score:g}, {len(e.facts_checked)} facts{caps}"
        case ev.RoundRouted():
            return f"{data.route}: {data.reason}"
        case ev.AnswerGiven():
            return data.kind + (f" ({data.fallback_reason})" if data.fallback_reason else "")
        case ev.TurnFailed():
            return f"{data.reason}: {data.detail}"
        case ev.TurnCancelled():
            return f"by {data.who}: {data.why}"
        case ev.HandlerParked():
            return f"{data.consumer} gave up after {data.deliveries} deliveries: {data.error[:QUOTED]}"
        case ev.ParkedResolved():
            return resolution_told(data)
        case ev.TextErased():
            return f"by {data.who}: {data.why}"
        case _:
            return ""


def _tool(data: ev.ToolInvoked) -> str:
    details = data.retrieval_details
    told = f"{data.tool_name} {data.status}"
    if data.error:
        return f"{told}: {data.error[:QUOTED]}"
    if details is not None:
        shown = details.returned if details.returned is not None else len(details.evidence_refs or ())
        total = details.matched if details.matched is not None else shown
        told += f", {shown} of {total} lines"
    size = f", {data.output_size_bytes / 1024:.0f} KB" if data.output_size_bytes else ""
    return f"{told}{size}, {data.latency_ms:.0f} ms  ({data.invocation_id})"


class Live:
    """Prints events as they come: styled on a terminal, plain lines elsewhere; always on stderr."""

    def __init__(self, quiet: bool = False) -> None:
        self._quiet = quiet
        self._began: datetime | None = None
        self._console: Any = None
        if not quiet and sys.stderr.isatty():
            from rich.console import Console

            self._console = Console(stderr=True, highlight=False)

    def show(self, event: Event) -> None:
        """One line for `event`; `answer-given` is left to the command, which prints the answer."""
        if self._quiet:
            return
        moment = datetime.fromisoformat(event.time)
        if self._began is None or event.type == "question-asked":
            self._began = moment
        after = f"+{(moment - self._began).total_seconds():6.2f}s"
        told = describe(event)
        if self._console is None:
            print(f"{after}  {event.type:<17} {told}", file=sys.stderr, flush=True)
            return
        from rich.text import Text

        line = Text.assemble((f"{after}  ", "dim"), (f"{event.type:<17} ", "cyan"), (told, ""))
        for word, style in STYLES.items():
            line.highlight_words([word], style)
        self._console.print(line, soft_wrap=True)

    def note(self, text: str) -> None:
        if not self._quiet:
            print(one_line(text), file=sys.stderr, flush=True)
