"""What is taken out of texts of others: one rule a kind of secret, and what tells a secret from what looks like one.

Addresses, hosts, trace ids and UUIDs are evidence and match no rule. Numbers are taken only where they prove
themselves (card: issuer, length and Luhn; Chinese identity number: date and check character) or where a name says
what they are. Entropy proves nothing here, because trace ids have it too.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from handlers import redaction_checks as checks


@dataclass(frozen=True, slots=True)
class Rule:
    """`pattern` has a group `secret`, which goes unless `check` refuses it; it is tried only where an anchor stands.

    Anchors: texts in lower case meet any case, others are met as they are; in a rule that reads `digits` a `0` is any
    digit, in one that reads `capitals` an `A` is any capital as well. A match begins at an anchor, or up to `back`
    characters before it, and only where `gate` matches at the anchor: one look instead of `back` tries. A text without
    `needs` is not searched. A `wide` rule swallows what other rules found inside.
    """

    kind: str
    pattern: re.Pattern[str]
    anchors: tuple[str, ...]
    check: checks.Check | None = None
    back: int = 0
    gate: re.Pattern[str] | None = None
    needs: str = ""
    reads: Literal["text", "digits", "capitals"] = "text"
    wide: bool = False


_Q = r"(?:\\{0,8}[\"'])?"
# An underscore, a capital after a small letter or an escape of a URL begins a word; `password` and `secret` need none.
_WORD = r"(?:(?<![A-Za-z0-9])|(?-i:(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z0-9])(?=TOKEN))|(?<=%[0-9A-F]{2})|(?=passw|secret))"
_NAME = (
    r"(?:passwords?|passwd|passphrase|pwd|"
    r"(?:access|auth|refresh|id|bearer|session|security|csrf|xsrf|api|bot)[_-]?token|token|"
    r"secret[_-]?access[_-]?key|secret[_-]?key|client[_-]?secret|secrets?|"
    r"(?:api|access|account|private|signing|encryption|master|auth|sharedaccess)[_-]?key(?:[_-]?id)?|"
    r"credentials?|x-amz-(?:signature|credential|security-token)|sharedaccesssignature|密码|口令|密钥|令牌)(?![A-Za-z0-9])"
)
_NAME_ANCHORS = (
    "pass", "pwd", "secret", "key", "token", "credential", "x-amz-", "sharedaccess", "密码", "口令", "密钥", "令牌",
)  # fmt: skip
_SHUT = r"(?P<open>[\"'])|(?P<deep>\\{1,8}[\"'])"
_NAMED = (
    r"(?i)"
    + _WORD
    + _NAME
    + _Q
    + r"[^\S\n]{0,3}(?P<sign>=>|[:=：]|%(?:25)?3[ad])[^\S\n]{0,3}(?:"
    + _SHUT
    + r")?(?P<secret>"
    # Between quotes: up to the same quote again, whatever is escaped on the way.
    r"(?(open)(?:(?!(?P=open))(?:[^\\\n\t]|\\[^\n\t])){1,400}|"
    r"(?(deep)(?:(?!(?P=deep))(?:\\{1,8}[\"']|[^\"\n\t])){1,400}|"
    # Without: a separator belongs to the value unless what follows is the next setting.
    r"(?:(?!%(?:25)?26)[^\s\"'\\,;&|<>(){}\[\]]|;(?![A-Za-z][\w.-]{0,40}(?:[ ](?-i:[A-Z])\w{0,30}){0,2}=|[\s\"'\\<>)}\]]|$)){2,400}(?<![.:!?]))))"
)
_NEXT_LINE = r"[^\S\n]{0,3}\n(?:[^\t\n]{0,200}\t)?[^\S\n]{0,40}(?P<quote>[\"']?)(?P<secret>[^\s\"'<>{}]{4,400})(?P=quote)[,;]?[^\S\n]{0,8}(?:\n|$)"
_PAIRS = r"[\w-]{1,40}=(?:\\?\"[^\"\\\n]{0,400}\\?\"|[^\s,\"'\\]{1,400})"
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
        re.compile(r"(?P<secret>-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----(?:(?!-----BEGIN)[^\n\t])+-----END [A-Z ]{0,20}PRIVATE KEY-----)"),
        ("-----BEGIN ",),
        wide=True,
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
        checks.is_no_word,
    ),
    Rule(
        "token",
        re.compile(
            r"(?i)cookie" + _Q + r"\s{0,3}[:=]\s{0,3}" + _Q + r"(?P<secret>[\w.-]+=[^\s\"'\\,;]+(?:; ?[\w.-]+=[^\s\"'\\,;]*){0,50})"
        ),
        ("cookie",),
        wide=True,
    ),
    Rule(
        "password",
        re.compile(_NAMED),
        _NAME_ANCHORS,
        checks.is_named_value,
        back=11,
        gate=re.compile(r"\w{2,30}+(?:-\w{1,20}+){0,2}\\{0,8}[\"']?[^\S\n]{0,3}[=:：%]|x-"),
        wide=True,
    ),
    Rule(
        "password",
        re.compile(r"(?i)(?<=-)(?:password|passwd|token|secret|api-key)[ =](?P<secret>[^\s\"'-][^\s\"']{2,400}(?<![.,;:!?]))"),
        ("pass", "token", "secret", "api-key"),
        checks.is_flag_value,
    ),
    Rule(
        "email",
        re.compile(
            r"(?<![\w.+-])(?P<secret>[A-Za-z0-9][\w.+-]{0,63}@(?:[A-Za-z0-9-]{1,63}\.){1,6}[A-Za-z]{2,24})(?![\w@-])"
        ),
        ("@",),
        back=64,
        gate=re.compile(r"@[A-Za-z0-9-]{1,63}\."),
    ),
    Rule(
        "card",
        re.compile(
            r"(?<![\w.+-])(?P<secret>[2-6]\d{3}[ -]?\d{4}[ -]?\d{4}[ -]?\d{1,7}|3[47]\d{2}[ -]?\d{6}[ -]?\d{5})"
            r"(?![\w-]|\.\d)"
        ),
        ("0000 0000", "0000-0000", "0000 000000", "0000-000000", "0" * 13),
        checks.is_card,
        reads="digits",
    ),
    Rule(
        "identity-number",
        re.compile(r"(?<![\w.-])(?P<secret>[1-9]\d{5}(?:19|20)\d{9}[\dXx])(?![\w-]|\.\d)"),
        ("0" * 17,),
        checks.is_identity_number,
        reads="digits",
    ),
    Rule(
        "phone",
        re.compile(r"(?<![\w+.-])(?P<secret>\+\d{1,3}[ -]?\(?\d{1,4}\)?(?:[ -]?\d{2,4}){2,4})(?![\w-]|\.\d)"),
        ("+00", "+0 ", "+0-"),
        checks.is_phone,
        reads="digits",
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
    Rule(
        "token",
        re.compile(
            r"(?i)(?:authorization" + _Q + r"\s{0,3}[:=]\s{0,3}" + _Q + r"(?:(?:token|digest|api-?key|key|hawk|oauth|ntlm|hmac|"
            r"signature|sharedkey|aws|jwt|mac|aws4-hmac-sha256)[ ]{1,3})?|(?<![\w-])aws4-hmac-sha256[ ]{1,3})"
            r"(?P<secret>" + _PAIRS + r"(?:,?[ ]{0,3}" + _PAIRS + r"){0,20}|[\w.~+/=:-]{8,400})"
        ),
        ("authorization", "aws4-hmac"),
        checks.has_digit,
        wide=True,
    ),
    Rule(
        "url-password",
        re.compile(r"(?i)%3A%2F%2F[\w.~-]{0,100}%3A(?P<secret>(?:(?!%40|%2F)[\w.~%!*+-]){1,200})%40(?=[\w\[])"),
        ("%3a%2f%2f",),
    ),
    Rule(
        "url-password",
        re.compile(r"(?i)jdbc:oracle:\w{1,10}:[^\s/@:\"']{1,100}/(?P<secret>[^\s@\"']{1,200})@"),
        ("jdbc:oracle:",),
    ),
    Rule(
        "password",
        re.compile(
            r"curl(?![\w])(?:[^\n|;&]{0,400}?\s)(?:-u[ ]?|--(?:proxy-)?user[ =])[\"']?[^\s:\"']{1,100}:(?P<secret>[^\s\"']{1,200})"
        ),
        ("curl",),
        checks.is_flag_value,
    ),
    Rule(
        "password",
        re.compile(
            r"(?:(?:mysql|mariadb)[a-z_-]{0,12}\s(?:[^\n|;&]{0,300}?\s)??-p|sshpass\s{1,3}-p\s{0,3})"
            r"[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,200})"
        ),
        ("mysql", "mariadb", "sshpass"),
        checks.is_flag_value,
        needs=" -p",
    ),
    Rule(
        "password",
        re.compile(r"redis-cli\s(?:[^\n|;&]{0,300}?\s)??-a\s{1,3}[\"']?(?P<secret>[^\s\"'-][^\s\"']{2,200})"),
        ("redis-cli",),
        checks.is_flag_value,
        needs=" -a ",
    ),
    Rule(
        "password",
        re.compile(
            r"(?i)(?:passwords?|passwd|passphrase|pwd|(?<=_)pass|secret|token|(?:api|access|secret|private)[_-]?key)>"
            r"(?P<secret>[^<>\s][^<>\n\t]{1,400})</"
        ),
        ("pass", "pwd", "secret", "token", "api", "access"),
        checks.is_flag_value,
        needs="</",
    ),
    Rule(
        "password",
        re.compile(
            r"(?i)(?:(?<![A-Za-z0-9])(?:password|passwd|passphrase)\s(?:is|was|set to|changed to)\s{1,3}|(?:密码|口令)(?:是|为|改为)\s{0,3})"
            r"(?P<open>[\"'])?(?P<secret>(?(open)[^\"'\n\t]{3,100}|[^\s\"'<>,，。;；)）]{5,100}(?<![.:!?])))"
        ),
        ("pass", "密码", "口令"),
        checks.is_said_value,
    ),
    Rule(
        "password",
        re.compile(r"(?i)" + _WORD + _NAME + _Q + r"[ ]{0,3}[:=]" + _NEXT_LINE),
        ("=\n", ":\n", "=\r\n", ":\r\n"),
        checks.is_next_line,
        back=26,
        gate=re.compile(r"(?<=[\w\"' ])[=:]"),
    ),
    Rule("token", re.compile(r"(?i)(?<![A-Za-z0-9])bearer" + _NEXT_LINE), ("bearer",), checks.is_next_line),
    Rule(
        "token",
        re.compile(
            r"(?i)(?:(?<![A-Za-z0-9])|(?<=j)|(?<=php)|(?<=asp))sess(?:ion)?[_-]?id" + _Q + r"\s{0,3}[:=]\s{0,3}" + _Q
            + r"(?P<secret>[\w.~+/=!%-]{12,200}(?<![.]))"
        ),
        ("sess",),
        checks.is_session,
    ),
    Rule(
        "iban",
        re.compile(r"(?<![A-Za-z0-9])(?P<secret>[A-Z]{2}\d{2}(?:[A-Z0-9]{11,30}|(?: [A-Z0-9]{4}){2,7}(?: [A-Z0-9]{1,3})?))(?![A-Za-z0-9])"),
        ("AA00",),
        checks.is_iban,
        reads="capitals",
    ),
    Rule(
        "identity-number",
        re.compile(
            r"(?i)(?<![A-Za-z0-9])(?:ssn|social security(?: (?:number|no\.?))?)" + _Q + r"[ ]{0,3}(?:[:=#]|is)?[ ]{0,3}" + _Q
            + r"(?P<secret>\d{3}-\d{2}-\d{4})(?![\w-])"
        ),
        ("ssn", "social security"),
    ),
    Rule(
        "one-time-code",
        re.compile(
            r"(?i)(?<![A-Za-z0-9])(?:(?:otp|pin|passcode|verification code)(?:[ _-]code)?|验证码|校验码)"
            + _Q + r"\s{0,3}(?:[:=：]|is|是|为)\s{0,3}" + _Q + r"(?P<secret>\d{4,8})(?![\w-]|\.\d)"
        ),
        ("otp", "pin", "pass", "verification code", "验证码", "校验码"),
    ),
    Rule(
        "phone",
        re.compile(
            r"(?i)(?:手机|电话|phone|mobile)[^\d\n\t+]{0,8}(?P<secret>(?:\+?86[ -]?)?1[3-9]\d[ -]?\d{4}[ -]?\d{4})(?![\w-]|\.\d)"
        ),
        ("phone", "mobile", "手机", "电话"),
    ),
)  # fmt: skip

# What of a JSON value's name may make the value a secret: the rules decide on name and value together.
NAMES = re.compile(
    r"(?i)pass|pwd|secret|token|key|credential|authorization|cookie|sess|otp|pin|code|ssn|social|phone|mobile|msisdn|"
    r"x-amz|sharedaccess|signature|密码|口令|密钥|令牌|验证码|校验码|手机|电话"
)
