"""Units, Latin and Chinese: what one is worth in its dimension's canonical unit (`s`, `B`, `bit`, `%`, or a count)."""

from __future__ import annotations

import re

Unit = tuple[str, str | None]
"""Scale and canonical unit; None is a count."""

UNITS: dict[str, Unit] = {}
for _scale, _unit, _names in (
    ("1e-9", "s", "ns nanosecond nanoseconds 纳秒"),
    ("1e-6", "s", "us µs μs usec microsecond microseconds 微秒"),
    ("1e-3", "s", "ms msec msecs millis millisecond milliseconds 毫秒"),
    ("1", "s", "s sec secs second seconds 秒 秒钟"),
    ("60", "s", "min mins minute minutes 分钟 分"),
    ("3600", "s", "h hr hrs hour hours 小时 个小时"),
    ("86400", "s", "d day days 天"),
    ("604800", "s", "week weeks 周 个星期 星期"),
    ("1", "B", "B byte bytes 字节"),
    ("1e3", "B", "KB kB kb kilobyte kilobytes"),
    ("1e6", "B", "MB mb megabyte megabytes 兆字节"),
    ("1e9", "B", "GB gb gigabyte gigabytes"),
    ("1e12", "B", "TB tb terabyte terabytes"),
    ("1024", "B", "KiB Ki kib kibibytes"),
    ("1048576", "B", "MiB Mi mib mebibytes"),
    ("1073741824", "B", "GiB Gi gib gibibytes"),
    ("1099511627776", "B", "TiB Ti tib tebibytes"),
    ("1", "bit", "bit bits bps"),
    ("1e3", "bit", "Kb kbit kbps Kbps"),
    ("1e6", "bit", "Mb Mbit Mbps mbps"),
    ("1e9", "bit", "Gb Gbit Gbps gbps"),
    ("1", "%", "% percent pct 个百分点 百分点"),
    ("1", None, "次 times 个 条 台 项 行 处 名 位 份 种 笔 轮 回 遍 组 批 件 倍 x 副本 连接 节点 实例 请求 线程 错误"),
    ("1e-3", None, "millicore millicores"),
    ("1e3", None, "thousand 千"),
    ("1e4", None, "万"),
    ("1e6", None, "million 百万"),
    ("1e8", None, "亿"),
    ("1e9", None, "billion"),
):
    for _name in _names.split():
        UNITS[_name] = (_scale, _unit)
SUFFIXES: dict[str, tuple[tuple[str, str | None], ...]] = {
    "m": (("60", "s"), ("1e-3", None), ("1e6", None), ("1e6", "B"), ("1048576", "B")),
    "k": (("1e3", None), ("1e3", "B"), ("1024", "B")),
    "K": (("1e3", None), ("1e3", "B"), ("1024", "B")),
    "M": (("1e6", None), ("1e6", "B"), ("1048576", "B")),
    "g": (("1e9", None), ("1e9", "B"), ("1073741824", "B")),
    "G": (("1e9", None), ("1e9", "B"), ("1073741824", "B")),
}

_SPACED = frozenset(["s", "h", "B", "x"]) | {u for u in UNITS if len(u) > 1}
_latin = sorted((u for u in UNITS if u.isascii() and u != "%"), key=len, reverse=True)
_han = sorted((u for u in UNITS if not u.isascii() and "s" not in u), key=len, reverse=True)
HAN = "|".join(_han).replace("|分|", "|分(?![位之辨为])|")
"""The Chinese units as a pattern; 分 of 分位 (quantile) and 分之 is none."""
_MICRO = "µs|μs"
_NOT_MINIMUM = r"(?!min\s?(?:[:=]|\d+(?:\.\d+)?(?!\d|\.\d|\s?(?:s|secs?|seconds?|ms)(?![A-Za-z0-9_]))))"
WRITTEN = (
    rf"(?:(?P<tight>{'|'.join(_latin)}|{_MICRO}|[kKmMgG])(?![A-Za-z0-9_])"
    rf"|[ -]?(?P<percent>%|per cent(?![a-z]))"
    rf"|[ -](?P<spaced>{_NOT_MINIMUM}(?:{'|'.join(u for u in _latin if u in _SPACED)}|{_MICRO}))(?![A-Za-z0-9_]|=)"
    rf"|\s?(?P<han>{HAN}))"
)
"""A unit behind a number as a pattern. `5 min 30 s` is minutes, `20 min=3` and `20 min 3` are not."""


def units_of(m: re.Match[str]) -> tuple[Unit, ...]:
    """What the unit of a match of `WRITTEN` (or of a group `unit`) can be; empty if there is none."""
    groups = m.groupdict()
    if groups.get("percent"):
        return (UNITS["%"],)
    name = groups.get("tight") or groups.get("spaced") or groups.get("han") or groups.get("unit")
    if not name:
        return ()
    if name in SUFFIXES:
        return SUFFIXES[name]
    known = UNITS.get(name) or UNITS.get(name.lower())
    return (known,) if known else ()
