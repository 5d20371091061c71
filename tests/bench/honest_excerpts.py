"""Honest excerpts: what a model does to a line it quotes in good faith."""

from __future__ import annotations

import html
import json
import random
import re
import unicodedata
from collections.abc import Callable

from tests.bench.excerpt_texts import (
    CHINESE,
    MESSAGES,
    STORES,
    TRACE,
    filled,
    ndjson,
    plain,
    record,
    table,
)


def ref_with(rng: random.Random, line: str, others: int = 12) -> str:
    lines = [record(rng)[1] for _ in range(rng.choice((0, others)))]
    lines.insert(rng.randint(0, len(lines)), line)
    return "\n".join(lines) + rng.choice(("", "\n"))


def cut(rng: random.Random, message: str, least: int = 5) -> str:
    """A run of whole words of a message."""
    words = message.split(" ")
    if len(words) <= least:
        return message
    start = rng.randint(0, len(words) - least)
    return " ".join(words[start : rng.randint(start + least, len(words))])


def picked(rng: random.Random) -> tuple[str, str]:
    message, line = record(rng)
    return cut(rng, message), ref_with(rng, line)


def exact(rng: random.Random) -> tuple[str, str]:
    message, line = record(rng)
    return message, ref_with(rng, line)


def _whole_line(rng: random.Random) -> tuple[str, str]:
    line = record(rng)[1]
    return line, ref_with(rng, line)


