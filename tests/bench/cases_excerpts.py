"""Generated excerpts with what a matcher should say of them: honest ones, and ones somebody tampered with (bar J1).

All text is made here from templates of the one example domain; the seed fixes every case.
"""

from __future__ import annotations

import html
import json
import random
import re
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SEED = 20240501


@dataclass(frozen=True, slots=True)
class Case:
    """One excerpt against one ref. `kind` is its class; `honest` says whether it should be accepted."""

    kind: str
    honest: bool
    excerpt: str
    ref: str


SERVICES = ("payment-service", "order-service", "checkout-gateway", "invoice-worker", "ledger-writer", "refund-api")
STORES = ("ledger-db", "orders-db", "session-cache", "audit-store")
MESSAGES = (
    "HikariPool-{n} - Connection is not available, request timed out after {ms}ms (total={t}, active={t}, idle=0, waiting={w})",
    "{svc} could not reach {db}: connection refused by 10.{a}.{b}.{c}:5432 after {n} attempts",
    "Slow query on {db} took {ms} ms, returned {w} rows and was not cached",
    "Circuit breaker for {db} opened, error rate {p}.{n}% over {w} requests",
    "Heap usage is high at {p}% of {mb}MB, collection paused {svc} for {ms}ms",
    "Deployment {svc} v{n}.{a}.{b} started with {t} replicas, readiness probe failed {n} times",
    "Retry {n} of 5 for transaction tx-{hex} failed because {db} was unavailable",
    "Disk usage on {db}-{n} reached {p}%, writes are no longer accepted",
    "Request {hex} to {svc} completed with status 503 in {ms} ms, latency increased by {p}.{n}%",
    "Replica {db}-{n} is lagging {w} seconds behind, failover was never triggered",
    "Node 10.{a}.{b}.{c} joined the cluster without a lease, quorum is {n} of {t}",
)
CHINESE = (
    "{svc} 连接池已耗尽，等待线程 {w} 个，请求在 {ms} 毫秒后超时",
    "数据库 {db} 当前不可用，重试 {n} 次后仍然失败，错误码 {a}{b}",
    "服务 {svc} 的平均延迟升高到 {ms}ms，错误率为 {p}.{n}%，没有触发自动扩容",
    "磁盘使用率达到 {p}%，写入请求已被拒绝，受影响的实例共 {t} 个",
)
PROSE = (
    "When the pool of {svc} is exhausted, raise maximumPoolSize to {t} and restart one replica at a time.",
    "Do not restart {db} while a failover is running; wait at least {w} seconds for the lease to expire.",
    "An error rate above {p}% over {n} minutes is not normal and should page the owner of {svc}.",
    "Latency of {db} increased after the index on transfers was dropped, which blocked {w} sessions.",
)
TRACE = (
    "java.sql.SQLTransientConnectionException: HikariPool-{n} - Connection is not available, request timed out after {ms}ms.\n"
    "\tat com.zaxxer.hikari.pool.HikariPool.createTimeoutException(HikariPool.java:{w})\n"
    "\tat com.example.payment.LedgerDao.insertTransfer(LedgerDao.java:{t})\n"
    "Caused by: org.postgresql.util.PSQLException: FATAL: remaining connection slots are reserved on {db}"
)
_SWAPS = (
    (r"\bincreased\b", "decreased"), (r"\bhigh\b", "low"), (r"\bopened\b", "closed"), (r"\bstarted\b", "stopped"),
    (r"\bfailed\b", "succeeded"), (r"\brefused\b", "accepted"), (r"\bunavailable\b", "available"), (r"\bSlow\b", "Fast"),
    (r"\bjoined\b", "left"), (r"\babove\b", "below"), (r"\breached\b", "avoided"), (r"\bexhausted\b", "idle"),
    (r"已耗尽", "已恢复"), (r"升高", "下降"), (r"失败", "成功"), (r"已被拒绝", "已被接受"), (r"\bdropped\b", "added"), (r"\bbehind\b", "ahead"),
)  # fmt: skip
_UNITS = {
    "ms": "s",
    "MB": "GB",
    "%": "ms",
    "seconds": "minutes",
    "minutes": "hours",
    "毫秒": "秒",
    "次": "个",
    "rows": "tables",
}
_NEGATED = r"\b(?:not|never|no longer) |没有|不(?=可用)"


def _filled(rng: random.Random, template: str) -> str:
    return template.format(
        svc=rng.choice(SERVICES), db=rng.choice(STORES), n=rng.randint(1, 9), t=rng.choice((10, 20, 32, 50)),
        w=rng.randint(11, 480), ms=rng.choice((1250, 3000, 5400, 30000, 12750)), p=rng.randint(51, 98), mb=rng.choice((512, 2048)),
        a=rng.randint(10, 250), b=rng.randint(10, 250), c=rng.randint(1, 250), hex=f"{rng.getrandbits(40):010x}",
    )  # fmt: skip


