"""The forms in a real browser: they fit, keep nobody out, and are sent by keyboard, with scripts and without."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest
from playwright.async_api import Page, expect

from examples.servers.ports import free_ports
from tests.console.browser import WIDTHS, Reader, faults_of, reader, running_browser
from tests.console.night import JOB, make_night
from tests.console.serving import Served, serving
from tests.support.ledger import session_on

pytestmark = pytest.mark.timeout(300)

ANN: Final = {"X-User": "ann@example.com", "X-Groups": "operators"}


@asynccontextmanager
async def operated(database_url: str) -> AsyncIterator[tuple[Served, str]]:
    """Have a console at night that a proxy of this machine signs people in to, and the name of what failed."""
    async with session_on(database_url) as session:
        occurrence = await make_night(session)
    (port,) = free_ports(1)
    access = (
        f'url = "http://127.0.0.1:{port}"\n[proxy]\ntrusted = ["127.0.0.1"]\nname_header = "X-User"\n'
        'groups_header = "X-Groups"\noperate = ["operators"]\nread = ["watchers"]\n'
        '[oidc]\nissuer = "https://accounts.example.com"\nclient_id = "matins"\nread = "everyone"\n'
    )
    async with serving(database_url, console_access=access, console_address=f"127.0.0.1:{port}") as console:
        yield console, occurrence


async def refused_silence(page: Page) -> None:
    await page.locator("summary", has_text="Silence").click()
    form = page.locator("details[open] form")
    await form.get_by_label("Why").fill("known")
    await form.get_by_role("button").click()


async def asked_to_retire(page: Page) -> None:
    await page.locator("summary", has_text="Retire").click()
    form = page.locator("details[open] form")
    await form.get_by_label("Why").fill("it moved")
    await form.get_by_role("button").click()


async def all_open(page: Page) -> None:
    for one in await page.locator("details.act summary").all():
        await one.click()


PAGES: Final[dict[str, tuple[str, Any]]] = {
    "a job's forms": ("/jobs/{job}", all_open),
    "an occurrence's forms": ("/occurrences/{occurrence}", all_open),
    "an alert's forms": ("/alerts/1", all_open),
    "what is refused": ("/alerts/1", refused_silence),
    "what is asked": ("/jobs/job-2", asked_to_retire),
    "the way in": ("/sign-in", None),
}


@pytest.mark.parametrize("page", PAGES)
async def test_forms_fit_are_valid_and_keep_nobody_out(database_url: str, page: str) -> None:
    path, act = PAGES[page]
    async with operated(database_url) as (console, occurrence), running_browser() as browser:
        headers = ANN if act else {}
        async with reader(browser, console.address, bypass_csp=True, extra_http_headers=headers) as one:
            await one.open(path.format(job=JOB, occurrence=occurrence))
            if act is not None:
                await act(one.page)
            assert faults_of(await one.page.content()) == []
            for dark in (False, True):
                await one.page.emulate_media(color_scheme="dark" if dark else "light")
                for width in WIDTHS:
                    await one.page.set_viewport_size({"width": width, "height": 900})
                    assert await one.too_wide() == [], width
                assert await one.shut_out() == [], dark


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_a_job_is_retired_by_keyboard_alone(database_url: str, *, scripts: bool) -> None:
    async with (
        operated(database_url) as (console, _),
        running_browser() as browser,
        reader(browser, console.address, extra_http_headers=ANN, java_script_enabled=scripts) as one,
    ):
        page = await one.open("/jobs/job-2")
        await press_until(one, lambda: page.locator("summary", has_text="Retire"))
        await page.keyboard.press("Enter")
        await press_until(one, lambda: page.locator("details[open] input[name=reason]"))
        await page.keyboard.type("it moved to another house")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("Retire: job-2")
        await press_until(one, lambda: page.get_by_role("button", name="Yes: retire"))
        await page.keyboard.press("Enter")
        await expect(page.locator(".banner.good")).to_contain_text("job-2 is retired")
        await expect(page.get_by_role("heading", level=1)).to_contain_text("job-2")
        assert one.complaints == []
    async with session_on(database_url) as session:
        told: Any = await session.fetchrow("select actor, reason from matins.audit where kind = 'retire'")
    assert tuple(told) == ("ann@example.com", "it moved to another house")


async def test_a_form_that_is_being_filled_in_is_not_taken_away(database_url: str) -> None:
    async with (
        operated(database_url) as (console, _),
        running_browser() as browser,
        reader(browser, console.address, extra_http_headers=ANN) as one,
    ):
        page = await one.open("/jobs/job-2")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url) if "/jobs/" in request.url else None)
        await page.locator("summary", has_text="Pause").click()
        why = page.locator("details[open] input[name=reason]")
        await why.fill("half a sentence")
        await page.get_by_role("heading", level=1).click()
        # A page refreshes itself when it is looked at again: it would now.
        looked_at = "document.dispatchEvent(new Event('visibilitychange'))"
        await page.evaluate(looked_at)
        await expect(why).to_have_value("half a sentence")
        assert asked == []
        await page.locator("details[open] summary").click()
        async with page.expect_request(lambda request: request.url.endswith("/jobs/job-2")):
            await page.evaluate(looked_at)


async def press_until(one: Reader, wanted: Any) -> None:
    """Press Tab until the focus is where it is wanted."""
    for _ in range(200):
        await one.page.keyboard.press("Tab")
        if await wanted().evaluate("node => node === document.activeElement"):
            return
    raise AssertionError("the keyboard does not lead there")
