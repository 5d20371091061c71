"""Sealing: the text of an event, enciphered with its session's key; what stays open stands beside it. Pure.

AES-SIV (RFC 5297, 256-bit keys): the same event gives the same bytes, and no nonce can be used twice. Key, event and
open part are all authenticated. Without the key a sealed body is what is left of it, and a payload of its class.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib
from collections.abc import Sequence
from functools import lru_cache

import orjson
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from streams import exposure
from streams.envelope import IN_BLOB, SEALED, BadEnvelope, Draft, Sealed, payload_bytes
from streams.events import Payload

KEY_BYTES = 64
_VERSION = "1:"
_BLOB = b"verdictlog blob"
_DATA = b',"data":'


class BadSeal(BadEnvelope):
    """What is sealed does not open: another key, or bytes that were changed."""


class NoKey(Exception):
    """A sealed session's key is not here: nothing can be added to the session, and what it says is not known."""

    def __init__(self, session: str, why: str = "its text was erased, or its key is kept elsewhere") -> None:
        super().__init__(f"session {session} is sealed and there is no key for it: {why}")
        self.session = session
        self.why = why


def sealed(key: bytes, event_id: str, payload: Payload) -> Sealed:
    """A payload's open part and its sealed text; an empty seal where there is no text."""
    data = payload_bytes(payload)
    left, cuts = exposure.take_out(type(payload), orjson.loads(data))
    if not cuts:
        return Sealed(data, "")
    open_ = orjson.dumps(left)
    text = _cipher(key).encrypt(zlib.compress(orjson.dumps(cuts), 1), [event_id.encode(), open_])
    return Sealed(open_, _VERSION + base64.b64encode(text).decode())


def of_drafts(key: bytes | None, session: str, drafts: Sequence[Draft]) -> list[Sealed]:
    """Each draft sealed. Those that hold no text of the session (`Payload.OPEN`) need no key."""
    return [
        Sealed(payload_bytes(draft.payload), "")
        if draft.payload.OPEN or key is None
        else sealed(key, draft.id(session), draft.payload)
        for draft in drafts
    ]


def document(one: Sealed) -> bytes:
    """A sealed payload for the blob stream: the same two parts as in a body."""
    return SEALED + b'%b"%b%b}' % (one.seal.encode(), _DATA, one.data)


def seal_of(held: bytes) -> str:
    """The `sealed` attribute of a body or of a document; "" where nothing in it is sealed, or it is in a blob."""
    if not held.startswith(SEALED):
        return ""
    seal = held[len(SEALED) :].partition(b'"')[0].decode("utf-8", "replace")
    return "" if seal == IN_BLOB else seal


def unsealed(key: bytes, event_id: str, held: bytes) -> bytes:
    """The payload's JSON from a body or a document with a seal. BadSeal if it does not open."""
    try:
        open_ = held[held.index(_DATA) + len(_DATA) : -1]
        text = base64.b64decode(seal_of(held).removeprefix(_VERSION), validate=True)
        cuts = orjson.loads(zlib.decompress(_cipher(key).decrypt(text, [event_id.encode(), open_])))
        return orjson.dumps(exposure.put_back(orjson.loads(open_), cuts))
    except (InvalidTag, binascii.Error, zlib.error, ValueError, LookupError, TypeError) as error:
        raise BadSeal(f"event {event_id}: its text does not open: another key, or changed bytes") from error


def seal_blob(key: bytes, data: bytes) -> bytes:
    """A blob's bytes for the store: the same content of one session is the same blob."""
    return _cipher(key).encrypt(zlib.compress(data, 1), [_BLOB])


def unseal_blob(key: bytes, stored: bytes) -> bytes:
    """The content of a sealed blob. BadSeal if it does not open."""
    try:
        return zlib.decompress(_cipher(key).decrypt(stored, [_BLOB]))
    except (InvalidTag, zlib.error, ValueError) as error:
        raise BadSeal("a blob does not open: another key, or changed bytes") from error


def digest(key: bytes | None, text: bytes) -> str:
    """SHA-256 in hexadecimal; with a key one that nobody without it can compare a guess with."""
    return hashlib.sha256(text).hexdigest() if key is None else hmac.new(key, text, "sha256").hexdigest()


@lru_cache(maxsize=64)
def _cipher(key: bytes) -> AESSIV:
    return AESSIV(key)
