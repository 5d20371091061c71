"""What tells a secret from what looks like one: words, masks and references about it, check digits, dates."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

Check = Callable[[re.Match[str]], bool]

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
_UUID = re.compile(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_ABOUT = re.compile(
    r"(?i)(?:sha|md|base|utf|aes|hs|rs|es|scram|pbkdf|bcrypt|argon|scrypt|v|rfc|ver)[-_]?\d|\d+(?:ms|s|m|h|d|st|nd|rd|th|-\w+)?$|\d+-"
)
_IBAN_LENGTHS = {
    "AT": 20, "BE": 16, "CH": 21, "CZ": 24, "DE": 22, "DK": 18, "ES": 24, "FI": 18, "FR": 27, "GB": 22, "IE": 22, "IT": 27,
    "LU": 20, "NL": 18, "NO": 15, "PL": 28, "PT": 25, "SE": 24,
}  # fmt: skip
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)


def is_secret_value(value: str, sign: str, quoted: bool) -> bool:
    """Whether what follows `password=` and its like is a value, not a word about it, a mask or a reference."""
    bare = value.strip().rstrip(".,;:!?)]}")
    if len(bare) < 3 or bare.casefold() in _WORDS or _MASKED.fullmatch(bare):
        return False
    if quoted or "=" in sign or sign.casefold().endswith("3d"):
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


def is_named_value(hit: re.Match[str]) -> bool:
    return is_secret_value(hit["secret"], hit["sign"], bool(hit["open"] or hit["deep"]))


def is_flag_value(hit: re.Match[str]) -> bool:
    return is_secret_value(hit["secret"], "=", False)


def is_no_word(hit: re.Match[str]) -> bool:
    secret: str = hit["secret"]
    return not _is_word(secret)


def is_phone(hit: re.Match[str]) -> bool:
    digits: int = sum(char.isdigit() for char in hit["secret"])
    return 10 <= digits <= 15


def has_digit(hit: re.Match[str]) -> bool:
    return any(char.isdigit() for char in hit["secret"])


def is_said_value(hit: re.Match[str]) -> bool:
    """`the password is X`: X in quotes, or with digits and more, and no name of a hash, version or measure."""
    secret: str = hit["secret"]
    if hit["open"]:
        return is_secret_value(secret, "=", quoted=True) and " " not in secret
    return _is_mixed(secret) and not _ABOUT.match(secret)


def is_next_line(hit: re.Match[str]) -> bool:
    """Alone on its line, of letters and digits, and neither a setting, a time, a path nor an address."""
    secret: str = hit["secret"]
    return _is_mixed(secret) and secret[0].isalnum() and not re.search(r"[=:/\[(]|\.\w+$|^\d+-\d+-|^\d+\.\d", secret)


def _is_mixed(text: str) -> bool:
    return any(char.isdigit() for char in text) and any(char.isalpha() for char in text)


def is_session(hit: re.Match[str]) -> bool:
    """A session's identifier that opens it; a UUID is kept, and a word with a number."""
    secret: str = hit["secret"]
    return _is_mixed(secret) and not _UUID.fullmatch(secret) and not re.fullmatch(r"[A-Za-z_.-]+[_.-]?\d{1,6}", secret)


def is_iban(hit: re.Match[str]) -> bool:
    """ISO 13616: the country's length, and the remainder 1 by 97."""
    number = hit["secret"].replace(" ", "")
    if _IBAN_LENGTHS.get(number[:2]) != len(number):
        return False
    return int("".join(str(int(char, 36)) for char in number[4:] + number[:4])) % 97 == 1
