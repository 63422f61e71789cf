"""`python -m examples.billing.pictures FOLDER`: the README's pictures of the console, taken during a demo's night.

The night is the demo's, with its kills. The forty nights before it are made up, so that there is a past to see.
"""

import argparse
import asyncio
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from playwright.async_api import Page, async_playwright

from examples.billing.demo.fleet import Fleet
from examples.billing.demo.night import last_night
from examples.billing.demo.place import fresh_place, session_on
from examples.billing.demo.screen import Screen, until
from examples.billing.demo.story import Story
from examples.servers.find import running_servers
from examples.servers.installer import find_chromium
from shared.postgres import Session

ACCOUNTS: Final = 2000
SIZE: Final = {"width": 1280, "height": 800}
SCHEMES: Final = ("light", "dark")
WATCH_SECONDS: Final = 90.0
JOB: Final = "invoice-run"
# Nights that grow by some seconds each, one of which failed in part and one that nobody was there for.
PAST: Final = """
insert into matins.occurrence (job, scheduled_at, due_at, state, reason, revision, window_since, window_until,
    tzdata_version, claimed_by, claimed_at, opened_at, sealed_at, closed_at, accounts_read, total, succeeded, failed,
    dead, cancelled, report)
select j.name, due.at, due.at,
       case when gone then 'missed' when bad then 'partial' else 'succeeded' end,
       case when gone then 'not claimed within catch_up_within' end,
       j.revision, due.at - interval '1 day', due.at, 'made',
       case when not gone then 'made up' end, case when not gone then due.at + interval '1 second' end,
       case when not gone then due.at + interval '1 second' end,
       case when not gone then due.at + interval '9 seconds' end,
       case when not gone then due.at + (2400 - nights.ago * 40 + (nights.ago * 7919) % 97) * interval '1 second' end,
       case when gone then 0 else 1800 end, case when not gone then 1800 end,
       case when not gone then 1800 - case when bad then 6 else 0 end end,
       case when not gone then case when bad then 6 else 0 end end, case when not gone then 0 end,
       case when not gone then 0 end, case when not gone then '{"error_classes": []}'::jsonb end
  from matins.job j
 cross join generate_series(1, 40) nights (ago)
 cross join lateral (select $1::timestamptz - nights.ago * interval '1 day' as at,
                            nights.ago = 6 and j.name = 'charge' as gone, nights.ago % 13 = 4 as bad) due
    on conflict do nothing"""


@asynccontextmanager
async def window(scheme: str) -> AsyncIterator[Page]:
    """Have a browser's window meanwhile, `light` or `dark`."""
    async with async_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
        browser = await playwright.chromium.launch(executable_path=find_chromium(), args=arguments)
        try:
            context = await browser.new_context(viewport=SIZE, color_scheme="dark" if scheme == "dark" else "light")  # type: ignore[arg-type] # a dictionary that only looks like its type
            yield await context.new_page()
        finally:
            await browser.close()


async def take(folder: Path, address: str, pictures: dict[str, str]) -> None:
    """Take a picture of each path, in light and in dark, as NAME-SCHEME.png; behind a # stands what of the page."""
    for scheme in SCHEMES:
        async with window(scheme) as page:
            for name, path in pictures.items():
                place, _, part = path.partition("#")
                await page.goto(address + place)
                shown = page.locator(f"section:has(> #{part})") if part else page
                await shown.screenshot(path=folder / f"{name}-{scheme}.png", animations="disabled")


async def tell(folder: Path, database_url: str, story: Story, session: Session) -> None:
    """Let the night happen, and take pictures in the middle of it and after it."""
    await story.deploy()
    await story.start()
    await session.execute(PAST, story.night)
    await story.fall_and_kill_a_trigger()
    await take(folder, story.console, {"tonight": "/"})
    await story.kill_a_worker_and_wait()

    night = story.expected.name(JOB)

    async def alerted() -> bool:
        async with session_on(database_url) as other:
            return bool(await other.fetchval("select count(*) from matins.alert where subject = $1", night))

    await until("the watch to open its alerts", alerted, WATCH_SECONDS)
    growth, occurrence = f"/jobs/{JOB}#runs", f"/occurrences/{night}"
    await take(folder, story.console, {"growth": growth, "occurrence": occurrence, "fleet": "/fleet"})
    await story.end()


async def run(folder: Path) -> None:
    """Take all pictures."""
    with running_servers(install_missing=True) as servers:
        async with fresh_place(servers) as place, session_on(place.database_url) as session:
            with tempfile.TemporaryDirectory(prefix="matins-pictures-") as name:
                night = await last_night(session)
                with Fleet(place, Path(name), f"0 {night.hour} * * *") as fleet:
                    story = Story(Screen(), place, session, fleet, night, ACCOUNTS)
                    await tell(folder, place.database_url, story, session)


def main(given: list[str]) -> int:
    """Take the pictures; give the exit code."""
    parser = argparse.ArgumentParser(prog="python -m examples.billing.pictures", description=__doc__)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    folder: Path = parser.parse_args(given).folder
    folder.mkdir(parents=True, exist_ok=True)
    asyncio.run(run(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
