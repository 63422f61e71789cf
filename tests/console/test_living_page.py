"""A page that stays open: it refreshes itself, keeps what its reader does, and says what it no longer sees."""

from typing import Final

import pytest
from playwright.async_api import expect

from tests.console.browser import reader, running_browser
from tests.console.night import JOB, make_night
from tests.console.serving import serving
from tests.support.ledger import session_on
from tests.support.proxy import Proxy

pytestmark = pytest.mark.timeout(180)

# What a refresh, every five seconds, may take on a busy machine, in milliseconds.
SOON: Final = 60_000
REACHABLE: Final = "a[href], button, input, select, summary, [tabindex='0']"


async def test_it_shows_what_has_changed_without_losing_what_its_reader_did(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
        async with (
            serving(database_url) as console,
            running_browser() as browser,
            reader(browser, console.address) as one,
        ):
            page = await one.open("/")
            await page.get_by_text("What the letters mean").click()
            await page.get_by_role("link", name=JOB, exact=True).focus()
            done = page.locator(".progress", has_text=JOB)
            await expect(done).to_contain_text("19 of 68")
            await session.execute(
                """update matins.ledger l set state = 'succeeded', finished_at = clock_timestamp()
                     from matins.occurrence o
                    where o.id = l.occurrence_id and o.state = 'running' and l.position < 31"""
            )
            await expect(done).to_contain_text("30 of 68", timeout=SOON)
            assert await page.locator("details.legend").get_attribute("open") is not None
            assert await page.evaluate("document.activeElement.textContent") == JOB
            assert one.complaints == []


async def test_what_its_reader_writes_is_left_alone(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
    async with serving(database_url) as console, running_browser() as browser, reader(browser, console.address) as one:
        page = await one.open("/")
        await page.get_by_label("Name").fill("invo")
        async with page.expect_request(lambda asked: "attention" in asked.url, timeout=SOON):
            await page.get_by_label("Show").select_option("attention")
            await page.get_by_role("button", name="Show").click()
        await expect(page.get_by_label("Name")).to_have_value("invo")
        await expect(page.get_by_role("heading", name="Jobs")).to_contain_text("1")


async def test_while_the_database_is_away_it_shows_what_was_known_and_says_since_when(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
    async with (
        Proxy(database_url) as wire,
        serving(wire.url) as console,
        running_browser() as browser,
        reader(browser, console.address) as one,
    ):
        page = await one.open("/")
        wire.refuse()
        wire.reset()
        away = page.get_by_text("The database does not answer.")
        await expect(away).to_be_visible(timeout=SOON)
        await expect(page.locator("main")).to_contain_text("This is what was known at")
        await expect(page.get_by_role("link", name=JOB, exact=True)).to_be_visible()
        other = await console.get("/?show=stopped")
        assert other.status == 503
        assert "Nothing is known of this page from before" in other.text
        await wire.accept()
        await expect(away).to_be_hidden(timeout=SOON)
        assert (await console.get("/?show=stopped")).status == 200


async def test_a_database_that_is_frozen_makes_no_page_wait_for_long(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
    async with Proxy(database_url) as wire, serving(wire.url) as console:
        assert (await console.get("/")).status == 200
        wire.hold()
        known = await console.get("/")
        assert known.status == 200
        assert JOB in known.text
        # Whoever waits for what nobody knows is told after five seconds; the client gives up after thirty.
        assert (await console.get("/?show=running")).status == 503
        wire.heal()


async def test_without_the_broker_it_goes_on_and_says_so(database_url: str, broker_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
    async with Proxy(broker_url) as wire, serving(database_url, wire.url) as console:
        wire.refuse()
        answer = await console.get("/")
    assert answer.status == 200
    assert "RabbitMQ does not answer" in answer.text
    assert JOB in answer.text


async def test_when_the_console_is_gone_an_open_page_says_since_when_it_is_not_refreshed(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
    async with serving(database_url) as console, running_browser() as browser, reader(browser, console.address) as one:
        page = await one.open("/")
        await page.route("**/*", lambda route: route.abort("connectionrefused"))
        gone = page.locator("#unrefreshed")
        await expect(gone).to_contain_text("Not refreshed since", timeout=SOON)
        await expect(gone).to_contain_text("the console does not answer")
        await expect(page.get_by_role("link", name=JOB, exact=True)).to_be_visible()
        await page.unroute("**/*")
        await expect(gone).to_be_hidden(timeout=SOON)


async def test_everything_is_reached_and_seen_with_the_keyboard_alone(database_url: str) -> None:
    async with session_on(database_url) as session:
        await make_night(session)
    async with serving(database_url) as console, running_browser() as browser, reader(browser, console.address) as one:
        page = await one.open("/")
        reachable = await page.locator(f":is({REACHABLE}):visible").count()
        seen: list[str] = []
        for _ in range(reachable):
            await page.keyboard.press("Tab")
            seen.append(
                await page.evaluate(
                    """() => { const one = document.activeElement; const style = getComputedStyle(one);
                       const at = [...document.querySelectorAll('*')].indexOf(one);
                       return style.outlineStyle === 'none' ? `no outline: ${one.outerHTML.slice(0, 80)}` : `${at}` }"""
                )
            )
        assert [one for one in seen if one.startswith("no outline")] == []
        assert len(set(seen)) == reachable
        await page.goto(console.address)
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"
