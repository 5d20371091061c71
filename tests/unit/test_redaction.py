"""Secrets and personal data become placeholders; what is evidence stays to the byte."""

from __future__ import annotations

import base64
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.evidence import records
from handlers.evidence.cleaning import clean_arguments, cleaned
from handlers.evidence.protocol import ToolResult
from handlers.redaction import Known, Redact, redact
from streams.contract import EvidenceRef, RetrievalDetails

# Put together here, so that no scanner takes this file for a leak.
AWS = "AKIA" + "IOSFODNN7EXAMPLE"
GITHUB = "ghp_" + "a1B2" * 9
OPENAI = "sk-" + "proj-" + "Zx9_" * 8
SLACK = "xoxb-" + "123456789012-abcdefGHIJKL"
GOOGLE = "AIza" + "Sy0" * 11 + "ab"
STRIPE = "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc"
JWT = ".".join(
    base64.urlsafe_b64encode(part).decode().rstrip("=")
    for part in (b'{"alg":"HS256"}', b'{"sub":"payment-service"}', b"signature-bytes!")
)
PEM_LINES = ["MIIEpAIBAAKCAQEA" + "x7Qz" * 12, "Kp3+" * 16, "dGVzdA=="]
PEM = "\n".join(["-----BEGIN RSA PRIVATE KEY-----", *PEM_LINES, "-----END RSA PRIVATE KEY-----"])
CARD = "4111 1111 1111 1111"
AMEX = "378282246310005"
IDENTITY = "11010519491231002X"

SECRETS = [
    ("aws-key", AWS, f"using key {AWS} for ledger-backup"),
    ("password", "wJalrXUtnFEMI/K7MDENG", "aws_secret_access_key=wJalrXUtnFEMI/K7MDENG"),
    ("api-key", GITHUB, f"remote: invalid token {GITHUB}"),
    ("api-key", OPENAI, f'{{"message":"401 for {OPENAI}"}}'),
    ("api-key", SLACK, f"slack {SLACK}."),
    ("api-key", GOOGLE, f"key={GOOGLE}"),
    ("api-key", STRIPE, f"charge failed ({STRIPE})"),
    ("jwt", JWT, f"GET /pay?jwt={JWT}&x=1"),
    ("token", "c2VjcmV0OnBhc3N3b3Jk", "Authorization: Basic c2VjcmV0OnBhc3N3b3Jk"),
    ("token", "tok-9f8e7d6c5b4a", '"authorization":"Bearer tok-9f8e7d6c5b4a"'),
    ("token", "sid=s%3Aq8w7e6r5t4; csrf=1a2b3c", "Cookie: sid=s%3Aq8w7e6r5t4; csrf=1a2b3c"),
    ("url-password", "p4ss!w0rd", "jdbc:postgresql://ledger:p4ss!w0rd@ledger-db:5432/ledger"),
    ("password", "hunter2", "DB_PASSWORD=hunter2 HOST=ledger-db"),
    ("password", "hunter2", '{"password": "hunter2", "host": "ledger-db"}'),
    ("password", "hunter2", '{\\"dbPassword\\":\\"hunter2\\",\\"host\\":\\"ledger-db\\"}'),
    ("password", "two words", "spring.datasource.password: 'two words'"),
    ("password", "hunter2", "the password: hunter2. Then nothing"),
    ("password", "Tr0ub4dor&3", 'client_secret="Tr0ub4dor&3"'),
    ("password", "Zq81-x", "mysql --password=Zq81-x -h ledger-db"),
    ("password", "Zq81xx", "mysql --password Zq81xx -h ledger-db"),
    ("password", "口令123", "密码：口令123"),
    ("email", "jan.kowalski+pay@example.com", "sent to <jan.kowalski+pay@example.com>"),
    ("card", CARD, f"pan={CARD} declined"),
    ("card", AMEX, f"card {AMEX} declined"),
    ("identity-number", IDENTITY, f"身份证 {IDENTITY} 校验失败"),
    ("phone", "+86 138 0013 8000", "sms to +86 138 0013 8000 failed"),
    ("phone", "13800138000", "手机号：13800138000"),
]