def _stamp(rng: random.Random) -> str:
    return f"2024-05-{rng.randint(10, 28)}T{rng.randint(10, 23)}:{rng.randint(10, 59)}:{rng.randint(10, 59)}.{rng.randint(100, 999)}Z"


def _plain(rng: random.Random, text: str) -> str:
    return f"{_stamp(rng)} {rng.choice(('ERROR', 'WARN', 'INFO'))}  [pool-{rng.randint(1, 8)}] c.e.Ledger - {text}"


def _ndjson(rng: random.Random, text: str) -> str:
    fields = {
        "ts": _stamp(rng),
        "level": rng.choice(("error", "warn")),
        "pod": f"{rng.choice(SERVICES)}-{rng.getrandbits(20):05x}",
        "msg": text,
    }
    return json.dumps(fields, ensure_ascii=False)


def _logfmt(rng: random.Random, text: str) -> str:
    return f'ts={_stamp(rng)} level=error svc={rng.choice(SERVICES)} msg="{text}" attempt={rng.randint(1, 9)}'


def _metric(rng: random.Random, text: str) -> str:
    pool = rng.choice(SERVICES)
    return f'hikaricp_connections_active{{pool="{pool}"}} first={rng.randint(1, 9)} max={rng.randint(10, 50)} last={rng.randint(10, 50)} note="{text}"'


def _table(rng: random.Random, text: str) -> str:
    return f"| {rng.choice(SERVICES)} | Running | {rng.randint(1, 9)}/{rng.randint(10, 20)} | {rng.randint(10, 99)}d | {text} |"


def _bare(rng: random.Random, text: str) -> str:
    return text


_LAYOUTS = (_plain, _plain, _ndjson, _logfmt, _metric, _table, _bare)


def _record(rng: random.Random, pool: tuple[str, ...] = MESSAGES + PROSE + CHINESE[:2]) -> tuple[str, str]:
    """A message, and the line it stands in."""
    message = _filled(rng, rng.choice(pool))
    return message, rng.choice(_LAYOUTS)(rng, message)


def _ref(rng: random.Random, line: str, others: int = 12) -> str:
    lines = [_record(rng)[1] for _ in range(rng.choice((0, others)))]
    lines.insert(rng.randint(0, len(lines)), line)
    return "\n".join(lines) + rng.choice(("", "\n"))


def _cut(rng: random.Random, message: str, least: int = 5) -> str:
    """A run of whole words of a message."""
    words = message.split(" ")
    if len(words) <= least:
        return message
    start = rng.randint(0, len(words) - least)
    return " ".join(words[start : rng.randint(start + least, len(words))])


def _picked(rng: random.Random) -> tuple[str, str]:
    message, line = _record(rng)
    return _cut(rng, message), _ref(rng, line)


def _exact(rng: random.Random) -> tuple[str, str]:
    message, line = _record(rng)
    return message, _ref(rng, line)


def _whole_line(rng: random.Random) -> tuple[str, str]:
    line = _record(rng)[1]
    return line, _ref(rng, line)


