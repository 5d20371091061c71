"""What is taken out of texts of others: one rule a kind of secret, and what tells a secret from what looks like one.

Addresses, hosts, trace ids and UUIDs are evidence and match no rule. Numbers are taken only where they prove
themselves (card: issuer, length and Luhn; Chinese identity number: date and check character) or where a name says
what they are. Entropy proves nothing here, because trace ids have it too.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

Check = Callable[[re.Match[str]], bool]


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` has a group `secret`, which goes unless `check` refuses it; it is tried only where an anchor stands.

    Anchors: texts in lower case meet any case, others are met as they are, `0` in a `digits` rule is any digit. A match
    begins at an anchor, or up to `back` characters before it. A `wide` rule swallows what other rules found inside.
    """

    kind: str
    pattern: re.Pattern[str]
    anchors: tuple[str, ...]
    check: Check | None = None
    back: int = 0
    digits: bool = False
    wide: bool = False


_WORDS = frozenset(
    re.findall(
        r"\w+",
        "true false null none nil undefined empty missing required invalid incorrect wrong expired changed unset unknown"
        " not is was has are for must should cannot reset rotated mismatch denied failed error yes valid hidden masked"
        " redacted removed omitted string text bytes optional default enabled disabled authentication authorization",
    )
)
_MASKED = re.compile(r"[*•x.…_-]+|<.*|\$.*|\{.*|%[({].*|\[.*", re.IGNORECASE)
_CARD = re.compile(
    r"4(?:\d{12}|\d{15}|\d{18})|5[1-5]\d{14}|2[2-7]\d{14}|3[47]\d{13}|6(?:011|5\d\d)\d{12}|62\d{14,17}|35\d{14}"
)
_OTHER_NUMBER = re.compile(
    r"(?:trace|span|request|req|order|txn?|transaction|message|event|session|correlation|offset|seq|id|ts|time|bytes?|size)"
    r"[\w.-]*[\"'\\]*\s*[:=#]?\s*[\"'\\]*$",
    re.IGNORECASE,
)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def is_secret_value(value: str, sign: str, quoted: bool) -> bool:
    """Whether what follows `password=` and its like is a value, not a word about it, a mask or a reference."""
    bare = value.strip().rstrip(".,;:!?)]}")
    if len(bare) < 3 or bare.casefold() in _WORDS or _MASKED.fullmatch(bare):
        return False
    if quoted or "=" in sign:
        return True
    # After a colon in prose stands a word more often than a password.
    return not _is_word(bare)


def _is_word(text: str) -> bool:
    return text.isascii() and text.isalpha() and (text.islower() or text.istitle())


def is_card(hit: re.Match[str]) -> bool:
    """A known issuer's number of its length that passes Luhn, and is not said to be another number."""
    digits = re.sub(r"[ -]", "", hit["secret"])
    if not _CARD.fullmatch(digits) or len(set(digits)) < 2:
        return False
    return luhn(digits) and not _OTHER_NUMBER.search(hit.string, max(0, hit.start() - 40), hit.start())


def luhn(digits: str) -> bool:
    total = 0
    for at, char in enumerate(reversed(digits)):
        value = int(char) * (1 + at % 2)
        total += value - 9 if value > 9 else value
    return total % 10 == 0


def is_identity_number(hit: re.Match[str]) -> bool:
    """18 characters of GB 11643: a date that exists, and the check character that follows from the rest."""
    number = hit["secret"].upper()
    try:
        date(int(number[6:10]), int(number[10:12]), int(number[12:14]))
    except ValueError:
        return False
    rest = sum(int(digit) * weight for digit, weight in zip(number[:17], _WEIGHTS, strict=True)) % 11
    return number[17] == "10X98765432"[rest]


def _is_named_value(hit: re.Match[str]) -> bool:
    return is_secret_value(hit["secret"], hit["sign"], bool(hit["open"]))


def _is_flag_value(hit: re.Match[str]) -> bool:
    return is_secret_value(hit["secret"], "=", False)


def _is_no_word(hit: re.Match[str]) -> bool:
    secret: str = hit["secret"]
    return not _is_word(secret)


def _is_phone(hit: re.Match[str]) -> bool:
    digits: int = sum(char.isdigit() for char in hit["secret"])
    return 10 <= digits <= 15


_Q = r"(?:\\{0,8}[\"'])?"
_NAMED = (
    r"(?i)(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])))(?:passwords?|passwd|passphrase|pwd|"
    r"(?:access|auth|refresh|id|bearer|session|security|csrf|xsrf|api|bot)[_-]?token|token|"
    r"secret[_-]?access[_-]?key|secret[_-]?key|client[_-]?secret|secrets?|"
    r"(?:api|access|account|private|signing|encryption|master|auth|sharedaccess)[_-]?key(?:[_-]?id)?|"
    r"credentials?|x-amz-(?:signature|credential|security-token)|sharedaccesssignature|密码|口令|密钥|令牌)(?![A-Za-z0-9])"
    + _Q
    + r"\s{0,3}(?P<sign>=>|[:=：])\s{0,3}(?P<open>\\{0,8}[\"'])?"
    r"(?P<secret>(?(open)(?:[^\"'\\\n\t]|\\(?![\"'])){1,400}|[^\s\"'\\,;&|<>(){}\[\]]{2,400}(?<![.:!?])))"
)
_PROVIDERS = (
    r"(?<![A-Za-z0-9])(?P<secret>sk-[A-Za-z0-9_-]{20,}|(?:sk|rk|pk)_(?:live_|test_)?[A-Za-z0-9]{20,}|whsec_[A-Za-z0-9+/]{20,}|"
    r"gh[pousr]_[A-Za-z0-9]{30,}|github_pat_\w{30,}|glpat-[\w-]{20,}|xox[abeoprs]-[A-Za-z0-9-]{10,}|AIza[\w-]{35}|"
    r"ya29\.[\w-]{20,}|npm_[A-Za-z0-9]{36}|pypi-AgEI[\w-]{20,}|hf_[A-Za-z0-9]{30,}|dop_v1_[0-9a-f]{64}|"
    r"SG\.[\w-]{16,}\.[\w-]{16,}|hvs\.[\w-]{20,}|LTAI[A-Za-z0-9]{16,30}|AKID[A-Za-z0-9]{32}|S[UAOCN][A-Z2-7]{56}|"
    r"AGE-SECRET-KEY-1[A-Z0-9]{50,})(?![A-Za-z0-9])"
)
_PROVIDER_ANCHORS = (
    "sk-", "sk_", "rk_", "pk_", "whsec_", "ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "glpat-", "xox", "AIza",
    "ya29.", "npm_", "pypi-", "hf_", "dop_v1_", "SG.", "hvs.", "LTAI", "AKID", "SU", "SA", "SO", "SC", "SN", "AGE-SECRET-",
)  # fmt: skip

