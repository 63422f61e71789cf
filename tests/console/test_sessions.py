"""Sessions: the same on every console of a database, over when they should be, and secrets nowhere."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.console.serving import serving
from tests.console.visitor import CSRF, Visitor, access_by
from tests.support.canaries import Canary
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.openid import OpenIdProvider, running_provider
from tests.support.proxy import Proxy

ANN = {"email": "ann@example.com", "email_verified": True, "groups": ["staff", "operators"]}


@pytest.fixture
def provider() -> Iterator[OpenIdProvider]:
    """A provider at which Ann signs in, who operates."""
    with running_provider(**ANN) as running:
        yield running


async def changed(database_url: str, change: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(f"update matins.console_session set {change}")


async def count(database_url: str) -> int:
    async with session_on(database_url) as session:
        found: int = await session.fetchval("select count(*) from matins.console_session")
    return found


async def test_two_consoles_share_a_session_and_who_signs_out_of_one_is_out_of_both(
    database_url: str, provider: OpenIdProvider
) -> None:
    access = access_by(provider)
    async with serving(database_url, console_access=access) as one, serving(database_url, console_access=access) as two:
        ann = Visitor(one)
        back = await ann.to_provider()
        # Whoever began at one comes back to the other, as a gateway may have it.
        ann.served = two
        assert (await ann.get(back)).status == 303
        for served in (one, two):
            ann.served = served
            assert (await ann.get("/")).status == 200
        word = await ann.word()
        ann.served, kept = one, dict(ann.cookies)
        assert (await ann.post("/sign-out", {"csrf": word})).status == 303
        ann.cookies = kept
        for served in (one, two):
            ann.served = served
            assert (await ann.get("/")).status == 303


@pytest.mark.parametrize(
    "change", ["seen_at = seen_at - interval '1 hour'", "created_at = created_at - interval '12 hours'"]
)
async def test_a_session_that_is_idle_or_old_is_over_and_forgotten(
    database_url: str, provider: OpenIdProvider, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("trigger.console.server.TIDY_SECONDS", 0.05)
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann = Visitor(console)
        await ann.sign_in()
        assert (await ann.get("/")).status == 200
        await changed(database_url, change)
        assert (await ann.get("/")).status == 303
        assert (await ann.post("/sign-out", {"csrf": ""})).status == 401

        async def forgotten() -> bool:
            return await count(database_url) == 0

        await until(forgotten)


async def test_going_to_a_page_keeps_a_session_and_a_page_that_refreshes_itself_does_not(
    database_url: str, provider: OpenIdProvider
) -> None:
    async with serving(database_url, console_access=access_by(provider)) as console:
        ann = Visitor(console)
        await ann.sign_in()
        await changed(database_url, "seen_at = seen_at - interval '50 minutes'")
        assert (await ann.get("/", Sec_Fetch_Mode="cors")).status == 200
        await changed(database_url, "seen_at = seen_at - interval '5 minutes'")
        assert (await ann.get("/", Sec_Fetch_Mode="navigate")).status == 200
        await changed(database_url, "seen_at = seen_at - interval '50 minutes'")
        assert (await ann.get("/")).status == 200


async def test_the_setting_decides_about_roles_at_each_request(
    database_url: str, provider: OpenIdProvider, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shared.rereading.READ_AGAIN_SECONDS", 0.0)
    file = tmp_path / "access.toml"
    file.write_text(access_by(provider), encoding="utf-8")
    async with serving(database_url, console_access_file=str(file)) as console:
        ann = Visitor(console)
        await ann.sign_in()
        assert "read only" not in (await ann.get("/")).text
        file.write_text(access_by(provider).replace('["operators"]', '["managers"]').replace("watchers", "staff"))
        assert "read only" in (await ann.get("/")).text
        file.write_text(access_by(provider).replace('["operators"]', '["managers"]'))
        assert (await ann.get("/")).status == 403
        # Nobody is let in because the file is gone, or says nothing any more.
        for text in ("", "[oidc", 'url = "https://console.example.com"'):
            file.write_text(text)
            assert (await ann.get("/")).status == 403
            assert (await Visitor(console).get("/")).status == 303
        file.unlink()
        assert (await Visitor(console).get("/")).status == 303
        file.write_text(access_by(provider).replace(provider.url, "https://another.example.com"))
        assert (await ann.get("/")).status == 303


async def test_while_the_database_is_away_who_was_signed_in_sees_what_was_known(
    database_url: str, provider: OpenIdProvider
) -> None:
    async with (
        Proxy(database_url) as wire,
        serving(wire.url, console_access=access_by(provider)) as console,
    ):
        ann = Visitor(console)
        await ann.sign_in()
        page = await ann.get("/")
        word = CSRF.findall(page.text)[0]
        wire.refuse()
        wire.reset()

        async def is_old() -> bool:
            shown = await ann.get("/")
            assert shown.status == 200
            return "The database does not answer" in shown.text

        await until(is_old)
        assert (await ann.post("/sign-out", {"csrf": word})).status == 503
        assert (await Visitor(console).get("/")).status == 303
        stranger = Visitor(console, cookies=ann.cookies | {})
        stranger.cookies["__Host-matins"].set("__Host-matins", "x" * 43, "x" * 43)
        assert (await stranger.get("/")).status == 503


async def test_no_secret_is_written_or_said(
    database_url: str, provider: OpenIdProvider, capsys: pytest.CaptureFixture[str]
) -> None:
    canary = Canary("client")
    secret = "".join(canary.pieces)
    said: list[str] = []
    async with serving(database_url, console_access=access_by(provider, secret=secret)) as console:
        ann = Visitor(console)
        said.append((await ann.get("/sign-in")).text)
        back = await ann.to_provider()
        provider.token_answer = (400, f'{{"error": "no", "error_description": "{secret}"}}'.encode())
        said.append((await ann.get(back)).text)
        provider.token_answer = None
        secrets = {secret, *(one.value for one in ann.cookies.values())}
        await ann.sign_in()
        secrets |= {one.value for one in ann.cookies.values()} | {one["code_verifier"] for one in provider.exchanged}
        secrets |= {one["code"] for one in provider.exchanged}
        said.append((await ann.get("/")).text)
    async with session_on(database_url) as session:
        for table in ("console_session", "console_sign_in", "audit"):
            rows: list[Any] = await session.fetch(f"select to_jsonb(one)::text from matins.{table} one")
            said += [row[0] for row in rows]
    told = "".join(said) + capsys.readouterr().out
    assert "signed_in" in told
    assert [one for one in secrets if one and one in told] == []