def _collapsed(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    return excerpt, ref.replace(
        excerpt, re.sub(" ", lambda _: " " * rng.randint(1, 6) + rng.choice(("", "\t")), excerpt)
    )


def _wrapped(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    broken = rng.choice(("\n", "\r\n", "\n    "))
    at = [m.start() for m in re.finditer(" ", excerpt)]
    spot = rng.choice(at)
    wrapped = excerpt[:spot] + broken + excerpt[spot + 1 :]
    return (wrapped, ref) if rng.random() < 0.5 else (excerpt, ref.replace(excerpt, wrapped))


def _ansi(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    words = excerpt.split(" ")
    at = rng.randrange(len(words))
    words[at] = f"\x1b[{rng.choice(('1', '31', '1;31', '38;5;196'))}m{words[at]}\x1b[0m"
    return excerpt, ref.replace(excerpt, " ".join(words))


def _osc_link(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    words = excerpt.split(" ")
    at, end = rng.randrange(len(words)), rng.choice(("\x07", "\x1b\\"))
    words[at] = f"\x1b]8;;http://ledger-db.example/{rng.randint(1, 99)}{end}{words[at]}\x1b]8;;{end}"
    return excerpt, ref.replace(excerpt, " ".join(words))


def _curly(rng: random.Random) -> tuple[str, str]:
    message = cut(rng, filled(rng, rng.choice(MESSAGES)))
    straight, curly = f"pool 'main' said \"{message}\" twice", f"pool ‘main’ said “{message}” twice"
    pair = (straight, curly) if rng.random() < 0.5 else (curly, straight)
    return pair[0], ref_with(rng, plain(rng, pair[1]))


def _dashes(rng: random.Random) -> tuple[str, str]:
    message = filled(rng, MESSAGES[0])
    return message.replace("-", rng.choice("‐‑–—−")), ref_with(rng, plain(rng, message))


def _json_escaped(rng: random.Random) -> tuple[str, str]:
    message = filled(rng, rng.choice(MESSAGES))
    at = message.index(" ", len(message) // 3)
    quoted = f'{message[:at]} "{rng.choice(STORES)}"\n\tat é{message[at:]}'
    escaped = json.dumps(quoted)[1:-1]
    return (
        (quoted, ref_with(rng, ndjson(rng, "x")[:-1] + f', "err": "{escaped}"}}'))
        if rng.random() < 0.5
        else (escaped, quoted)
    )


def _html_escaped(rng: random.Random) -> tuple[str, str]:
    message = f"{cut(rng, filled(rng, rng.choice(MESSAGES)))} <b> & limit > {rng.randint(10, 99)}ms 'main'"
    pair = (message, html.escape(message))
    excerpt, source = pair if rng.random() < 0.5 else pair[::-1]
    return excerpt, ref_with(rng, plain(rng, source))


def _fenced(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    return f"```{rng.choice(('', 'log', 'json', 'text'))}\n{excerpt}\n```", ref


def _block_quoted(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    return "> " + excerpt.replace(" ", rng.choice((" ", "\n> ")), 1), ref


def _quoted(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    a, b = rng.choice((('"', '"'), ("'", "'"), ("“", "”"), ("「", "」"), ("『", "』"), ("`", "`")))
    return f"{a}{excerpt}{b}", ref


def _truncated(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    return excerpt + rng.choice(("...", " ...", "…", " (truncated)", "... (truncated)", " [truncated]")), ref


def _elided(rng: random.Random) -> tuple[str, str]:
    while True:
        line = plain(rng, filled(rng, rng.choice(MESSAGES)))
        words = line.split(" ")
        a = rng.randint(2, len(words) // 2)
        b = rng.randint(a + 1, len(words) - 2)
        left, right = " ".join(words[:a]), " ".join(words[b : b + 6])
        if all(len(re.findall(r"[^\W_]{2,}", part)) > 2 and len(part) > 12 for part in (left, right)):
            return left + rng.choice((" ... ", "...", " … ", " [...] ")) + right, ref_with(rng, line)


def _composed(rng: random.Random) -> tuple[str, str]:
    message = f"café São Paulo Zürich 서울 {filled(rng, rng.choice(MESSAGES))}"
    forms = ["NFC", "NFD"]
    rng.shuffle(forms)
    return unicodedata.normalize(forms[0], message), ref_with(rng, plain(rng, unicodedata.normalize(forms[1], message)))


def _spaced(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    odd = re.sub("(?<![0-9]) | (?![0-9])", rng.choice("\u00a0\u2009\u202f\u3000"), excerpt)
    return (odd, ref) if rng.random() < 0.5 else (excerpt, ref.replace(excerpt, odd))


def _invisible(marks: str) -> Callable[[random.Random], tuple[str, str]]:
    def made(rng: random.Random) -> tuple[str, str]:
        excerpt, ref = picked(rng)
        at = rng.randint(1, len(excerpt) - 1)
        odd = excerpt[:at] + rng.choice(marks) + excerpt[at:]
        return (odd, ref) if rng.random() < 0.5 else (excerpt, ref.replace(excerpt, odd))

    return made


def _cell(rng: random.Random) -> tuple[str, str]:
    line = table(rng, filled(rng, rng.choice(MESSAGES)))
    cells = line.strip("| ").split(" | ")
    if rng.random() < 0.5:
        return cells[-1], ref_with(rng, line)
    return "| " + " | ".join(cells[:3]) + " |", ref_with(rng, line.replace(" | ", "   |   "))


def _decimal_comma(rng: random.Random) -> tuple[str, str]:
    text = f"Fehlerrate {rng.randint(10, 99)},{rng.randint(1, 9)} % bei {rng.randint(1, 9)}.{rng.randint(100, 999)} Anfragen, Latenz {rng.randint(1, 9)},{rng.randint(10, 99)} s"
    return rng.choice((text, text[: text.index(", ")], text[text.index("bei") :])), ref_with(rng, plain(rng, text))


def _trace(rng: random.Random) -> tuple[str, str]:
    trace = filled(rng, TRACE)
    lines = trace.split("\n")
    first = rng.randrange(len(lines) - 1)
    excerpt = "\n".join(lines[first : rng.randint(first + 1, len(lines))])
    return rng.choice((excerpt, excerpt.replace("\t", "    "), excerpt.strip())), ref_with(rng, plain(rng, trace))


def chinese(rng: random.Random) -> tuple[str, str]:
    message = filled(rng, rng.choice(CHINESE))
    clauses = message.split("，")
    return rng.choice((message, "，".join(clauses[:2]), "，".join(clauses[1:]))), ref_with(rng, plain(rng, message))


def _duplicate(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    return excerpt, "\n".join([ref, plain(rng, excerpt), ref])


def _recased(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = picked(rng)
    return rng.choice((excerpt.lower(), excerpt.upper(), excerpt.capitalize(), excerpt.title())), ref


HONEST: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "exact": exact, "whole line": _whole_line, "trimmed": picked, "white space": _collapsed, "wrapped lines": _wrapped,
    "ANSI colour": _ansi, "OSC link": _osc_link, "curly quotes": _curly, "dash variants": _dashes, "JSON-escaped": _json_escaped,
    "HTML-escaped": _html_escaped, "fenced": _fenced, "block-quoted": _block_quoted, "quoted, backticks": _quoted,
    "marked as cut": _truncated, "ellipsis, one record": _elided, "NFC and NFD": _composed, "odd spaces": _spaced,
    "zero width": _invisible("\u200b\u200c\ufeff\u2060\u00ad"), "RTL marks": _invisible("\u200e\u200f\u202a\u202c\u2067\u2069"),
    "table cell": _cell, "decimal comma": _decimal_comma, "stack trace": _trace, "Chinese": chinese,
    "duplicate": _duplicate, "case changed": _recased,
}  # fmt: skip
