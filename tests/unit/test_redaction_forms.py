"""The forms in which secrets are written: each with what it takes, and what is alike and stays."""

from __future__ import annotations

import pytest

from handlers.redaction import Known, Redact, masked, redact

# Put together here, so that no scanner takes this file for a leak.
OPAQUE = "9c41e7" + "aa03d2b85f"
KEY_LINES = ["MIIEvQIBADANBgkq" + "hQ7z" * 12, "Zx8+" * 16, "bGVkZ2Vy"]
BEGIN, END = "-----BEGIN PRIVATE KEY-----", "-----END PRIVATE KEY-----"
IBAN, IBAN_GB = "DE89370400440532013000", "GB29 NWBK 6016 1331 9268 19"

TAKEN = [
    ("password", "q7-ledger", "PGPASSWORD=q7-ledger psql -h ledger-db"),
    ("password", "q7-ledger", "export LEDGERSECRET=q7-ledger"),
    ("password", "q7-ledger", "CI_DEPLOYTOKEN=q7-ledger make"),
    ("password", "q7-ledger", "ledgerpassword=q7-ledger"),
    ("token", OPAQUE, f"Authorization: Token {OPAQUE} -> 401"),
    ("token", OPAQUE, f'"authorization": "ApiKey {OPAQUE}", "path": "/pay"'),
    ("token", OPAQUE, f"authorization={OPAQUE} status=401"),
    ("token", f'username="ledger", response="{OPAQUE}"', f'Authorization: Digest username="ledger", response="{OPAQUE}"'),
    (
        "token",
        f"Credential=AKI/20260317/s3, SignedHeaders=host;date, Signature={OPAQUE}",
        f"AWS4-HMAC-SHA256 Credential=AKI/20260317/s3, SignedHeaders=host;date, Signature={OPAQUE}",
    ),
    ("password", "q7:ledger", "curl -s -u ledger:q7:ledger https://ledger-db/health"),
    ("password", "q7ledger", "mysqldump -h ledger-db -pq7ledger payments"),
    ("password", "q7ledger", "sshpass -p q7ledger ssh ledger-db"),
    ("password", "q7ledger", "redis-cli -h cache -a q7ledger ping"),
    ("password", "q7 ledger", "<ds><dbPassword>q7 ledger</dbPassword></ds>"),
    ("password", "q7ledger", "<token>q7ledger</token>"),
    ("token", "a=b; c=d", "Cookie: a=b; c=d"),
    ("token", "SID=z1", "Set-Cookie: SID=z1; HttpOnly"),
    ("token", f"{OPAQUE}", f"session_id={OPAQUE} pool=payments-pool"),
    ("token", f"{OPAQUE}", f"GET /pay;jsessionid={OPAQUE}"),
    ("password", 'q7\\"ledger', '{"password":"q7\\"ledger","host":"ledger-db"}'),
    ("password", "it's q7", '{"password":"it\'s q7","host":"ledger-db"}'),
    ("password", "q7;ledger", "password=q7;ledger host=ledger-db"),
    ("password", "q7!x", "Password=q7!x;User Id=app;Database=payments"),
    ("password", "q7!x", "Server=ledger-db;Password=q7!x;Database=payments"),
    ("password", "q7ledger", "form=user%3Dapp%26password%3Dq7ledger%26page%3D1"),
    ("url-password", "q7ledger", "to=https%3A%2F%2Fapp%3Aq7ledger%40ledger-db%2Fx"),
    ("url-password", "q7ledger", "jdbc:oracle:thin:app/q7ledger@ledger-db:1521:pay"),
    ("password", "q7ledger", "ＰＡＳＳＷＯＲＤ＝q7ledger"),
    ("password", "q7ledger", "pass\u200bwo\u200brd=q7ledger host"),
    ("password", "q7ledger", "the password is q7ledger, change it"),
    ("password", "q7ledger", "数据库密码是q7ledger。"),
    ("password", "q7ledger", "spring.datasource.password=\nq7ledger\nnext"),
    ("password", "q7ledger", "lines[1]\tpassword:\nlines[2]\tq7ledger\nlines[3]\tnext"),
    ("token", OPAQUE, f"Authorization: Bearer\n{OPAQUE}\n"),
    ("iban", IBAN, f"refund to {IBAN} failed"),
    ("iban", IBAN_GB, f"refund to {IBAN_GB} failed"),
    ("identity-number", "123-45-6789", "SSN 123-45-6789 refused"),
    ("phone", "13800138000", "手机号码13800138000 未注册"),
    ("phone", "138-0013-8000", "mobile 138-0013-8000 is not reachable"),
    ("one-time-code", "834921", "otp=834921 sent"),
    ("one-time-code", "4821", "the PIN is 4821"),
    ("one-time-code", "834921", "验证码：834921"),
]  # fmt: skip