RULES = (
    Rule(
        "private-key",
        re.compile(r"(?P<secret>-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----[^\n\t]+-----END [A-Z ]{0,20}PRIVATE KEY-----)"),
        ("-----BEGIN ",),
    ),
    Rule("jwt", re.compile(r"(?<![A-Za-z0-9_-])(?P<secret>eyJ[\w-]{10,}(?:\.[\w-]*){1,2})"), ("eyJ",)),
    Rule(
        "aws-key",
        re.compile(r"(?<![A-Za-z0-9])(?P<secret>(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16})(?![A-Za-z0-9])"),
        ("AKIA", "ASIA", "ABIA", "ACCA"),
    ),
    Rule("api-key", re.compile(_PROVIDERS), _PROVIDER_ANCHORS),
    Rule("api-key", re.compile(r"(?<![A-Za-z0-9])(?P<secret>\d{8,10}:AA[\w-]{33})(?![\w-])"), (":AA",), back=10),
    Rule("api-key", re.compile(r"hooks\.slack\.com/services/(?P<secret>[A-Za-z0-9/]{20,})"), ("hooks.slack.com/",)),
    Rule(
        "url-password",
        re.compile(r"://[^\s/?#@:\"'<>]{0,200}:(?P<secret>[^\s/?#\"'<>]{1,200})@(?=[\w\[])"),
        ("://",),
    ),
    Rule(
        "token",
        re.compile(r"(?i)(?<![A-Za-z0-9])(?:bearer|basic|apikey|negotiate)[ =:]{1,3}(?P<secret>[\w.~+/=-]{12,})"),
        ("bearer", "basic", "apikey", "negotiate"),
        _is_no_word,
    ),
    Rule(
        "token",
        re.compile(
            r"(?i)cookie" + _Q + r"\s{0,3}[:=]\s{0,3}" + _Q + r"(?P<secret>[\w.-]+=[^\s\"'\\,;]{8,}(?:; ?[\w.-]+=[^\s\"'\\,;]+){0,50})"
        ),
        ("cookie",),
        wide=True,
    ),
    Rule(
        "password",
        re.compile(_NAMED),
        ("pass", "pwd", "secret", "key", "token", "credential", "x-amz-", "sharedaccess", "密码", "口令", "密钥", "令牌"),
        _is_named_value,
        back=11,
        wide=True,
    ),
    Rule(
        "password",
        re.compile(r"(?i)--?(?:password|passwd|token|secret|api-key)[ =](?P<secret>[^\s\"'-][^\s\"']{2,400}(?<![.,;:!?]))"),
        ("-pass", "-token", "-secret", "-api-key"),
        _is_flag_value,
        back=1,
    ),
    Rule(
        "email",
        re.compile(
            r"(?<![\w.+-])(?P<secret>[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24})(?![\w@-])"
        ),
        ("@",),
        back=64,
    ),
    Rule(
        "card",
        re.compile(
            r"(?<![\w.+-])(?P<secret>[2-6]\d{3}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5})"
            r"(?![\w-]|\.\d)"
        ),
        ("0000 0000", "0000-0000", "0000 000000", "0000-000000", "0" * 13),
        is_card,
        digits=True,
    ),
    Rule(
        "identity-number",
        re.compile(r"(?<![\w.-])(?P<secret>[1-9]\d{5}(?:19|20)\d{9}[\dXx])(?![\w-]|\.\d)"),
        ("0" * 17,),
        is_identity_number,
        digits=True,
    ),
    Rule(
        "phone",
        re.compile(r"(?<![\w+.-])(?P<secret>\+\d{1,3}[ -]?\(?\d{1,4}\)?(?:[ -]?\d{2,4}){2,4})(?![\w-]|\.\d)"),
        ("+00", "+0 ", "+0-"),
        _is_phone,
        digits=True,
    ),
    Rule(
        "phone",
        re.compile(
            r"(?i)(?:phone(?:[_-]?(?:no|num|number))?|mobile|msisdn|手机号?|电话)"
            + _Q
            + r"\s{0,3}[:=：]\s{0,3}"
            + _Q
            + r"(?P<secret>[\d+][\d ()-]{6,18}\d)(?![\w-])"
        ),
        ("phone", "mobile", "msisdn", "手机", "电话"),
    ),
)  # fmt: skip