EVIDENCE = [
    "2026-03-17T10:09:00.123+08:00 ERROR HikariPool-1 - Connection is not available, request timed out after 30001ms",
    "trace_id=4111111111111111 span_id=00f067aa0ba902b7 10.0.12.7:5432 -> ledger-db.prod.svc.cluster.local",
    "trace 4bf92f3577b34da6a3ce929d0e0e4736 request 550e8400-e29b-41d4-a716-446655440000",
    "jvm_memory_bytes 17179869184 epoch_ms 1773741600901 epoch_ns 1773741600901000000",
    "password authentication failed for user ledger; token expired; secret not found; password: incorrect",
    'pool="payments-pool" key="orders" max_tokens=4096 tokens: 120 prompt_tokens=12 monkey=brown keyspace=ledger',
    "HikariProxyConnection@5f3a4b84 leaked; java.lang.Object@1b2c3d; pull git@ledger-db",
    "GET http://payment-service:8080/v1/payments?limit=20 200 41ms",
    "image ledger@sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "hikaricp_connections_active{pool=\"payments-pool\"} last=20 min=4 max=20 avg=16.5917 n=169",
    "password=*** secret=<hidden> token=${TOKEN} apiKey={{ .Values.key }} pwd=null",
    "diff +12 -3, offset +1234567, utc+08:00, balance 4111111111111112",
]  # fmt: skip


@pytest.mark.parametrize(("kind", "secret", "text"), SECRETS)
def test_a_secret_becomes_a_placeholder_of_its_kind_and_the_rest_stays(kind: str, secret: str, text: str) -> None:
    clean, counts = redact(text, Known())
    assert clean == text.replace(secret, f"[REDACTED:{kind}#1]")
    assert counts == {kind: 1}


@pytest.mark.parametrize("text", EVIDENCE)
def test_addresses_ids_numbers_and_words_about_secrets_stay(text: str) -> None:
    assert redact(text, Known()) == (text, {})


def test_the_same_value_has_the_same_placeholder_and_another_one_another() -> None:
    known = Known()
    assert redact("password=alpha1 password=beta22 password=alpha1", known)[0] == (
        "password=[REDACTED:password#1] password=[REDACTED:password#2] password=[REDACTED:password#1]"
    )
    assert redact('"password":"beta22"', known)[0] == '"password":"[REDACTED:password#2]"'


def test_a_placeholder_that_stands_in_the_log_is_not_given_to_another_value() -> None:
    known = Known()
    known.reserve("password=[REDACTED:password#7] and [REDACTED:email#2]")
    assert redact("password=gamma33", known)[0] == "password=[REDACTED:password#8]"


def test_a_private_key_goes_whether_it_stands_in_one_text_one_line_or_a_record_a_line() -> None:
    whole, counts = redact(f"key:\n{PEM}\nnext line", Known())
    assert not any(line in whole for line in PEM_LINES)
    assert counts == {"private-key": 3}
    assert whole.endswith("-----END RSA PRIVATE KEY-----\nnext line")
    escaped, _ = redact('{"tls.key":"' + PEM.replace("\n", "\\n") + '"}', Known())
    assert escaped == '{"tls.key":"[REDACTED:private-key#1]"}'
    packed = records.pack((f"lines[{at}]", line) for at, line in enumerate(PEM.split("\n"), 1)).decode()
    kept, _ = redact(packed, Known())
    assert not any(line in kept for line in PEM_LINES)
    assert records.find(kept.encode(), "lines[2]") == "[REDACTED:private-key#1]"


def test_what_is_shown_and_what_is_kept_agree_also_in_a_slice() -> None:
    long = "x" * 6_000 + " password=hunter2 timeout " + "y" * 20_000
    ref, _ = records.shown("lines[1]", long, ("timeout",))
    short = EvidenceRef(raw_path="lines[2]", text=f"remote said {GITHUB}")
    result = ToolResult(
        "success",
        RetrievalDetails(evidence_refs=(ref, short), query_samples=(f"key {AWS}",)),
        output=records.pack([("lines[1]", long), ("lines[2]", short.text)]),
        output_format=records.FORMAT,
    )
    clean, counts = cleaned(result, Redact(Known()))
    assert clean.output is not None
    assert clean.retrieval_details is not None
    for shown in clean.retrieval_details.evidence_refs or ():
        assert records.find(clean.output, shown.raw_path) == shown.text
        assert "hunter2" not in shown.text
    assert counts == {"password": 1, "api-key": 1}
    assert clean.retrieval_details.query_samples == ("key [REDACTED:aws-key#1]",)


def test_an_error_without_an_output_is_cleaned_and_counted() -> None:
    clean, counts = cleaned(ToolResult("error", error="401 at http://me:hunter22@metrics:9090"), Redact(Known()))
    assert clean.error == "401 at http://me:[REDACTED:url-password#1]@metrics:9090"
    assert counts == {"url-password": 1}


def test_arguments_are_cleaned_at_every_depth() -> None:
    asked = {"terms": ["password=hunter2", 3], "labels": {"user": "jan@example.com"}, "limit": 5}
    assert clean_arguments(asked, Redact(Known())) == {
        "terms": ["password=[REDACTED:password#1]", 3],
        "labels": {"user": "[REDACTED:email#1]"},
        "limit": 5,
    }


PIECES = st.sampled_from([*(text for _, _, text in SECRETS), *EVIDENCE, PEM, "\n", "\t", " ", "支付", "İ", "\ud800"])


@given(st.lists(PIECES | st.text(max_size=20), max_size=8).map("".join))
def test_a_clean_text_is_left_as_it_is_and_line_breaks_stay(text: str) -> None:
    known = Known()
    clean, _ = redact(text, known)
    assert redact(clean, known)[0] == clean
    assert clean.count("\n") == text.count("\n") or "PRIVATE KEY" in text


@pytest.mark.parametrize(
    "piece",
    [
        "password",
        "a@",
        "4111 ",
        "-----BEGIN PRIVATE KEY-----\n",
        "://",
        "key=",
        "\\",
        "cookie=" + "a=bbbbbbbb; " * 20,
        "-----BEGIN PRIVATE KEY-----",
        "mysql  -p ",
        "curl ",
        "password=a;",
        "password:\n",
        "AB12 ",
        "passw\u200bord",
        "sessid=",
    ],
)
def test_hostile_text_costs_no_more_than_its_length(piece: str) -> None:
    def cost(length: int) -> float:
        began = time.process_time()
        redact(piece * (length // len(piece)), Known())
        return time.process_time() - began

    short, long = min(cost(20_000) for _ in range(3)), min(cost(160_000) for _ in range(2))
    assert long < 24 * short + 0.05, "8 times the length: 8 times the cost if linear, 64 if square"
