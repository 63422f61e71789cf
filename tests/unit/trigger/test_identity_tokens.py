"""Which tokens prove who calls: signed by the issuer, for us, lately, about exactly the subject that is demanded."""

import base64
import hmac
import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, OctKey, RSAKey

from shared.api_callers import Caller, TokenRule
from trigger.identity_tokens import Unproven, proven_by, read_claimed, read_keys

NOW = 1_790_000_000
RSA = RSAKey.generate_key(2048, {"kid": "rsa"})
EC = ECKey.generate_key("P-256", {"kid": "ec"})
RULE = TokenRule(
    issuer="https://issuer.example.com",
    audience="https://matins.example.com",
    keys_url="https://issuer.example.com/keys",
    claims={"email": "cron@example.com", "email_verified": True},
)
CLOUD = Caller("cloud", frozenset({"invoice-run"}), (), RULE)
CLAIMS: dict[str, Any] = {
    "iss": RULE.issuer,
    "aud": RULE.audience,
    "iat": NOW - 10,
    "exp": NOW + 3600,
    "sub": "1234",
    "email": "cron@example.com",
    "email_verified": True,
}


def token(algorithm: str = "RS256", key: RSAKey | ECKey | OctKey = RSA, **claims: Any) -> str:
    said = {name: value for name, value in (CLAIMS | claims).items() if value is not None}
    return jwt.encode({"alg": algorithm, "kid": "rsa"}, said, key, algorithms=[algorithm])


GOOD = token()
VALUES = st.none() | st.booleans() | st.integers() | st.text(max_size=5)


def problem_of(text: str, *callers: Caller, key: RSAKey | ECKey = RSA) -> str:
    with pytest.raises(Unproven) as caught:
        proven_by(callers or (CLOUD,), text, key, NOW)
    return str(caught.value)


def written(header: dict[str, Any], sign: Callable[[bytes], bytes] = lambda _: b"") -> str:
    """Write a token by hand, since the library makes none of these."""
    content = b".".join(base64.urlsafe_b64encode(json.dumps(one).encode()).rstrip(b"=") for one in (header, CLAIMS))
    return f"{content.decode()}.{base64.urlsafe_b64encode(sign(content)).rstrip(b'=').decode()}"


def test_a_good_token_proves_its_caller() -> None:
    assert proven_by([CLOUD], token(), RSA, NOW) is CLOUD
    assert proven_by([CLOUD], token("ES256", EC), EC, NOW) is CLOUD
    assert proven_by([CLOUD], token(aud=["https://other.example.com", RULE.audience]), RSA, NOW) is CLOUD
    claimed = read_claimed(token())
    assert (claimed.issuer, claimed.key_id) == (RULE.issuer, "rsa")


@pytest.mark.parametrize(
    ("claims", "problem"),
    [
        ({"iss": "https://other.example.com"}, "issuer"),
        ({"iss": None}, "issuer"),
        ({"aud": "https://other.example.com"}, "audience"),
        ({"aud": None}, "audience"),
        ({"aud": ["https://other.example.com"]}, "audience"),
        ({"aud": {"https://matins.example.com": 1}}, "audience"),
        ({"exp": NOW - 61}, "expired"),
        ({"exp": None}, "expired"),
        ({"exp": "never"}, "expired"),
        ({"exp": True}, "expired"),
        ({"iat": NOW - 3661}, "age"),
        ({"iat": -(10**400)}, "age"),
        ({"iat": NOW + 61}, "age"),
        ({"iat": None}, "age"),
        ({"nbf": NOW + 61}, "early"),
        ({"email": "mallory@example.com"}, "caller"),
        ({"email": None}, "caller"),
        ({"email": ["cron@example.com"]}, "caller"),
        ({"email_verified": False}, "caller"),
        ({"email_verified": None}, "caller"),
        ({"email_verified": "true"}, "caller"),
        ({"email_verified": 1}, "caller"),
    ],
)
def test_a_token_of_another_issuer_audience_age_or_subject_proves_nothing(claims: dict[str, Any], problem: str) -> None:
    assert problem_of(token(**claims)) == problem


def test_a_token_may_be_told_to_be_young() -> None:
    young = Caller("cloud", frozenset(), (), replace(RULE, longest_age=timedelta(seconds=60)))
    assert problem_of(token(iat=NOW - 121), young) == "age"
    assert proven_by([young], token(iat=NOW - 119), RSA, NOW) is young