def _collapsed(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    return excerpt, ref.replace(
        excerpt, re.sub(" ", lambda _: " " * rng.randint(1, 6) + rng.choice(("", "\t")), excerpt)
    )


def _wrapped(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    broken = rng.choice(("\n", "\r\n", "\n    "))
    at = [m.start() for m in re.finditer(" ", excerpt)]
    spot = rng.choice(at)
    wrapped = excerpt[:spot] + broken + excerpt[spot + 1 :]
    return (wrapped, ref) if rng.random() < 0.5 else (excerpt, ref.replace(excerpt, wrapped))


def _ansi(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    words = excerpt.split(" ")
    at = rng.randrange(len(words))
    words[at] = f"\x1b[{rng.choice(('1', '31', '1;31', '38;5;196'))}m{words[at]}\x1b[0m"
    return excerpt, ref.replace(excerpt, " ".join(words))


def _osc_link(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    words = excerpt.split(" ")
    at, end = rng.randrange(len(words)), rng.choice(("\x07", "\x1b\\"))
    words[at] = f"\x1b]8;;http://ledger-db.example/{rng.randint(1, 99)}{end}{words[at]}\x1b]8;;{end}"
    return excerpt, ref.replace(excerpt, " ".join(words))


def _curly(rng: random.Random) -> tuple[str, str]:
    message = _cut(rng, _filled(rng, rng.choice(MESSAGES)))
    straight, curly = f"pool 'main' said \"{message}\" twice", f"pool ‘main’ said “{message}” twice"
    pair = (straight, curly) if rng.random() < 0.5 else (curly, straight)
    return pair[0], _ref(rng, _plain(rng, pair[1]))


def _dashes(rng: random.Random) -> tuple[str, str]:
    message = _filled(rng, MESSAGES[0])
    return message.replace("-", rng.choice("‐‑–—−")), _ref(rng, _plain(rng, message))


def _json_escaped(rng: random.Random) -> tuple[str, str]:
    message = _filled(rng, rng.choice(MESSAGES))
    at = message.index(" ", len(message) // 3)
    quoted = f'{message[:at]} "{rng.choice(STORES)}"\n\tat é{message[at:]}'
    escaped = json.dumps(quoted)[1:-1]
    return (
        (quoted, _ref(rng, _ndjson(rng, "x")[:-1] + f', "err": "{escaped}"}}'))
        if rng.random() < 0.5
        else (escaped, quoted)
    )


def _html_escaped(rng: random.Random) -> tuple[str, str]:
    message = f"{_cut(rng, _filled(rng, rng.choice(MESSAGES)))} <b> & limit > {rng.randint(10, 99)}ms 'main'"
    pair = (message, html.escape(message))
    excerpt, source = pair if rng.random() < 0.5 else pair[::-1]
    return excerpt, _ref(rng, _plain(rng, source))


def _fenced(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    return f"```{rng.choice(('', 'log', 'json', 'text'))}\n{excerpt}\n```", ref


def _block_quoted(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    return "> " + excerpt.replace(" ", rng.choice((" ", "\n> ")), 1), ref


def _quoted(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    a, b = rng.choice((('"', '"'), ("'", "'"), ("“", "”"), ("「", "」"), ("『", "』"), ("`", "`")))
    return f"{a}{excerpt}{b}", ref


def _truncated(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    return excerpt + rng.choice(("...", " ...", "…", " (truncated)", "... (truncated)", " [truncated]")), ref


def _elided(rng: random.Random) -> tuple[str, str]:
    while True:
        line = _plain(rng, _filled(rng, rng.choice(MESSAGES)))
        words = line.split(" ")
        a = rng.randint(2, len(words) // 2)
        b = rng.randint(a + 1, len(words) - 2)
        left, right = " ".join(words[:a]), " ".join(words[b : b + 6])
        if all(len(re.findall(r"[^\W_]{2,}", part)) > 2 and len(part) > 12 for part in (left, right)):
            return left + rng.choice((" ... ", "...", " … ", " [...] ")) + right, _ref(rng, line)


def _composed(rng: random.Random) -> tuple[str, str]:
    message = f"café São Paulo Zürich 서울 {_filled(rng, rng.choice(MESSAGES))}"
    forms = ["NFC", "NFD"]
    rng.shuffle(forms)
    return unicodedata.normalize(forms[0], message), _ref(rng, _plain(rng, unicodedata.normalize(forms[1], message)))


def _spaced(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    odd = re.sub("(?<![0-9]) | (?![0-9])", rng.choice("\u00a0\u2009\u202f\u3000"), excerpt)
    return (odd, ref) if rng.random() < 0.5 else (excerpt, ref.replace(excerpt, odd))


def _invisible(marks: str) -> Callable[[random.Random], tuple[str, str]]:
    def made(rng: random.Random) -> tuple[str, str]:
        excerpt, ref = _picked(rng)
        at = rng.randint(1, len(excerpt) - 1)
        odd = excerpt[:at] + rng.choice(marks) + excerpt[at:]
        return (odd, ref) if rng.random() < 0.5 else (excerpt, ref.replace(excerpt, odd))

    return made


def _cell(rng: random.Random) -> tuple[str, str]:
    line = _table(rng, _filled(rng, rng.choice(MESSAGES)))
    cells = line.strip("| ").split(" | ")
    if rng.random() < 0.5:
        return cells[-1], _ref(rng, line)
    return "| " + " | ".join(cells[:3]) + " |", _ref(rng, line.replace(" | ", "   |   "))


def _decimal_comma(rng: random.Random) -> tuple[str, str]:
    text = f"Fehlerrate {rng.randint(10, 99)},{rng.randint(1, 9)} % bei {rng.randint(1, 9)}.{rng.randint(100, 999)} Anfragen, Latenz {rng.randint(1, 9)},{rng.randint(10, 99)} s"
    return rng.choice((text, text[: text.index(", ")], text[text.index("bei") :])), _ref(rng, _plain(rng, text))


def _trace(rng: random.Random) -> tuple[str, str]:
    trace = _filled(rng, TRACE)
    lines = trace.split("\n")
    first = rng.randrange(len(lines) - 1)
    excerpt = "\n".join(lines[first : rng.randint(first + 1, len(lines))])
    return rng.choice((excerpt, excerpt.replace("\t", "    "), excerpt.strip())), _ref(rng, _plain(rng, trace))


def _chinese(rng: random.Random) -> tuple[str, str]:
    message = _filled(rng, rng.choice(CHINESE))
    clauses = message.split("，")
    return rng.choice((message, "，".join(clauses[:2]), "，".join(clauses[1:]))), _ref(rng, _plain(rng, message))


def _duplicate(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    return excerpt, "\n".join([ref, _plain(rng, excerpt), ref])


def _recased(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    return rng.choice((excerpt.lower(), excerpt.upper(), excerpt.capitalize(), excerpt.title())), ref


HONEST: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "exact": _exact, "whole line": _whole_line, "trimmed": _picked, "white space": _collapsed, "wrapped lines": _wrapped,
    "ANSI colour": _ansi, "OSC link": _osc_link, "curly quotes": _curly, "dash variants": _dashes, "JSON-escaped": _json_escaped,
    "HTML-escaped": _html_escaped, "fenced": _fenced, "block-quoted": _block_quoted, "quoted, backticks": _quoted,
    "marked as cut": _truncated, "ellipsis, one record": _elided, "NFC and NFD": _composed, "odd spaces": _spaced,
    "zero width": _invisible("\u200b\u200c\ufeff\u2060\u00ad"), "RTL marks": _invisible("\u200e\u200f\u202a\u202c\u2067\u2069"),
    "table cell": _cell, "decimal comma": _decimal_comma, "stack trace": _trace, "Chinese": _chinese,
    "duplicate": _duplicate, "case changed": _recased,
}  # fmt: skip


def _changed(
    pattern: str, change: Callable[[random.Random, re.Match[str]], str]
) -> Callable[[random.Random], tuple[str, str]]:
    """A tampering that replaces one occurrence of a pattern in an honest excerpt; other excerpts are drawn again."""

    def made(rng: random.Random) -> tuple[str, str]:
        while True:
            excerpt, ref = (_chinese if rng.random() < 0.2 else _exact if rng.random() < 0.5 else _picked)(rng)
            spots = list(re.finditer(pattern, excerpt))
            if spots:
                spot = rng.choice(spots)
                return excerpt[: spot.start()] + change(rng, spot) + excerpt[spot.end() :], ref

    return made


def _other(options: tuple[str, ...]) -> Callable[[random.Random, re.Match[str]], str]:
    return lambda rng, m: rng.choice([option for option in options if option != m[0]])


def _antonym(rng: random.Random, m: re.Match[str]) -> str:
    return next(new for pattern, new in _SWAPS if re.fullmatch(pattern, m[0]))


def _added_negation(rng: random.Random) -> tuple[str, str]:
    return _changed(
        r"\b(?:is|was|are) (?!not|never|no )|(?<=\w)已(?=耗尽|被)",
        lambda r, m: m[0] + "not " if m[0].isascii() else "未",
    )(rng)


def _boundary_start(rng: random.Random) -> tuple[str, str]:
    return _changed(r"\A.*?\w(?=[0-9a-zA-Z])(?=.{12})", lambda r, m: "")(rng)


def _boundary_end(rng: random.Random) -> tuple[str, str]:
    while True:
        excerpt, ref = _picked(rng)
        spots = [
            m.start()
            for m in re.finditer(r"(?<=[0-9a-zA-Z])(?:[0-9a-zA-Z]|%|[.,:](?=[0-9]))", excerpt)
            if m.start() > 14
        ]
        if spots:
            return excerpt[: rng.choice(spots)], ref


_FABRICATIONS = (
    "{svc} ran out of file descriptors at {p}% of the limit",
    "certificate of {db} expired {w} seconds ago",
    "kernel killed {svc} with signal 9 after {ms}ms",
    "DNS lookup of {db} returned NXDOMAIN {n} times",
    "{svc} 的证书已过期 {w} 天",
)


def _fabricated(rng: random.Random) -> tuple[str, str]:
    _, ref = _picked(rng)
    return _filled(rng, rng.choice(_FABRICATIONS)), ref


def _appended(rng: random.Random) -> tuple[str, str]:
    excerpt, ref = _picked(rng)
    return excerpt + _filled(
        rng, rng.choice((" because {db} ran out of disk", " caused by a deployment of {svc}", "，导致 {svc} 崩溃"))
    ), ref


def _reordered(rng: random.Random) -> tuple[str, str]:
    while True:
        excerpt, ref = _picked(rng)
        words = excerpt.split(" ")
        a, b = sorted(rng.sample(range(len(words)), 2))
        if words[a] != words[b]:
            words[a], words[b] = words[b], words[a]
            return " ".join(words), ref


def _stitched(rng: random.Random) -> tuple[str, str]:
    (one, line), (two, last) = _record(rng), _record(rng)
    parts = (_cut(rng, one), _cut(rng, two))
    return rng.choice((" ... ", " … ", " ")).join(parts), "\n".join((line, _record(rng)[1], last))


def _trivial(rng: random.Random) -> tuple[str, str]:
    """Text that stands there, on word boundaries, and says nothing."""
    line = rng.choice((_plain, _logfmt, _ndjson))(rng, "ERROR: " + _filled(rng, MESSAGES[0]))
    options = ("ERROR", "Connection", "is not", "not", "after", "ERROR:", "request", "(", '"msg": "')
    return rng.choice([option for option in options if option in line]), _ref(rng, line)


def _wrong_ref(rng: random.Random) -> tuple[str, str]:
    return _exact(rng)[0], "\n".join(_record(rng)[1] for _ in range(10))


def _negation_clipped(rng: random.Random) -> tuple[str, str]:
    message = _filled(rng, rng.choice(MESSAGES[:1] + MESSAGES[2:3] + CHINESE[1:2] + PROSE[2:3] + MESSAGES[9:10]))
    spot = next(re.finditer(r"not |never |不", message))
    if spot.end() > 30 and rng.random() < 0.3:
        return message[: spot.start()].rstrip(), _ref(rng, _plain(rng, message))
    return message[spot.end() :], _ref(rng, _plain(rng, message))


TAMPERED: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "digit": _changed(r"\d", lambda r, m: r.choice([d for d in "0123456789" if d != m[0]])),
    "digit dropped": _changed(r"(?<=\d)\d", lambda r, m: ""),
    "number added": _changed(r"(?<= )\d+", lambda r, m: f"{m[0]} and {r.randint(100, 999)}"),
    "entity": _changed("|".join(SERVICES + STORES), _other(SERVICES + STORES)),
    "antonym": _changed("|".join(pattern for pattern, _ in _SWAPS), _antonym),
    "negation dropped": _changed(_NEGATED, lambda r, m: ""),
    "negation added": _added_negation,
    "unit": _changed(
        r"(?<=\d)(?:ms\b|MB\b|%)|(?<=\d )(?:ms|seconds|minutes|rows)\b|毫秒|(?<=\d )次", lambda r, m: _UNITS[m[0]]
    ),
    "boundary, start": _boundary_start,
    "boundary, end": _boundary_end,
    "fabricated": _fabricated,
    "appended cause": _appended,
    "reordered": _reordered,
    "stitched": _stitched,
    "trivial": _trivial,
    "wrong ref": _wrong_ref,
}
NEVER = (
    "digit",
    "digit dropped",
    "entity",
    "antonym",
    "negation dropped",
    "negation added",
    "unit",
    "boundary, start",
    "boundary, end",
    "fabricated",
)
"""Classes of which none may be accepted (J1)."""
CLIPPED = "negation clipped"


def cases(seed: int = SEED, each: int = 110) -> Iterator[Case]:
    """`each` cases of every class. A tampered excerpt that happens to stand in its ref is drawn again."""
    rng = random.Random(seed)
    for kind, made in HONEST.items():
        for _ in range(each):
            yield Case(kind, True, *made(rng))
    for kind, made in TAMPERED.items():
        count = 0
        while count < each:
            case = Case(kind, False, *made(rng))
            if _is_tampered(case):
                count += 1
                yield case
    for _ in range(each):
        yield Case(CLIPPED, True, *_negation_clipped(rng))


def _is_tampered(case: Case) -> bool:
    """A drawn tampering may by chance give text of the ref: only cuts and trivial excerpts are meant to stand in it."""
    return case.kind in ("trivial", "boundary, start", "boundary, end") or " ".join(
        case.excerpt.split()
    ) not in " ".join(case.ref.split())


def log_of(size: int, seed: int = SEED) -> str:
    """A plain log of about `size` characters, for the timings."""
    rng = random.Random(seed)
    lines: list[str] = []
    length = 0
    while length < size:
        lines.append(_plain(rng, _filled(rng, rng.choice(MESSAGES))))
        length += len(lines[-1]) + 1
    return "\n".join(lines)[:size]
