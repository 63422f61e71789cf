"""The only module that knows the library of OpenID Connect: sending somebody to their provider, and who comes back.

It is the authorization code flow with PKCE. The token that names somebody counts when the provider has signed it, for
this console, lately, and for the very sign-in that was begun: it bears its nonce. What the provider says of itself is
read from its discovery document, and kept for a while.
"""

import http.client
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import anyio
import anyio.to_thread
from authlib.integrations.httpx_client import AsyncOAuth2Client, OAuthError

from shared import clock
from shared.api_callers import TokenRule
from shared.channel_http import CLIENT_ERRORS
from shared.channel_values import encrypted_address
from shared.console_access import Oidc
from shared.errors import MatinsError
from shared.masking import plain, text_of
from trigger.api_request import DatabaseClock
from trigger.console.claims import identified
from trigger.console.person import Identified
from trigger.identity_tokens import Unproven, claims_of, read_claimed
from trigger.issuer_keys import IssuerKeys, KeysUnavailable, fetch

EXCHANGE_SECONDS: Final = 10.0
KEPT_SECONDS: Final = 600.0
KEPT_UNREACHED_SECONDS: Final = 24 * 3600.0
AGAIN_AFTER_SECONDS: Final = 5.0
LONGEST_AGE: Final = timedelta(minutes=10)
# It may name hundreds of groups.
LONGEST_TOKEN: Final = 64 * 1024
_ENDPOINTS = ("authorization_endpoint", "token_endpoint", "jwks_uri")


class ProviderAway(MatinsError):
    """The provider does not answer: it may later."""


class ProviderRefuses(MatinsError):
    """The provider answers, and not with who somebody is; the message is plain text."""


@dataclass(frozen=True, slots=True)
class Begun:
    """What belongs to one sign-in: its state, the secret behind its code, and what its token has to bear."""

    state: str = field(repr=False)
    verifier: str = field(repr=False)
    nonce: str = field(repr=False)
    back: str


@dataclass(slots=True)
class _Known:
    document: Mapping[str, Any]
    fetched_at: float


@dataclass(slots=True)
class Provider:
    """Sends people to a provider and says who comes back; for the event loop of one thread."""

    keys: IssuerKeys
    database_clock: DatabaseClock
    monotonic: Callable[[], float] = clock.monotonic
    _known: dict[str, _Known] = field(default_factory=dict)
    _tried: dict[str, float] = field(default_factory=dict)

    async def address(self, oidc: Oidc, begun: Begun) -> str:
        """Give the address at which somebody signs in. Raises ProviderAway or ProviderRefuses."""
        document = await self._document(oidc.issuer)
        async with _client(oidc, document, begun) as client:
            url, _ = client.create_authorization_url(
                document["authorization_endpoint"], begun.state, begun.verifier, nonce=begun.nonce
            )
        return str(url)

    async def identified(self, oidc: Oidc, begun: Begun, code: str, named: str | None) -> Identified:
        """Give who comes back with a code. Raises ProviderAway, ProviderRefuses, Unproven, or what the database raises.

        `named` is the issuer that the answer names: another one's answer is not taken for this one's.
        """
        document = await self._document(oidc.issuer)
        required = document.get("authorization_response_iss_parameter_supported") is True
        if (named is not None or required) and named != oidc.issuer:
            raise Unproven("issuer of the answer")
        token = await self._exchanged(oidc, document, begun, code)
        rule = TokenRule(
            oidc.issuer, oidc.client_id, document["jwks_uri"], {"nonce": begun.nonce}, longest_age=LONGEST_AGE
        )
        claimed = read_claimed(token, LONGEST_TOKEN)
        try:
            key = await self.keys.key(rule.keys_url, claimed.key_id)
        except KeysUnavailable:
            raise ProviderAway("the provider's keys are not to be had") from None
        return identified(oidc, claims_of(rule, token, key, int(await self.database_clock.now())))

    async def _exchanged(self, oidc: Oidc, document: Mapping[str, Any], begun: Begun, code: str) -> str:
        """Give the identity token that the provider has for a code."""
        try:
            with anyio.fail_after(EXCHANGE_SECONDS):
                async with _client(oidc, document, begun) as client:
                    tokens = await client.fetch_token(
                        document["token_endpoint"],
                        grant_type="authorization_code",
                        code=code,
                        code_verifier=begun.verifier,
                    )
        except OAuthError as error:
            raise ProviderRefuses(plain(f"{error.error}: {error.description or ''}".strip(": "), 300)) from None
        except TimeoutError:
            raise ProviderAway(f"the provider gave no answer within {EXCHANGE_SECONDS:g} s") from None
        except CLIENT_ERRORS as error:
            raise ProviderAway(plain(f"the provider: {type(error).__name__}: {text_of(error)}", 300)) from None
        except ValueError:
            raise ProviderRefuses("its answer is no JSON") from None
        token = tokens.get("id_token")
        if not isinstance(token, str):
            raise ProviderRefuses("it gives no identity token: is openid among the scopes that the client may ask for?")
        return token

    async def _document(self, issuer: str) -> Mapping[str, Any]:
        """Give what the provider says of itself, as of some minutes ago; while it is away, as of a day ago at most."""
        known, now = self._known.get(issuer), self.monotonic()
        tried = self._tried.get(issuer, float("-inf"))
        if known is not None and (now - known.fetched_at < KEPT_SECONDS or now - tried < AGAIN_AFTER_SECONDS):
            return known.document
        self._tried[issuer] = now
        try:
            document = await _fetched(issuer)
        except ProviderAway:
            if known is None or now - known.fetched_at > KEPT_UNREACHED_SECONDS:
                raise
            return known.document
        self._known = {issuer: _Known(document, self.monotonic())}
        return document


async def _fetched(issuer: str) -> Mapping[str, Any]:
    address = f"{issuer.rstrip('/')}/.well-known/openid-configuration"
    try:
        with anyio.fail_after(EXCHANGE_SECONDS):
            read = await anyio.to_thread.run_sync(fetch, address, abandon_on_cancel=True)
    except (OSError, http.client.HTTPException, ValueError) as error:
        raise ProviderAway(plain(f"the provider: {type(error).__name__}: {text_of(error)}", 300)) from None
    try:
        document = json.loads(read)
        if document["issuer"] != issuer:
            raise ProviderRefuses("what it says of itself is another issuer's")
        for name in _ENDPOINTS:
            encrypted_address(document[name])
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ProviderRefuses("what it says of itself cannot be read, or its addresses are not https://") from None
    fit: Mapping[str, Any] = document
    return fit


def _client(oidc: Oidc, document: Mapping[str, Any], begun: Begun) -> Any:
    supported = document.get("token_endpoint_auth_methods_supported")
    posts = isinstance(supported, list) and "client_secret_post" in supported and "client_secret_basic" not in supported
    method = "client_secret_post" if posts else "client_secret_basic"
    return AsyncOAuth2Client(
        oidc.client_id,
        oidc.client_secret or None,
        token_endpoint_auth_method=method if oidc.client_secret else "none",
        scope=" ".join(oidc.scopes),
        redirect_uri=begun.back,
        code_challenge_method="S256",
        timeout=EXCHANGE_SECONDS,
        follow_redirects=False,
    )