def test_a_token_without_a_signature_or_with_a_shared_secret_proves_nothing() -> None:
    public = RSA.as_pem(private=False)
    assert (
        problem_of(written({"alg": "HS256", "kid": "rsa"}, lambda text: hmac.digest(public, text, "sha256")))
        == "signature"
    )
    assert problem_of(written({"alg": "none", "kid": "rsa"})) == "signature"
    assert problem_of(written({"kid": "rsa"})) == "signature"
    assert problem_of(written({"alg": "RS256", "kid": "rsa"}, lambda _: b"x" * 256)) == "signature"
    assert problem_of(token("RS512")) == "signature"


def test_an_algorithm_that_the_rule_leaves_out_proves_nothing() -> None:
    narrow = Caller("cloud", frozenset(), (), replace(RULE, algorithms=("ES256",)))
    assert problem_of(token(), narrow) == "signature"


def test_a_key_of_another_or_a_changed_word_proves_nothing() -> None:
    other = RSAKey.generate_key(2048)
    assert problem_of(token(key=other)) == "signature"
    assert problem_of(token("ES256", EC)) == "signature"
    header, claims, signature = token().split(".")
    changed = claims[:-2] + ("AA" if claims[-2:] != "AA" else "BB")
    assert problem_of(f"{header}.{changed}.{signature}") == "signature"


def test_of_several_callers_of_one_issuer_each_is_known_by_their_subject() -> None:
    other = Caller("other", frozenset(), (), replace(RULE, claims={"sub": "99"}))
    assert proven_by([other, CLOUD], token(), RSA, NOW) is CLOUD
    assert proven_by([CLOUD, other], token(sub="99", email="x@example.com"), RSA, NOW) is other


def document(*keys: Any) -> bytes:
    return json.dumps({"keys": [one if isinstance(one, dict) else one.as_dict(private=False) for one in keys]}).encode()


def test_only_public_keys_that_sign_strongly_enough_are_read() -> None:
    weak = {"kty": "RSA", "kid": "weak", "n": base64.urlsafe_b64encode(b"\xff" * 128).decode().rstrip("="), "e": "AQAB"}
    secret = OctKey.generate_key(256, {"kid": "secret"}).as_dict()
    crypt = RSA.as_dict(private=False) | {"use": "enc", "kid": "crypt"}
    private = RSAKey.generate_key(2048, {"kid": "private"}).as_dict(private=True)
    nameless = {name: value for name, value in EC.as_dict(private=False).items() if name != "kid"}
    odd = {"kty": "RSA", "kid": "odd", "n": "!", "e": 3}
    curve = ECKey.generate_key("P-384", {"kid": "curve"})
    with pytest.warns(SecurityWarning):
        keys = read_keys(document(RSA, EC, weak, secret, crypt, private, nameless, odd, curve, {"kty": 7, "kid": "x"}))
    assert set(keys) == {"rsa", "ec"}


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b'{"keys": 7}', b'{"keys": []}', b'{"keys": [7]}', b"[" * 100_000])
def test_a_document_without_keys_is_refused(text: bytes) -> None:
    with pytest.raises(Unproven, match="keys"):
        read_keys(text)


@pytest.mark.parametrize("text", ["", "a", "a.b", "a.b.c.d", "e30.e30.", "W10.W10.", "é.é.é", "!.!.!", "x" * 9000])
def test_what_is_no_token_is_refused(text: str) -> None:
    with pytest.raises(Unproven, match="token"):
        read_claimed(text)


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_a_token_or_refused(text: str) -> None:
    for fuzzed in (text, f"{GOOD}{text}", f"{text}.{text}.{text}"):
        try:
            read_claimed(fuzzed)
            proven_by([CLOUD], fuzzed, RSA, NOW)
        except Unproven:
            continue
        assert fuzzed == GOOD


@settings(deadline=None)
@given(
    st.dictionaries(
        st.sampled_from(sorted(CLAIMS)), st.none() | st.booleans() | st.integers() | st.text(max_size=5), min_size=1
    )
)
def test_any_claims_that_differ_are_a_caller_of_nobody_or_of_the_demanded_subject(changed: dict[str, Any]) -> None:
    said = CLAIMS | changed
    text = jwt.encode({"alg": "ES256", "kid": "ec"}, said, EC, algorithms=["ES256"])
    try:
        assert proven_by([CLOUD], text, EC, NOW) is CLOUD
    except Unproven:
        return
    assert (said["iss"], said["aud"], said["email"]) == (RULE.issuer, RULE.audience, "cron@example.com")
    assert said["email_verified"] is True
    assert isinstance(said["sub"], str)
