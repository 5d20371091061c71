"""Our reading of NATS header blocks gives what the library's own gives."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from nats.aio.client import Client

from streams.quickclient import QuickClient

KNOWN = (
    b"",
    b"vl-hash: 4e24\r\n",
    b"Nats-Subject: vl.e2611-a.1.plan-made\r\nNats-Sequence: 12\r\nNats-Num-Pending: 0\r\n\r\n",
    b"Content-Type:application/cloudevents+json\r\n",
    b"tab:\tvalue\r\n",
    b"time: 2026-11-30T10:42:00Z\r\n",
    b"empty:\r\nno colon at all\r\n",
    b"white space: refused\r\nkept: yes\r\n",
    "说明: 支付\r\nwhy: 支付超时\r\n".encode(),
    b"why: \xff\xfe\r\n",
    b": no name\r\n\x1fname: refused\r\nvalue: \x1f\r\n",
    b"twice: first\r\ntwice: second\r\n",
)


@pytest.mark.parametrize("block", KNOWN)
def test_header_block_is_read_as_the_library_reads_it(block: bytes) -> None:
    assert QuickClient._parse_header_lines(block) == Client._parse_header_lines(block)


@given(st.lists(st.tuples(st.from_regex(r"[A-Za-z][A-Za-z-]{0,20}", fullmatch=True), st.text(max_size=20)), max_size=6))
def test_any_headers_that_can_be_sent_are_read_as_the_library_reads_them(pairs: list[tuple[str, str]]) -> None:
    # The client writes a line break inside a value as a space.
    lines = (f"{name}: {value.translate({10: ' ', 13: ' '})}\r\n" for name, value in pairs)
    block = "".join(lines).encode("utf-8", "replace")
    assert QuickClient._parse_header_lines(block) == Client._parse_header_lines(block)
