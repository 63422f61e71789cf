"""The setting that says who may do what in the console: read whole, or refused with every fault and no secret."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shared.console_access import Grants, read_access
from shared.masking import mask
from shared.settings import FaultySettings, load_settings
from tests.unit.test_settings import GOOD

SECRET = "a-client-s-secret"
DIGEST = "ab" * 32
ACCESS = f"""
url = "https://Console.example.com:443/"
[oidc]
issuer = "https://accounts.example.com"
client_id = "matins"
client_secret = "{SECRET}"
read = "everyone"
operate = ["on-call"]
[proxy]
trusted = ["10.0.0.0/8", "fd00::/8", "192.0.2.7"]
name_header = "X-Forwarded-Email"
groups_header = "X-Forwarded-Groups"
operate = ["on-call"]
[tokens.deploy]
sha256 = "{DIGEST}"
role = "operate"
not_after = 2027-01-01T00:00:00+01:00
[sessions]
idle = 600
longest = 3600
"""


def test_access_is_read_with_its_defaults() -> None:
    access = read_access(ACCESS)
    assert access is not None
    assert (access.origin, access.host, access.encrypted) == (
        "https://console.example.com",
        "console.example.com",
        True,
    )
    assert (access.idle, access.longest) == (timedelta(minutes=10), timedelta(hours=1))
    assert access.oidc is not None
    assert access.oidc.scopes == ("openid", "email", "profile")
    assert (access.oidc.name_claim, access.oidc.roles_claim) == ("email", "groups")
    assert access.proxy is not None
    assert (access.proxy.name_header, access.proxy.groups_header) == ("x-forwarded-email", "x-forwarded-groups")
    (token,) = access.tokens
    assert (token.name, token.role, token.digest) == ("deploy", "operate", bytes.fromhex(DIGEST))
    assert token.not_after == datetime(2026, 12, 31, 23, tzinfo=UTC)
    assert SECRET not in repr(access)
    assert SECRET not in mask(f"the secret is {SECRET}")


def test_nothing_is_nobody() -> None:
    assert read_access("") is read_access(" \n") is None


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://127.0.0.1:8082", "http://127.0.0.1:8082"),
        ("http://localhost:80", "http://localhost"),
        ("https://[fd00::1]:8443", "https://[fd00::1]:8443"),
    ],
)
def test_an_address_is_written_as_browsers_write_it(url: str, origin: str) -> None:
    access = read_access(ACCESS.replace("https://Console.example.com:443/", url))
    assert access is not None
    assert access.origin == origin


@pytest.mark.parametrize(
    ("values", "role"),
    [(["on-call", "staff"], "operate"), (["staff"], "read"), (["On-Call"], None), ([], None), (["on-call "], None)],
)
def test_a_role_is_given_by_the_very_value(values: list[str], role: str | None) -> None:
    assert Grants(frozenset({"staff"}), frozenset({"on-call"})).role_of(values) == role


@given(st.lists(st.text(max_size=10), max_size=5))
def test_everyone_is_everyone_and_nobody_is_nobody(values: list[str]) -> None:
    assert Grants("everyone").role_of(values) == "read"
    assert Grants(frozenset(), "everyone").role_of(values) == "operate"
    assert Grants().role_of(values) is None


FAULTY = f"""
url = "http://console.example.com"
users = "{SECRET}"
[oidc]
issuer = "http://accounts.example.com"
client_secret = "{SECRET}\\u0007"
scopes = ["email"]
roles = "{SECRET}"
[proxy]
trusted = ["0.0.0.0/0"]
name_header = "Cookie"
read = []
[tokens.Upper]
sha256 = "{DIGEST}"
role = "admin"
[tokens.twice]
sha256 = "{DIGEST}"
role = "read"
not_after = 2027-01-01T00:00:00
token = "{SECRET}"
[tokens.bare]
[sessions]
idle = 1
"""


def test_every_fault_is_told_at_once_with_its_place_and_no_secret() -> None:
    with pytest.raises(ValueError, match="TOML with url") as caught:
        read_access(FAULTY)
    told = str(caught.value)
    for part in (
        "at the top: url: valid is an https:// address without a path",
        "at the top: 'users' is unknown; known are url, oidc, proxy, tokens and sessions",
        "oidc: issuer: valid is an https:// address",
        "oidc: client_id is missing",
        "oidc: client_secret: valid is a text of 1 to 500 printable ASCII characters",
        "oidc: scopes: valid is a list of 1 to 20 scopes, openid among them",
        "oidc: 'roles' is unknown",
        "oidc: neither read nor operate says who has which role",
        "proxy: trusted: valid is a list of networks, as 10.0.0.0/8, and none of everybody",
        "proxy: name_header: valid is the name of a header that says nothing else already",
        "proxy: read: valid is a list of 1 to 200 texts, or 'everyone'",
        "tokens.Upper: a token's name is small letters",
        "tokens.Upper: role: valid is 'read' or 'operate'",
        "tokens.twice: its token is that of tokens.Upper too",
        "tokens.twice: not_after: valid is an instant with a zone",
        "tokens.twice: 'token' is unknown",
        "tokens.bare: sha256 is missing",
        "tokens.bare: role is missing",
        "sessions: idle: valid is seconds, 60 to 604800",
    ):
        assert part in told, part
    assert SECRET not in told
    assert DIGEST not in told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("url = ", "it is not TOML"),
        ("[" * 3000, "it is not TOML"),
        ('url = "https://a.example.com"', "none of .oidc., .proxy. and .tokens.NAME. says who may look"),
        ('url = "https://a.example.com"\ntokens = {}', "tokens: valid is a table for each"),
        ('url = "https://a.example.com"\noidc = 7', "oidc: valid is a table"),
        ('url = "https://a.example.com/console"\n[tokens.a]', "url: valid is an https:// address without a path"),
        ('url = "https://ann@a.example.com"\n[tokens.a]', "url: valid is an https:// address without a path"),
        ('url = "https://a.example.com"\n[proxy]\ntrusted=["10.0.0.1/8"]', "trusted: valid is a list of networks"),
    ],
)
def test_what_is_no_access_is_refused(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_access(text)


def test_a_console_where_nobody_signs_in_answers_on_the_loopback_interface_alone(tmp_path: Path) -> None:
    for address in ("127.0.0.1:0", "[::1]:8082", "localhost:8082", "off"):
        load_settings(GOOD | {"MATINS_CONSOLE_ADDRESS": address})
    open_to_all = GOOD | {"MATINS_CONSOLE_ADDRESS": "10.0.0.5:8082"}
    assert load_settings(open_to_all | {"MATINS_CONSOLE_ACCESS": ACCESS}).console_address == ("10.0.0.5", 8082)
    file = tmp_path / "access.toml"
    file.write_text(ACCESS, encoding="utf-8")
    load_settings(open_to_all | {"MATINS_CONSOLE_ACCESS_FILE": str(file)})
    told = "MATINS_CONSOLE_ADDRESS is '10.0.0.5:8082': valid is a loopback address"
    with pytest.raises(FaultySettings, match=told):
        load_settings(open_to_all)
    for text in ("", " \n", "url = 7"):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(FaultySettings, match=told):
            load_settings(open_to_all | {"MATINS_CONSOLE_ACCESS_FILE": str(file)})
    with pytest.raises(FaultySettings, match=f"{told}(.|\n)*") as caught:
        load_settings(open_to_all | {"MATINS_CONSOLE_ACCESS": FAULTY, "MATINS_PREFETCH": "0"})
    assert "MATINS_PREFETCH" in str(caught.value)
    assert "oidc: client_id is missing" in str(caught.value)
    assert SECRET not in str(caught.value)
