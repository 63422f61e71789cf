"""Signing in at a provider: who comes in, under which name and role, and every way in which nobody does."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from joserfc.jwk import OctKey, RSAKey

from tests.console.serving import serving
from tests.console.visitor import ORIGIN, Visitor, access_by, state_of
from tests.support.ledger import session_on
from tests.support.openid import CLIENT, OpenIdProvider, running_provider

ANN = {"email": "ann@example.com", "email_verified": True, "groups": ["staff", "operators"]}
BEN = {"email": "ben@example.com", "email_verified": True, "groups": "watchers"}


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    """A provider at which Ann signs in, who operates."""
    with running_provider(**ANN) as running:
        yield running


async def trail(database_url: str) -> list[tuple[Any, ...]]:
    async with session_on(database_url) as session:
        rows = await session.fetch("select kind, actor, actor_kind, detail from matins.audit order by id")
    return [tuple(row) for row in rows]


@pytest.mark.parametrize("secret", ["", "s3cret-of-the-client"])
async def test_somebody_signs_in_looks_and_signs_out(database_url: str, provider: OpenIdProvider, secret: str) -> None:
    async with serving(database_url, console_access=access_by(provider, secret=secret)) as console:
        ann = Visitor(console)
        turned_away = await ann.get("/?show=all")
        assert (turned_away.status, turned_away.headers["location"]) == (303, "/sign-in?to=/%3Fshow%3Dall")
        page = await ann.get(turned_away.headers["location"])
        assert "/sign-in/provider?to=/%3Fshow%3Dall" in page.text
        assert "Tonight" not in page.text
        came_back = await ann.sign_in("/%3Fshow%3Dall")
        assert came_back.status == 303, came_back.text
        assert (came_back.status, came_back.headers["location"]) == (303, "/?show=all")
        page = await ann.get("/?show=all")
        assert page.status == 200
        assert "ann@example.com" in page.text
        assert "read only" not in page.text
        assert list(ann.cookies) == ["__Host-matins"]
        left = await ann.post("/sign-out", {"csrf": await ann.word()})
        assert (left.status, left.headers["location"]) == (303, "/sign-in?out=1")
        assert "You are signed out" in (await ann.get("/sign-in?out=1")).text
        assert ann.cookies == {}
        assert (await ann.get("/")).status == 303
    (asked,) = provider.asked
    assert asked["redirect_uri"] == f"{ORIGIN}/sign-in/back"
    assert (asked["code_challenge_method"], asked["response_type"], asked["client_id"]) == ("S256", "code", CLIENT)
    said = {"means": "oidc", "issuer": provider.url, "subject": "1234", "role": "operate"}
    assert await trail(database_url) == [
        ("signed_in", "ann@example.com", "operator", said),
        ("signed_out", "ann@example.com", "operator", {"means": "oidc"}),
    ]


async def test_each_sign_in_has_a_session_of_its_own_and_ends_the_one_before(
    database_url: str, provider: OpenIdProvider
) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann, thief = Visitor(console), Visitor(console)
        await ann.sign_in()
        thief.cookies = dict(ann.cookies)
        assert (await thief.get("/")).status == 200
        await ann.sign_in()
        assert (await ann.get("/")).status == 200
        assert (await thief.get("/")).status == 303
        # One that somebody else has chosen is never taken over.
        fixed = Visitor(console, cookies=dict(thief.cookies))
        await fixed.sign_in()
        assert fixed.cookies["__Host-matins"].value != thief.cookies["__Host-matins"].value


async def test_who_may_only_look_is_told_so_and_who_has_no_role_is_nobody(
    database_url: str, provider: OpenIdProvider
) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        provider.person = BEN
        ben = Visitor(console)
        await ben.sign_in()
        page = (await ben.get("/")).text
        assert "ben@example.com" in page
        assert "read only" in page
        provider.person = ANN | {"groups": ["staff"]}
        stranger = Visitor(console)
        refused = await stranger.sign_in()
        assert refused.status == 403
        assert "has no role here" in refused.text
        assert "__Host-matins" not in stranger.cookies
    assert [kind for kind, *_ in await trail(database_url)] == ["signed_in"]


WRONG: dict[str, dict[str, Any]] = {
    "another nonce": {"changes": {"nonce": "x" * 43}},
    "no nonce": {"changes": {"nonce": None}},
    "another issuer": {"changes": {"iss": "https://evil.example.com"}},
    "another audience": {"changes": {"aud": "another-client"}},
    "asked for by another": {"changes": {"aud": [CLIENT, "another"], "azp": "another"}},
    "several audiences": {"changes": {"aud": [CLIENT, "another"]}},
    "expired": {"changes": {"exp": 1_000_000_000}},
    "of long ago": {"changes": {"iat": 1_000_000_000}},
    "no subject": {"changes": {"sub": None}},
    "an address that nobody has proved": {"changes": {"email_verified": False}},
    "an address of which nothing is said": {"changes": {"email_verified": None}},
    "no name": {"changes": {"email": None}},
    "a name that hides something": {"changes": {"email": "ann\u202e@example.com"}},
    "a program's name": {"changes": {"email": "token:deploy"}},
    "another's signature": {"signing": RSAKey.generate_key(2048, {"kid": "first"})},
    "the client's secret for a key": {"signing": OctKey.import_key(b"x" * 32), "algorithm": "HS256"},
    "another issuer's answer": {"answers": {"iss": "https://evil.example.com"}},
    "nobody's answer": {"answers": {"iss": None}},
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_token_that_proves_nothing_signs_nobody_in(
    database_url: str, provider: OpenIdProvider, wrong: str
) -> None:
    for name, value in WRONG[wrong].items():
        setattr(provider, name, value)
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann = Visitor(console)
        refused = await ann.sign_in()
        assert refused.status == 403
        assert "does not prove who you are" in refused.text
        assert "__Host-matins" not in ann.cookies
        assert (await ann.get("/")).status == 303
    assert await trail(database_url) == []


async def test_a_way_back_counts_once_and_for_the_browser_that_began(
    database_url: str, provider: OpenIdProvider
) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann, victim = Visitor(console), Visitor(console)
        back = await ann.to_provider()
        # Whoever is lured to somebody else's way back is not signed in as them.
        await victim.to_provider()
        assert (await victim.get(back)).status == 400
        assert (await Visitor(console).get(back)).status == 400
        assert (await ann.get(back.replace(state_of(back), "x" * 43))).status == 400
        assert (await ann.get(f"{back}&state=other")).status == 400
        back = await ann.to_provider()
        assert (await ann.get(back)).status == 303
        used, ann.cookies = dict(ann.cookies), {}
        ann.cookies = used | victim.cookies
        assert (await ann.get(back)).status == 400
        assert (await ann.get("/sign-in/back")).status == 400


async def test_a_code_is_of_no_use_to_who_has_not_begun(database_url: str, provider: OpenIdProvider) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann, thief = Visitor(console), Visitor(console)
        stolen = parse_qs(urlsplit(await ann.to_provider()).query)["code"][0]
        back = parse_qs(urlsplit(await thief.to_provider()).query)
        injected = {"code": stolen, "state": back["state"][0], "iss": back["iss"][0]}
        refused = await thief.get(f"/sign-in/back?{urlencode(injected)}")
        assert (refused.status, "invalid_grant" in refused.text) == (502, True)
        assert "__Host-matins" not in thief.cookies


async def test_a_sign_in_that_took_too_long_is_over(database_url: str, provider: OpenIdProvider) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann = Visitor(console)
        back = await ann.to_provider()
        async with session_on(database_url) as session:
            await session.execute("update matins.console_sign_in set created_at = created_at - interval '10 minutes'")
        assert (await ann.get(back)).status == 400


@pytest.mark.parametrize(
    "to",
    ["//evil.example.com", "/\\evil.example.com", "https://evil.example.com", "/%0d%0aX-Owned:%201", "/sign-out", ""],
)
async def test_nobody_is_sent_elsewhere(database_url: str, provider: OpenIdProvider, to: str) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann = Visitor(console)
        sent = await ann.sign_in(to)
        assert (sent.status, sent.headers["location"]) == (303, "/")
        assert "x-owned" not in sent.headers
        assert (await ann.get(f"/sign-in?to={to}")).headers["location"] == "/"


async def test_nobody_is_signed_in_because_another_page_wants_it(database_url: str, provider: OpenIdProvider) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        lured = Visitor(console)
        sent = await lured.get("/sign-in/provider?to=/", Sec_Fetch_Site="cross-site")
        assert (sent.status, sent.headers["location"]) == (303, "/sign-in?to=/")
        assert lured.cookies == {}


async def test_what_the_provider_says_is_shown_as_text(database_url: str, provider: OpenIdProvider) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann = Visitor(console)
        provider.answers = {"code": None, "error": "access_denied", "error_description": "<b>not today</b>\x1b[2J"}
        refused = await ann.sign_in()
        assert refused.status == 403
        assert "access_denied: &lt;b&gt;not today&lt;/b&gt;\\x1b[2J" in refused.text
        # Of a way back that was not begun here nothing is said.
        lured = await ann.get("/sign-in/back?error=owned&error_description=call+0900")
        assert (lured.status, "0900" in lured.text) == (400, False)


@pytest.mark.parametrize(
    ("how", "status", "told"),
    [
        ({"up": False}, 503, "the provider: HTTPError"),
        ({"token_answer": (503, b"away")}, 503, "the provider: HTTPStatusError"),
        ({"token_answer": (200, b"[]")}, 502, "no JSON"),
        ({"token_answer": (200, b"{}")}, 502, "no identity token"),
        ({"token_answer": (400, b'{"error": "<i>no</i>"}')}, 502, "&lt;i&gt;no&lt;/i&gt;"),
        ({"document": {"issuer": "https://evil.example.com"}}, 502, "another issuer"),
        ({"document": {"token_endpoint": "http://evil.example.com/token"}}, 502, "not https://"),
        ({"document": {"jwks_uri": None}}, 502, "cannot be read"),
    ],
    ids=str,
)
async def test_a_provider_that_is_away_or_broken_is_told_of(
    database_url: str, provider: OpenIdProvider, how: dict[str, Any], status: int, told: str
) -> None:
    for name, value in how.items():
        setattr(provider, name, value)
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann = Visitor(console)
        begun = await ann.get("/sign-in/provider")
        answer = begun if begun.status != 303 else await ann.sign_in()
        assert (answer.status, told in answer.text) == (status, True), answer.text
        assert "__Host-matins" not in ann.cookies


async def test_sign_ins_that_nobody_ends_fill_nothing_and_keep_nobody_out(
    database_url: str, provider: OpenIdProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trigger.console.signing_in.MOST_BEGUN", 3)
    async with serving(database_url, console_access=access_by(provider)) as console:
        first, last = Visitor(console), Visitor(console)
        pushed_out = await first.to_provider()
        for _ in range(10):
            assert (await Visitor(console).get("/sign-in/provider")).status == 303
        assert (await last.sign_in()).status == 303
        assert (await first.get(pushed_out)).status == 400
    async with session_on(database_url) as session:
        assert await session.fetchval("select count(*) from matins.console_sign_in") <= 4
