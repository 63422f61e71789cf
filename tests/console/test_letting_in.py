"""Who is let in by the word of a proxy, and who by a token; everybody else is nobody."""

from hashlib import sha256

import pytest

from tests.console.serving import serving
from tests.console.visitor import ORIGIN, Visitor
from tests.support.ledger import session_on
from trigger.console.forgery import form_word

TOKEN, OTHER, OLD, SHORT = "a" * 43, "b" * 43, "c" * 43, "d" * 20


def by_proxy(trusted: str = "127.0.0.0/8", more: str = 'groups_header = "X-Forwarded-Groups"') -> str:
    return (
        f'url = "{ORIGIN}"\n[proxy]\ntrusted = ["{trusted}"]\nname_header = "X-Forwarded-User"\n{more}\n'
        'read = ["watchers"]\noperate = ["operators"]\nsign_out = "/oauth2/sign_out"\n'
    )


def by_token() -> str:
    described = [
        f'[tokens.{name}]\nsha256 = "{sha256(token.encode()).hexdigest()}"\nrole = "{role}"\n{more}\n'
        for name, token, role, more in (
            ("deploy", TOKEN, "operate", ""),
            ("wall", OTHER, "read", "not_after = 2199-01-01T00:00:00Z"),
            ("old", OLD, "operate", "not_after = 2026-01-01T00:00:00Z"),
            ("short", SHORT, "operate", ""),
        )
    ]
    return f'url = "{ORIGIN}"\n' + "".join(described)


async def sessions(database_url: str) -> list[str]:
    async with session_on(database_url) as session:
        return [
            row["name"] for row in await session.fetch("select name from matins.console_session order by created_at")
        ]


async def test_a_trusted_proxy_says_who_somebody_is(database_url: str) -> None:
    async with serving(database_url, console_access=by_proxy()) as console:
        ann = Visitor(console, {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "staff, operators"})
        page = await ann.get("/")
        assert (page.status, "read only" in page.text) == (200, False)
        assert '<a href="/oauth2/sign_out">' in page.text
        assert (await ann.get("/")).status == 200
        assert await sessions(database_url) == ["ann"]
        # The session says nothing without the proxy's word, and nothing of anybody else.
        ann.headers = {"X-Forwarded-User": "zoë", "X-Forwarded-Groups": "operators"}
        assert "zoë" in (await ann.get("/")).text
        assert await sessions(database_url) == ["zoë"]
        ann.headers = {"X-Forwarded-User": "ben", "X-Forwarded-Groups": "watchers"}
        page = await ann.get("/")
        assert "ben" in page.text
        assert "read only" in page.text
        assert await sessions(database_url) == ["zoë"]
        ann.headers = {}
        assert (await ann.get("/")).status == 401
        ann.headers = {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "staff"}
        assert (await ann.get("/")).status == 403


