"""Telling what somebody has sent from what another site had their browser send. Pure.

Each form carries a word that only pages of its session have: an HMAC of the session's token, behind a mask that is
another one each time, so that nothing of it can be learned from how well a page compresses. Beside that, the browser
says where a request comes from, and cannot be had to lie.
"""

import base64
import binascii
import hmac
import secrets
from collections.abc import Sequence
from typing import Final

SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
_BYTES = 32
_PURPOSE = b"matins console form"


def form_word(token: str) -> str:
    """Make a word for a form of the session with this token; each is another, and all are right."""
    mask = secrets.token_bytes(_BYTES)
    return base64.urlsafe_b64encode(mask + _xor(mask, _word(token))).decode().rstrip("=")


def is_form_word(token: str, given: str) -> bool:
    """Tell whether a form comes from a page of this session."""
    try:
        read = base64.b64decode(given + "=" * (-len(given) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        read = b""
    if len(read) != 2 * _BYTES or not token:
        return False
    return hmac.compare_digest(_xor(read[:_BYTES], read[_BYTES:]), _word(token))


def is_from(origin: str, said: Sequence[str], site: Sequence[str], *, proven: bool) -> bool:
    """Tell whether a request that may change something comes from pages of `origin`.

    `said` are its Origin headers, and `site` its Sec-Fetch-Site. One of the two has to be there, unless who asks has
    `proven` who they are by what no browser adds by itself.
    """
    if len(said) > 1 or len(site) > 1 or (said and said[0] != origin) or (site and site[0] != "same-origin"):
        return False
    return bool(said or site) or proven


def _word(token: str) -> bytes:
    return hmac.digest(token.encode(), _PURPOSE, "sha256")


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(left ^ right for left, right in zip(one, other, strict=True))