KEPT = [
    "max_TOKENS=400 SUBTOKENS=3 DESECRETED=1 PASSWORD_FILE=/run/secrets/ledger",
    "authorization: failed for user ledger; Authorization: required; authorization token expired 12 s ago",
    "curl -u ledger https://ledger-db:8080/a; curl -s http://payment-service:8080/health",
    "mysql -u root -p -h ledger-db; mysqld -P3307; kubectl -n pay logs payment-service -p",
    "<key>orders</key><password></password><token/><pool>payments-pool</pool>",
    "cookies=3 cookie: missing",
    "session_id=550e8400-e29b-41d4-a716-446655440000 session id: worker-12 sessionid=42",
    "the password is wrong; password is case-sensitive; the password is sha256-hashed; password is 8-characters",
    "password:\n  secretKeyRef:\n    name: ledger-db-2",
    "bad password:\n2026-03-17T10:09:00Z ERROR HikariPool-1 timed out",
    "password:\n10.0.12.7:5432\npassword=\nledger-db2.prod.svc",
    "DE89370400440532013001 FR1520041010050500013M02606 AB12CDEF0123456789AB",
    "order 123-45-6789 ssn missing",
    "mobile traffic of 13800138000 bytes; trace 13800138000; telephone exchange 2",
    "spin: 2024 pin=13 mapping: 5000 GPIO pin 40 otp missing",
    "：，。（支付）Ｈｉｋａｒｉ 连接池 payments-pool\u200b 耗尽",
    "commit 9fceb02d0ae598e95dc970b74767f19372d61af8 v2.14.3 size=17179869184 10.1.2.3 fe80::1",
]


@pytest.mark.parametrize(("kind", "secret", "text"), TAKEN)
def test_a_secret_is_taken_whole_in_this_form_and_nothing_else_of_the_text(kind: str, secret: str, text: str) -> None:
    assert redact(text, Known()) == (text.replace(secret, f"[REDACTED:{kind}#1]"), {kind: 1})


@pytest.mark.parametrize("text", KEPT)
def test_what_only_looks_like_it_stays(text: str) -> None:
    assert redact(text, Known()) == (text, {})


def test_a_key_is_taken_where_each_of_its_lines_stands_beside_a_time_or_in_a_field() -> None:
    for form in ("2026-03-17T10:09:00Z INFO {}", '{{"n":1,"msg":"{}"}}'):
        lines = [form.format(line) for line in (BEGIN, *KEY_LINES[:2], END)]
        known = Known()
        clean, counts = redact("\n".join(lines), known)
        assert counts == {"private-key": 2}
        assert not any(line in clean for line in KEY_LINES)
        assert redact(lines[1], known)[0] == clean.split("\n")[1], "shown alone it is what is kept"
    trace = "4bf92f3577b34da6a3ce929d0e0e4736" * 2
    assert trace in redact("\n".join([BEGIN, f"trace {trace}", END]), Known())[0]


def test_a_key_in_a_list_of_records_is_taken_and_the_records_keep_their_places() -> None:
    redact_ = Redact(Known())
    clean, counts = redact_.texts(["one\ntwo", BEGIN, *KEY_LINES, END, "last"])
    assert clean == ["one\ntwo", BEGIN, *(f"[REDACTED:private-key#{n}]" for n in (1, 2, 3)), END, "last"]
    assert counts == {"private-key": 3}
    assert redact_.value({"output": [BEGIN, KEY_LINES[0], END]})[0] == {
        "output": [BEGIN, "[REDACTED:private-key#1]", END]
    }


def test_a_name_makes_its_json_value_a_secret_as_in_the_same_json_read_as_text() -> None:
    known = Known()
    given = {
        "password": "q7ledger",
        "deep": [{"api_key": 'q8"x', "pool": "payments-pool"}],
        "token": ["q9aaa"],
        "pin": 4821,
    }
    clean, counts = Redact(known).value(given)
    assert clean == {
        "password": "[REDACTED:password#1]",
        "deep": [{"api_key": "[REDACTED:password#2]", "pool": "payments-pool"}],
        "token": ["[REDACTED:password#3]"],
        "pin": "[REDACTED:one-time-code#1]",
    }
    assert counts == {"password": 3, "one-time-code": 1}
    assert redact('"api_key": "q8\\"x"', known)[0] == '"api_key": "[REDACTED:password#2]"'


def test_a_name_takes_no_word_count_or_flag_from_its_value() -> None:
    given = {
        "password": "missing",
        "max_tokens": 4096,
        "token_count": 15000,
        "pin": 7,
        "has_password": True,
        "key": "orders",
    }
    assert Redact(Known()).value(given) == (given, {})


def test_outside_a_session_a_placeholder_has_no_number() -> None:
    assert masked(f"401 for Authorization: Token {OPAQUE}") == "401 for Authorization: Token [REDACTED:token]"
