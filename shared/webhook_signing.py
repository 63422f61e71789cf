"""Signing by the Standard Webhooks, which what we send and what we are sent have in common. Pure."""

import base64
import hmac
from collections.abc import Iterable

from shared.api_callers import Key

ID, TIMESTAMP, SIGNATURE = "webhook-id", "webhook-timestamp", "webhook-signature"
HEADERS = (ID, TIMESTAMP, SIGNATURE)
VERSION = "v1"


def signed_content(identity: str, timestamp: int, body: bytes) -> bytes:
    """Give the bytes that a signature is over: the message's id, its time in seconds since 1970, and the body."""
    return f"{identity}.{timestamp}.".encode() + body


def signed_headers(keys: Iterable[Key], identity: str, timestamp: int, body: bytes) -> dict[str, str]:
    """Give the three headers, with a signature of each key."""
    content = signed_content(identity, timestamp, body)
    made = (base64.b64encode(hmac.digest(key.secret, content, "sha256")).decode() for key in keys)
    return {ID: identity, TIMESTAMP: str(timestamp), SIGNATURE: " ".join(f"{VERSION},{one}" for one in made)}
