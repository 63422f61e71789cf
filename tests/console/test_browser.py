"""Each page in a real browser: it fits, it complains of nothing, it keeps nobody out, and shows text as text."""

from typing import Final

import pytest

from tests.console.browser import WIDTHS, faults_of, reader, running_browser
from tests.console.night import JOB, make_night, make_thousand
from tests.console.serving import serving
from tests.support.ledger import session_on

# Some twenty pages, each in three widths and two colours.
pytestmark = pytest.mark.timeout(600)

EMPTY: Final = (
    "/",
    "/?show=attention",
    "/?q=nothing",
    "/nowhere",
    "/alerts",
    "/alerts?show=all",
    "/audit",
    "/audit?job=x",
    "/fleet",
)
NIGHT: Final = (
    "/",
    "/?show=all&q=run",
    "/jobs/{job}",
    "/jobs/{job}?before=2020-01-01T00:00Z",
    "/jobs/job-1?runs=30",
    "/jobs/none",
    "/occurrences/{occurrence}",
    "/occurrences/{occurrence}/accounts",
    "/occurrences/{occurrence}/accounts?state=dead&q=a",
    "/occurrences/{occurrence}/account?id=a00008",
    "/occurrences/{occurrence}/account?id=nobody",
    "/nowhere",
    "/alerts",
    "/alerts/1",
    "/alerts/2",
    "/audit",
    "/audit?kind=rerun",
    "/fleet",
)
MANY: Final = ("/?page=10", "/jobs/job-1")


async def _made(database_url: str, kind: str) -> str:
    async with session_on(database_url) as session:
        if kind == "many":
            await make_thousand(session)
        elif kind == "night":
            return await make_night(session)
    return ""


def _paths(kind: str, occurrence: str) -> list[str]:
    paths = {"empty": EMPTY, "night": NIGHT, "many": MANY}[kind]
    return [path.format(job=JOB, occurrence=occurrence) for path in paths]


@pytest.mark.parametrize("kind", ["empty", "night", "many"])
async def test_every_page_fits_is_valid_and_keeps_nobody_out(database_url: str, kind: str) -> None:
    occurrence = await _made(database_url, kind)
    async with serving(database_url) as console, running_browser() as browser:
        for path in _paths(kind, occurrence):
            assert faults_of((await console.get(path)).text) == [], path
            async with reader(browser, console.address, bypass_csp=True) as one:
                await one.open(path)
                for dark in (False, True):
                    await one.page.emulate_media(color_scheme="dark" if dark else "light")
                    for width in WIDTHS:
                        await one.page.set_viewport_size({"width": width, "height": 900})
                        assert await one.too_wide() == [], (path, width)
                    if kind == "many":
                        # The same pieces as those of a night, ten thousand of them.
                        continue
                    # Colours are judged in both, on a wide page and on a narrow one.
                    await one.page.set_viewport_size({"width": WIDTHS[0] if dark else WIDTHS[1], "height": 900})
                    assert await one.shut_out() == [], (path, dark)


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
async def test_what_text_holds_is_shown_and_not_done(database_url: str, *, scripts: bool) -> None:
    occurrence = await _made(database_url, "night")
    async with (
        serving(database_url) as console,
        running_browser() as browser,
        reader(browser, console.address, java_script_enabled=scripts) as one,
    ):
        for path in _paths("night", occurrence):
            await one.open(path)
            assert "owned" not in await one.page.title()
            assert await one.page.locator("main script, main img, main iframe").count() == 0
            assert [told for told in one.complaints if "404" not in told] == [], path
