"""Units, Latin and Chinese: what one is worth in its dimension's canonical unit (`s`, `B`, `bit`, `%`, or a count)."""

from __future__ import annotations

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
    ("1e3", "B", "KB kB kb kilobytes"),
    ("1e6", "B", "MB mb megabytes 兆字节"),
    ("1e9", "B", "GB gb gigabytes"),
    ("1e12", "B", "TB tb terabytes"),
    ("1024", "B", "KiB Ki kibibytes"),
    ("1048576", "B", "MiB Mi mebibytes"),
    ("1073741824", "B", "GiB Gi gibibytes"),
    ("1099511627776", "B", "TiB Ti tebibytes"),
    ("1", "bit", "bit bits bps"),
    ("1e3", "bit", "Kb kbit kbps Kbps"),
    ("1e6", "bit", "Mb Mbit Mbps mbps"),
    ("1e9", "bit", "Gb Gbit Gbps gbps"),
    ("1", "%", "% percent pct 个百分点 百分点"),
    ("1", None, "次 times 个 条 台 项 行 处 名 位 份 种 笔 轮 回 遍 组 批 件 倍 x 副本 连接 节点 实例 请求 线程 错误"),
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
