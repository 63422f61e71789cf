"""The file that says who may call: read whole, or refused with every fault and no secret."""

import base64
import tomllib
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.api_callers import ALGORITHMS, read_callers, read_key
from shared.masking import mask
from shared.settings import FaultySettings, load_settings
from tests.unit.test_settings import GOOD

ONE, TWO = ("whsec_" + base64.b64encode(letter * 32).decode() for letter in (b"a", b"b"))
CALLERS = f"""
[callers.billing-cron]
jobs = ["invoice-run", "charge"]
keys = ["{ONE}", "{TWO}"]
rate = 6

[callers.cloud]
jobs = ["usage-rollup"]
[callers.cloud.token]
issuer = "https://accounts.example.com"
audience = "https://matins.example.com"
keys_url = "https://accounts.example.com/keys"
claims = {{ email = "scheduler@project.example.com" }}
longest_age = 600
"""
TOKEN = """
[callers.cloud]
jobs = ["usage-rollup"]
[callers.cloud.token]
issuer = "i"
audience = "a"
keys_url = "https://example.com/keys"
claims = { sub = "me" }
"""


def test_callers_are_read_with_their_defaults() -> None:
    cron, cloud = read_callers(CALLERS)
    assert (cron.name, cron.rate, cron.token) == ("billing-cron", 6, None)
    assert cron.jobs == {"invoice-run", "charge"}
    assert [key.secret for key in cron.keys] == [b"a" * 32, b"b" * 32]
    assert (cloud.rate, cloud.keys) == (60, ())
    assert cloud.token is not None
    assert cloud.token.algorithms == ALGORITHMS
    assert cloud.token.longest_age == timedelta(minutes=10)


def test_an_address_must_have_been_proved_to_its_issuer() -> None:
    (_, cloud) = read_callers(CALLERS)
    assert cloud.token is not None
    assert cloud.token.claims == {"email": "scheduler@project.example.com", "email_verified": True}


def test_nothing_is_nobody() -> None:
    assert read_callers("") == read_callers(" \n") == ()


def test_a_key_is_known_by_a_fingerprint_that_says_nothing_of_it() -> None:
    key = read_key(ONE)
    assert len(key.fingerprint) == 8
    assert key.fingerprint != read_key(TWO).fingerprint
    assert "aaa" not in repr(key)


def test_every_fault_is_told_at_once_with_its_place_and_no_secret() -> None:
    short = "whsec_" + base64.b64encode(b"c" * 23).decode()
    faulty = f"""
        other = 1
        [callers.Upper]
        jobs = ["invoice-run"]
        keys = ["{ONE}"]
        [callers.short]
        jobs = []
        keys = ["{short}"]
        rate = 0
        [callers.bare]
        jobs = ["x"]
        sercret = "{ONE}"
        [callers.again]
        jobs = ["x"]
        keys = ["{ONE}"]
        [callers.plain]
        jobs = ["x"]
        token = 7
        [callers.token]
        jobs = ["x"]
        [callers.token.token]
        issuer = ""
        keys_url = "http://example.com/keys"
        claims = {{ email_verified = true }}
        algorithms = ["RS256", "none", "HS256"]
        audiense = "x"
    """
    with pytest.raises(ValueError, match="TOML with a table") as caught:
        read_callers(faulty)
    told = str(caught.value)
    for part in (
        "'other': there is nothing but [callers.NAME] at the top",
        "callers.Upper: a caller's name is small letters",
        "callers.short: jobs: valid is a list",
        "callers.short: keys: valid is a list of 1 to 4 keys",
        "callers.short: rate: valid is calls a minute",
        "callers.bare: 'sercret' is unknown; known are jobs, check_ins, keys, rate and token",
        "callers.bare: neither keys nor a token",
        "callers.again: a key is that of callers.Upper too",
        "callers.plain.token: valid is a table",
        "callers.token.token: issuer: valid is a text",
        "callers.token.token: audience is missing",
        "callers.token.token: keys_url: valid is an https:// address",
        "callers.token.token: claims: valid is a table that demands sub, or email",
        "callers.token.token: algorithms: valid is a list of RS256 and ES256",
        "callers.token.token: 'audiense' is unknown",
    ):
        assert part in told, part
    assert "whsec_YW" not in told
    assert base64.b64encode(b"c" * 23).decode() not in told


@pytest.mark.parametrize("text", ["callers = 1", "x = [", "[callers]", "[other]\na = 1", "[[callers]]"])
def test_what_is_no_table_of_callers_is_refused_with_the_form(text: str) -> None:
    with pytest.raises(ValueError, match=r"TOML with a table for each caller"):
        read_callers(text)


@pytest.mark.parametrize(
    ("address", "taken"),
    [
        ("https://example.com/keys", True),
        ("http://127.0.0.1:80/keys", True),
        ("http://localhost/keys", True),
        ("http://example.com/keys", False),
        ("file:///etc/passwd", False),
        ("ftp://example.com/keys", False),
        ("https://user:secret@example.com/keys", False),
        ("https:///keys", False),
        ("https://example.com/ke\\nys", False),
    ],
)
def test_keys_are_fetched_over_an_encrypted_way_alone(address: str, taken: bool) -> None:  # noqa: FBT001 - a row of a table
    text = TOKEN.replace("https://example.com/keys", address)
    if taken:
        assert len(read_callers(text)) == 1
    else:
        with pytest.raises(ValueError, match="keys_url: valid is an https"):
            read_callers(text)


@pytest.mark.parametrize("claims", ["{}", '{ sub = "" }', "{ sub = true }", '{ aud = "x" }', "{ email = 1 }", "7"])
def test_a_rule_that_every_token_of_an_issuer_would_fulfil_is_refused(claims: str) -> None:
    with pytest.raises(ValueError, match="claims: valid is"):
        read_callers(TOKEN.replace('{ sub = "me" }', claims))


def test_a_faulty_setting_stops_the_start_beside_all_other_faults(tmp_path: object) -> None:
    with pytest.raises(FaultySettings) as caught:
        load_settings(GOOD | {"MATINS_API_CALLERS": CALLERS.replace("rate = 6", "rate = 6.5"), "MATINS_PREFETCH": "0"})
    told = str(caught.value)
    assert "MATINS_API_CALLERS: valid is TOML" in told
    assert "callers.billing-cron: rate: valid is" in told
    assert "MATINS_PREFETCH" in told
    assert "whsec_" not in told.replace("whsec_...", "").replace("each whsec_ and", "")


def test_the_setting_is_masked_wherever_it_stands() -> None:
    settings = load_settings(GOOD | {"MATINS_API_CALLERS": CALLERS})
    assert "whsec_" not in repr(settings).replace("MATINS", "")
    assert mask(f"the key {ONE}, and {TWO}.") == "the key ***, and ***."
    assert mask("Bearer eyJhbGciOiJub25lIn0.eyJzdWIiOiIxIn0. or eyJh.eyJb.sig-_x!") == "Bearer *** or ***!"


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        tomllib.loads(text)
        read_callers(text)
    except ValueError:
        return
