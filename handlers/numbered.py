"""The digits by which evidence numbers things: ids, ports, ordinals, indices, error codes, and numbers in names.

In a claim such digits belong to an identifier and are no amount. In evidence they still support a plain number of a
claim: `order_id=8812` supports "order 8812". Digits of hashes, UUIDs, IPs, versions and times are never given back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from handlers.amounts import Quantity, plain
from handlers.identifiers import MASK, Identifier, Scan
from handlers.number_words import chinese_words
from handlers.units import SUFFIXES

_PORT = re.compile(r":(\d{1,5})$", re.ASCII)
_DIGITS = re.compile(r"-?\d{1,18}", re.ASCII)
_STANDING_ALONE = tuple(
    re.compile(pattern, re.ASCII)
    for pattern in (
        r"://[^\s/:\"']{1,200}:(\d{1,5})(?!\d)",
        r"\]:(\d{1,5})(?!\d)",
        r"(?<![A-Za-z0-9_.])(\d{1,9})(?:st|nd|rd|th)(?![A-Za-z0-9_])",
        r"第\s*(\d{1,9})(?!\d)",
        r"(?:#|(?<![A-Za-z])N[or]\.)\s?(\d{1,12})(?![A-Za-z0-9]|\.\d)",
        r"\[(-?\d{1,12})\]",
        r"@\s?(\d{10}(?:\d{3})?)(?!\d)",
        r"(?:timestamp|epoch|unix time|时间戳)\s*[:=：]?\s*(\d{10}(?:\d{3})?)(?!\d)",
        r"(?<![A-Za-z])(?:in|since|until|of|from|during|by)\s+((?:19|20)\d{2})(?![A-Za-z0-9_])",
    )
)
_HAN_ORDINAL = re.compile(r"第\s*([零〇一二两三四五六七八九十百]{1,9})")
_FLAG = re.compile(r"(?<![\w-])--?(?:X[a-z]{2}|[A-Za-z]{1,4})(\d{1,12})([kKmMgG]?)(?![A-Za-z0-9_])", re.ASCII)
_IN_NAME = re.compile(
    r"(?<![A-Za-z0-9])(?!(?:https?|tls|ssl|utf|sha|md|aes|ipv|rfc|iso|x)[-_/:.]?\d)[A-Za-z]{2,}[-_/#:]?(\d{1,15})(?![A-Za-z0-9]|[-.:]\d)",
    re.ASCII | re.IGNORECASE,
)
_FILE_LINE = re.compile(r"(?<=[A-Za-z0-9])\.[A-Za-z]{1,5}:(\d{1,7})(?![A-Za-z0-9])", re.ASCII)
_NO_NAME = frozenset({"pod", "ip", "version"})
_HEX = re.compile(r"(?=[0-9a-fA-F-]*[a-fA-F])(?=[0-9a-fA-F-]*\d)[0-9a-fA-F-]{7,}|0x[0-9A-Fa-f]+", re.ASCII)

_LABELLED = re.compile(r"(?:(?P<latin>[A-Za-z]+)\s?#?|(?P<han>[\u4e00-\u9fff])\s?#?)$", re.ASCII)
_NO_LABEL_WORDS = (
    "a an the is are was were be been of to at by in on with from for and or only just about than over under above "
    "below after before between all least most up down total reached reaches hit hits has have had shows show got "
    "get then says said gives gave fell rose took lost exactly approximately around roughly nearly almost per "
    "within until another other first last next these those some any no not but as it they that which waits waited"
)
_NO_LABEL = frozenset(_NO_LABEL_WORDS.split())
_NO_HAN_LABEL = frozenset("有到为是了达共计约近过于至在从和与或等超仅只但的后前数率量长限值满剩余多少最高低每第")


def numbers_alone(scanned: Scan) -> Iterator[Quantity]:
    """The whole numbers of an evidence line that are an id, code, port, ordinal, index, flag or epoch."""
    folded = scanned.folded
    for identifier in scanned.identifiers:
        found = _of_identifier(identifier)
        if found is not None:
            yield found
    for pattern in _STANDING_ALONE:
        for m in pattern.finditer(folded):
            yield plain(m[1], m.start(1))
    for m in _HAN_ORDINAL.finditer(folded):
        for quantity in chinese_words(m[1] + "次", loose=True):
            yield Quantity(quantity.value, None, m[1], m.start(1), m.end(1), quantity.digits)
    for m in _FLAG.finditer(folded):
        digits = Decimal(m[1])
        others = tuple((digits * Decimal(scale), unit) for scale, unit in SUFFIXES.get(m[2], ()))
        yield Quantity(digits, None, m[1] + m[2], m.start(1), m.end(2), digits, others)


def _of_identifier(identifier: Identifier) -> Quantity | None:
    port = _PORT.search(identifier.text) if identifier.kind in {"host", "ip"} else None
    if port:
        return plain(port[1], identifier.start + port.start(1))
    if identifier.kind in {"id", "error_code"} and _DIGITS.fullmatch(identifier.key):
        return plain(identifier.key, identifier.start + identifier.text.rindex(identifier.key))
    return None


def numbers_in_names(scanned: Scan) -> frozenset[Decimal]:
    """The numbers in names of an evidence line, which only say which one: `orders-3`, `broker2`, `/orders/8812`."""
    left = list(scanned.folded)
    for i in scanned.identifiers:
        if i.kind in _NO_NAME or (i.kind == "id" and _HEX.fullmatch(i.text)):
            left[i.start : i.end] = MASK * (i.end - i.start)
    text = "".join(left)
    return frozenset(Decimal(m[1]) for pattern in (_IN_NAME, _FILE_LINE) for m in pattern.finditer(text))


def labelled(before: str) -> bool:
    """True if a number behind `before` says which one: a noun stands right before it, `partition 3`, 订单 8812."""
    m = _LABELLED.search(before)
    if m is None:
        return False
    if m["han"]:
        return m["han"] not in _NO_HAN_LABEL
    word = m["latin"].lower()
    return word not in _NO_LABEL and not word.endswith("ed")
