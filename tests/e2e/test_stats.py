"""How runs change, as an operator and a pipeline see it: processes, exit codes, JSON, any terminal."""

import pytest

from tests.e2e.test_command_line import Command, command, modules
from tests.integration.operate.night import nightly
from tests.support.growth import run_nights
from tests.support.ledger import session_on

__all__ = ["command", "modules"]
HOUR = 3600.0
pytestmark = pytest.mark.timeout(240)


async def test_growth_is_drawn_with_the_release_that_came_with_it(command: Command, database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute("insert into matins.environment (name) values ('test')")
        await run_nights(session, nightly(), lambda night: 12 * HOUR + 760 * night)
    settings = {"environment": "test", "database_url": database_url}
    marker = ("deploy-marker", "tax-service", "--version", "9.1", "--at", "2026-08-20T00:00Z", "--actor", "ann")
    marked = command(*marker, "--reason", "new rates", **settings)
    assert (marked.code, marked.out) == (0, "marked: tax-service 9.1 since 2026-08-20 00:00:00Z\n")

    drawn = command("stats", "invoice-run", "--last", "20", **settings)
    assert drawn.code == 0
    assert "and 12m 40s more each day: at this growth the run meets the next one on" in drawn.out
    lines = drawn.out.splitlines()
    place = next(number for number, line in enumerate(lines) if line.endswith("tax-service 9.1, ann: new rates"))
    assert lines[place - 1].startswith("2026-08-19 02:00Z")
    assert lines[place + 1].startswith("2026-08-20 02:00Z")
    assert "\x1b" not in drawn.out, "no colour where nobody looks"

    told = command("stats", "invoice-run", "--json", **settings).json
    assert told["duration"]["trend"]["seconds_per_day"] == pytest.approx(760, abs=1)
    assert len(told["runs"]) == 30
    assert [one["version"] for one in told["changes"]] == ["9.1"]


async def test_what_cannot_be_shown_or_marked_is_refused(command: Command, database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute("insert into matins.environment (name) values ('test')")
        await run_nights(session, nightly(), lambda _: 60.0, count=1)
    settings = {"environment": "test", "database_url": database_url}
    unknown = command("stats", "invoice-rum", **settings)
    assert (unknown.code, "did you mean invoice-run" in unknown.err) == (2, True)
    nameless = command("deploy-marker", " ", "--version", "1", **settings)
    assert (nameless.code, "NAME: give 1 to 100 characters" in nameless.err) == (2, True)
    zoneless = command("deploy-marker", "x", "--version", "1", "--at", "2026-08-20T00:00", **settings)
    assert (zoneless.code, "--at: '2026-08-20T00:00' names no zone" in zoneless.err) == (2, True)
