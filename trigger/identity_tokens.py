"""Checking a token by which a platform says who calls: an OpenID Connect identity token, signed by its issuer. Pure.

The issuer's public keys are given. A token counts when the issuer has signed it with an algorithm of the rule's list,
for our audience, lately, and when it says of the caller exactly what the rule demands.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from joserfc import jwt
from joserfc.errors import ClaimError, ExpiredTokenError, JoseError
from joserfc.jwk import ECKey, RSAKey

from shared.api_callers import Caller, TokenRule
from shared.errors import MatinsError

LONGEST_TOKEN = 8 * 1024
LEEWAY_SECONDS = 60
SHORTEST_RSA_BITS = 2048
MOST_KEYS = 100

PublicKey = RSAKey | ECKey


class Unproven(MatinsError):
    """The token proves nothing; the message is a word for the log."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """What a token says of itself before anything is checked: which issuer's keys, and which of them, to check with."""

    issuer: str
    key_id: str


def read_claimed(token: str, longest: int = LONGEST_TOKEN) -> Claimed:
    """Read whose keys a token asks for. Raises Unproven for what is no token at all, or is longer than `longest`."""
    parts = token.split(".")
    if len(parts) != 3 or len(token) > longest or not token.isascii():  # noqa: PLR2004 - header, claims, signature
        raise Unproven("token")
    header, claims = _json_of(parts[0]), _json_of(parts[1])
    issuer, key_id = claims.get("iss"), header.get("kid")
    if not isinstance(issuer, str) or not isinstance(key_id, str) or not key_id:
        raise Unproven("token")
    return Claimed(issuer, key_id)


def read_keys(document: bytes) -> dict[str, PublicKey]:
    """Read an issuer's public keys by their ids, leaving out what signs nothing. Raises Unproven when none is left."""
    try:
        listed = json.loads(document)["keys"]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise Unproven("keys") from None
    keys: dict[str, PublicKey] = {}
    for one in listed[:MOST_KEYS] if isinstance(listed, list) else ():
        if isinstance(one, dict) and one.get("use", "sig") == "sig" and isinstance(one.get("kid"), str):
            key = _key_of(one)
            if key is not None:
                keys[one["kid"]] = key
    if not keys:
        raise Unproven("keys")
    return keys


def proven_by(callers: Iterable[Caller], token: str, key: PublicKey, now: int) -> Caller:
    """Give the caller whose rule a token fulfils, at the instant `now` in seconds since 1970.

    Raises Unproven with what was wrong by the last rule that was tried.
    """
    problem = "issuer"
    for caller in callers:
        if caller.token is None:
            continue
        try:
            claims_of(caller.token, token, key, now)
        except Unproven as error:
            problem = str(error)
        else:
            return caller
    raise Unproven(problem)


def claims_of(rule: TokenRule, token: str, key: PublicKey, now: int) -> Mapping[str, Any]:
    """Give what a token says, once it fulfils a rule at the instant `now` in seconds since 1970. Raises Unproven."""
    try:
        claims = jwt.decode(token, key, algorithms=rule.algorithms).claims
    except (JoseError, ValueError, TypeError, RecursionError) as error:
        raise Unproven("signature") from error
    demanded = jwt.JWTClaimsRegistry(
        now=now,
        leeway=LEEWAY_SECONDS,
        iss={"essential": True, "value": rule.issuer},
        aud={"essential": True, "value": rule.audience},
        exp={"essential": True},
        iat={"essential": True},
    )
    try:
        demanded.validate(claims)
    except ExpiredTokenError as error:
        raise Unproven("expired") from error
    except ClaimError as error:
        raise Unproven(_word(error)) from error
    if now - claims["iat"] > rule.longest_age.total_seconds() + LEEWAY_SECONDS:
        raise Unproven("age")
    _check_caller(rule.claims, claims)
    return claims


def _check_caller(demanded: Mapping[str, str | bool | int], claims: Mapping[str, Any]) -> None:
    for name, value in demanded.items():
        # A truth is no number here, and a text is no truth.
        if type(claims.get(name)) is not type(value) or claims[name] != value:
            raise Unproven("caller")


def _word(error: ClaimError) -> str:
    known = {"iss": "issuer", "aud": "audience", "exp": "expired", "iat": "age", "nbf": "early"}
    names: Sequence[str] = str(error.claim or "").split(",")
    return known.get(names[0], "claims")


def _key_of(described: dict[str, Any]) -> PublicKey | None:
    """Import a public key of a kind that signs for us; None for a secret one, a weak one and every other kind."""
    try:
        match described.get("kty"):
            case "RSA" if "d" not in described:
                rsa = RSAKey.import_key(described)
                return rsa if rsa.public_key.key_size >= SHORTEST_RSA_BITS else None
            case "EC" if described.get("crv") == "P-256" and "d" not in described:
                return ECKey.import_key(described)
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return None


def _json_of(part: str) -> dict[str, Any]:
    try:
        read = json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except (binascii.Error, ValueError, RecursionError):
        raise Unproven("token") from None
    if not isinstance(read, dict):
        raise Unproven("token")
    return read
