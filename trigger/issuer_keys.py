"""The public keys of token issuers: fetched when they are needed, kept for a while, and never asked for too often.

A key that isn't known may be a new one, so it is looked for, but at most once in a while: anybody can name a key that
doesn't exist. While the issuer cannot be reached, the keys that are known go on to count, for a day.
"""

import http.client
import urllib.error
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from shared import clock
from shared.errors import MatinsError
from shared.logs import logger
from trigger.identity_tokens import PublicKey, Unproven, read_keys

KEPT_SECONDS = 600.0
KEPT_UNREACHED_SECONDS = 24 * 3600.0
AGAIN_AFTER_SECONDS = 30.0
FETCH_SECONDS = 5.0
MOST_BYTES = 256 * 1024
_log = logger(__name__)


class KeysUnavailable(MatinsError):
    """The issuer's keys are not to be had, and none are known: nothing can be said of its tokens."""


@dataclass(slots=True)
class _Known:
    keys: dict[str, PublicKey] = field(default_factory=dict)
    fetched_at: float = float("-inf")
    tried_at: float = float("-inf")
    lock: anyio.Lock = field(default_factory=anyio.Lock)


class IssuerKeys:
    """The keys by the address that they come from; for the event loop of one thread."""

    def __init__(self, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._monotonic = monotonic
        self._known: dict[str, _Known] = {}

    async def key(self, address: str, key_id: str) -> PublicKey:
        """Give a key. Raises Unproven when the issuer has none of that id, KeysUnavailable when nobody knows."""
        known = self._known.setdefault(address, _Known())
        if self._wanting(known, key_id):
            async with known.lock:
                # Whoever waited here finds what the one before has fetched.
                if self._wanting(known, key_id):
                    await self._fetch(address, known)
        if self._monotonic() - known.fetched_at > KEPT_UNREACHED_SECONDS:
            raise KeysUnavailable
        if key_id not in known.keys:
            raise Unproven("key")
        return known.keys[key_id]

    def _wanting(self, known: _Known, key_id: str) -> bool:
        now = self._monotonic()
        old = now - known.fetched_at > KEPT_SECONDS or key_id not in known.keys
        return old and now - known.tried_at > AGAIN_AFTER_SECONDS

    async def _fetch(self, address: str, known: _Known) -> None:
        known.tried_at = self._monotonic()
        try:
            with anyio.fail_after(2 * FETCH_SECONDS):
                document = await anyio.to_thread.run_sync(fetch, address, abandon_on_cancel=True)
            known.keys = read_keys(document)
        except (OSError, ValueError, http.client.HTTPException, Unproven) as error:
            _log.warning("the keys of an issuer were not to be had", address=address, reason=type(error).__name__)
        else:
            known.fetched_at = self._monotonic()


def fetch(address: str) -> bytes:
    """Get a document of a bounded size; a redirection leads nowhere. Raises OSError, ValueError or HTTPException."""
    opener = urllib.request.build_opener(_Staying)
    request = urllib.request.Request(address, headers={"Accept": "application/json"})  # noqa: S310 - https, by the setting
    try:
        with opener.open(request, timeout=FETCH_SECONDS) as answer:
            document: bytes = answer.read(MOST_BYTES + 1)
    except urllib.error.HTTPError as error:
        error.close()
        raise
    if len(document) > MOST_BYTES:
        raise ValueError("too much for a set of keys")
    return document


class _Staying(urllib.request.HTTPRedirectHandler):
    """Follows nobody elsewhere: the address of the keys is all that is trusted."""

    def redirect_request(self, *_: Any, **__: Any) -> None:
        """Go nowhere: what is answered is then an error."""
        return
