"""Checking the signature of a call by the Standard Webhooks: HMAC-SHA256 over id, time and body. Pure.

It is checked over the bytes as they came, before anything reads them. Whoever holds none of the keys learns nothing:
every key is tried every time, and each comparison takes as long as any other.
"""

import base64
import binascii
import hmac
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from shared.api_callers import Caller, Key
from shared.errors import MatinsError
from shared.webhook_signing import HEADERS, VERSION, signed_content

MOST_SIGNATURES = 16

# A dot would let what is signed be divided in another way than the sender did.
_ID = re.compile(r"[!-\-/-~]{1,200}", re.ASCII)
_TIMESTAMP = re.compile(r"\d{1,11}", re.ASCII)


class Unsigned(MatinsError):
    """The headers are no signature that could be checked; the message is a word for the log."""


@dataclass(frozen=True, slots=True)
class Signature:
    """What the three headers say: the delivery's id, its time in seconds since 1970, and the signatures of `v1`."""

    id: str
    timestamp: int
    signatures: tuple[bytes, ...]


def read_signature(headers: Mapping[str, Sequence[str]]) -> Signature:
    """Read the three headers, each given as all values that came under its name. Raises Unsigned."""
    values = {name: headers.get(name, ()) for name in HEADERS}
    if any(len(value) != 1 for value in values.values()):
        raise Unsigned("headers")
    identity, timestamp, listed = (values[name][0] for name in HEADERS)
    if not _ID.fullmatch(identity):
        raise Unsigned("id")
    if not _TIMESTAMP.fullmatch(timestamp):
        raise Unsigned("timestamp")
    parts = listed.split(" ")
    if len(parts) > MOST_SIGNATURES:
        raise Unsigned("signatures")
    return Signature(identity, int(timestamp), tuple(_decoded(parts)))


def signed_by(callers: Iterable[Caller], signature: Signature, body: bytes) -> tuple[Caller, Key] | None:
    """Give the caller who has signed, and the key; None when nobody of these has."""
    content = signed_content(signature.id, signature.timestamp, body)
    found: tuple[Caller, Key] | None = None
    for caller in callers:
        for key in caller.keys:
            right = hmac.digest(key.secret, content, "sha256")
            # No early end: the time tells nothing of how many were tried.
            for one in signature.signatures:
                if hmac.compare_digest(right, one):
                    found = (caller, key)
    return found


def _decoded(parts: Iterable[str]) -> Iterator[bytes]:
    """Give the signatures of the version that is ours; others are another's, and no fault."""
    for part in parts:
        version, _, text = part.partition(",")
        if version == VERSION:
            try:
                yield base64.b64decode(text, validate=True)
            except (binascii.Error, ValueError):
                continue