async def test_who_keeps_no_cookie_does_not_fill_the_trail(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("trigger.console.admission.BEGUN_A_MINUTE", 3)
    async with serving(database_url, console_access=by_proxy()) as console:
        for _ in range(10):
            ann = Visitor(console, {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "operators"})
            assert (await ann.get("/")).status == 200
    assert len(await sessions(database_url)) in {3, 4}


async def test_a_password_that_a_browser_adds_by_itself_proves_nothing_of_a_form(database_url: str) -> None:
    async with serving(database_url, console_access=by_proxy()) as console:
        ann = Visitor(console, {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "operators"})
        await ann.get("/")
        form = {"csrf": form_word(ann.cookies["__Host-matins"].value)}
        for given in ("Basic YW5uOnB3", "bearer", "Negotiate YII="):
            silent = {"Origin": None, "Sec-Fetch-Site": None, "Authorization": given}
            assert (await ann.post("/sign-out", form, **silent)).status == 403
        assert (await ann.get("/")).status == 200
        assert await sessions(database_url) == ["ann"]
        assert (await ann.post("/sign-out", form, Authorization="Basic YW5uOnB3")).status == 303


async def test_without_groups_the_name_decides(database_url: str) -> None:
    access = by_proxy(more="").replace("operators", "ann").replace("watchers", "ben")
    async with serving(database_url, console_access=access) as console:
        for name, status in (("ann", 200), ("ben", 200), ("Ann", 403), ("eve", 403)):
            assert (await Visitor(console, {"X-Forwarded-User": name}).get("/")).status == status


async def test_nobody_past_the_proxy_is_believed(database_url: str) -> None:
    async with serving(database_url, console_access=by_proxy("10.0.0.0/8")) as console:
        eve = Visitor(console, {"X-Forwarded-User": "ann", "X-Forwarded-Groups": "operators"})
        for more in ({}, {"X-Forwarded-For": "10.0.0.1"}, {"Forwarded": "for=10.0.0.1"}, {"X-Real-Ip": "10.0.0.1"}):
            eve.headers |= more
            assert (await eve.get("/")).status == 401
    assert await sessions(database_url) == []


@pytest.mark.parametrize(
    "name", ["", "x" * 201, "ann\u202e", "token:deploy", "Token:deploy", b"\xff\xfe", b"ann\x07"], ids=repr
)
async def test_a_name_that_is_none_lets_nobody_in(database_url: str, name: str | bytes) -> None:
    async with serving(database_url, console_access=by_proxy()) as console:
        raw = name if isinstance(name, bytes) else name.encode()
        given = [(b"host", b"console.example.com"), (b"x-forwarded-user", raw), (b"x-forwarded-groups", b"operators")]
        answer = await console.client.get("/", headers=given)
        assert answer.status_code in {400, 401}
        twice = [*given[:1], (b"x-forwarded-user", b"ann"), (b"x-forwarded-user", b"ben"), given[2]]
        assert (await console.client.get("/", headers=twice)).status_code == 401
        twice = [*given[:1], (b"x-forwarded-user", b"ann"), given[2], given[2]]
        assert (await console.client.get("/", headers=twice)).status_code == 401
    assert await sessions(database_url) == []


async def test_a_token_lets_a_program_in(database_url: str) -> None:
    async with serving(database_url, console_access=by_token()) as console:
        for token, scheme, told in ((TOKEN, "Bearer", "token:deploy"), (OTHER, "bearer", "token:wall")):
            page = await Visitor(console, {"Authorization": f"{scheme} {token}"}).get("/")
            assert (page.status, told in page.text) == (200, True)
            assert "set-cookie" not in page.headers
            assert 'name="csrf"' not in page.text


@pytest.mark.parametrize(
    "given",
    ["", "Bearer", f"Bearer {OLD}", f"Bearer {SHORT}", f"Basic {TOKEN}", TOKEN, f"Bearer {'e' * 43}"],
)
async def test_a_token_that_is_none_lets_nobody_in(database_url: str, given: str) -> None:
    async with serving(database_url, console_access=by_token()) as console:
        refused = await Visitor(console, {"Authorization": given}).get("/")
        assert refused.status == 401
        assert "Tonight" not in refused.text.replace("tonight's", "")
        assert refused.headers["www-authenticate"] == "Bearer"
        twice = [("host", "console.example.com"), *(("authorization", f"Bearer {one}") for one in (TOKEN, OTHER))]
        assert (await console.client.get("/", headers=twice)).status_code == 401


async def test_who_tries_too_often_is_told_to_come_less_often_and_who_has_a_token_gets_in(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trigger.console.admission.REFUSED_A_MINUTE", 5)
    async with serving(database_url, console_access=by_token()) as console:
        thief = Visitor(console, {"Authorization": f"Bearer {'e' * 43}"})
        statuses = {(await thief.get("/")).status for _ in range(10)}
        assert statuses == {401, 429}
        assert (await Visitor(console, {"Authorization": f"Bearer {TOKEN}"}).get("/")).status == 200


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "evil.example.com", "console.example.com.evil.example.com"])
async def test_the_console_answers_under_the_name_of_its_address_alone(database_url: str, host: str) -> None:
    async with serving(database_url, console_access=by_token()) as console:
        visitor = Visitor(console, {"Authorization": f"Bearer {TOKEN}"})
        assert (await visitor.get("/", Host=host)).status == 421
        for own in ("console.example.com", "console.example.com:443", "Console.Example.com"):
            assert (await visitor.get("/", Host=own)).status == 200
