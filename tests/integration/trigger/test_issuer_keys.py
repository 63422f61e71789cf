"""The keys of an issuer over real HTTP: asked for seldom, kept while it is away, and fetched from nowhere else."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler

import anyio
import pytest
from joserfc.jwk import ECKey

from tests.support.outside import Issuer, running_issuer
from trigger.identity_tokens import Unproven
from trigger.issuer_keys import (
    AGAIN_AFTER_SECONDS,
    KEPT_SECONDS,
    KEPT_UNREACHED_SECONDS,
    MOST_BYTES,
    IssuerKeys,
    KeysUnavailable,
)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def issuer() -> Iterator[Issuer]:
    """An issuer of tokens."""
    with running_issuer() as running:
        yield running


async def test_keys_are_fetched_once_and_again_when_they_are_old(issuer: Issuer) -> None:
    clock = Clock()
    keys = IssuerKeys(clock)
    async with anyio.create_task_group() as group:
        for _ in range(10):
            group.start_soon(keys.key, issuer.keys_url, "first")
    assert issuer.asked == 1
    clock.seconds += KEPT_SECONDS + 1
    await keys.key(issuer.keys_url, "first")
    assert issuer.asked == 2


async def test_a_new_key_is_found_and_an_unknown_one_is_not_looked_for_again_and_again(issuer: Issuer) -> None:
    clock = Clock()
    keys = IssuerKeys(clock)
    await keys.key(issuer.keys_url, "first")
    for _ in range(5):
        with pytest.raises(Unproven, match="key"):
            await keys.key(issuer.keys_url, "unknown")
    assert issuer.asked == 1
    issuer.keys.append(ECKey.generate_key("P-256", {"kid": "second"}))
    clock.seconds += AGAIN_AFTER_SECONDS + 1
    await keys.key(issuer.keys_url, "second")
    await keys.key(issuer.keys_url, "first")
    assert issuer.asked == 2


async def test_a_key_that_was_taken_back_counts_no_more(issuer: Issuer) -> None:
    clock = Clock()
    keys = IssuerKeys(clock)
    await keys.key(issuer.keys_url, "first")
    issuer.keys[:] = [ECKey.generate_key("P-256", {"kid": "second"})]
    clock.seconds += KEPT_SECONDS + 1
    with pytest.raises(Unproven, match="key"):
        await keys.key(issuer.keys_url, "first")


async def test_known_keys_count_while_the_issuer_is_away_but_not_for_ever(issuer: Issuer) -> None:
    clock = Clock()
    keys = IssuerKeys(clock)
    await keys.key(issuer.keys_url, "first")
    issuer.up = False
    clock.seconds += KEPT_SECONDS + 1
    await keys.key(issuer.keys_url, "first")
    await keys.key(issuer.keys_url, "first")
    assert issuer.asked == 2
    clock.seconds = KEPT_UNREACHED_SECONDS + 1
    with pytest.raises(KeysUnavailable):
        await keys.key(issuer.keys_url, "first")


async def test_an_issuer_that_was_never_reached_is_unavailable() -> None:
    with pytest.raises(KeysUnavailable):
        await IssuerKeys().key("http://127.0.0.1:9/keys", "first")


def elsewhere(issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    issuer.answer = None
    request.send_response(302)
    request.send_header("Location", issuer.keys_url)
    request.send_header("Content-Length", "0")
    request.end_headers()


def endless(_issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    request.wfile.write(b'{"keys": [' + b" " * (2 * MOST_BYTES))


def no_keys(_issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    request.send_response(200)
    request.end_headers()
    request.wfile.write(json.dumps({"keys": []}).encode())


def no_http(_issuer: Issuer, request: BaseHTTPRequestHandler) -> None:
    request.wfile.write(b"\x00\x01\x02 nothing like HTTP\r\n\r\n")


@pytest.mark.parametrize("answer", [elsewhere, endless, no_keys, no_http])
async def test_what_is_no_set_of_keys_or_leads_elsewhere_is_not_taken(issuer: Issuer, answer: object) -> None:
    assert callable(answer)
    issuer.answer = lambda request: answer(issuer, request)
    with pytest.raises(KeysUnavailable):
        await IssuerKeys().key(issuer.keys_url, "first")
    assert issuer.asked == 1
