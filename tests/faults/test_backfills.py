"""Past instants are run while the schedule goes on, whatever dies meanwhile, and can be called off half-way."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.holds import Hold, holding
from tests.support.nights import assert_night, count
from tests.support.processes import Deployment, Service

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

HOUR = timedelta(hours=1)
INSTANTS = 10
ACCOUNTS = 20
JOBS = """
jobs = [nightly("night", PerAccount(effect), page_size=10, schedule=Cron("0 * * * *"))]
"""
DONE = """
create function done() returns bigint language sql security definer as $$
    select count(*) from matins.occurrence where origin = 'backfill' and state = 'succeeded' $$
"""
# The write in which the second page of a backfilled occurrence's accounts is read, when four others are done. A
# trigger's condition may hold no query, but a function.
HALF_WAY = "new.origin = 'backfill' and new.accounts_read > 10 and old.accounts_read = 10 and done() = 4"
STATES = "select state, count(*) as found from matins.occurrence where origin = 'backfill' group by state"


async def ordered(deployed: Deployment, *more: str) -> Any:
    """Order the hours before the night; none of them was ever planned."""
    since, until_instant = deployed.night - INSTANTS * HOUR, deployed.night - HOUR
    return json.loads(
        await deployed.command(
            "backfill",
            "night",
            "--from",
            since.isoformat(),
            "--until",
            until_instant.isoformat(),
            "--reason",
            "the outage",
            "--json",
            *more,
        )
    )


@asynccontextmanager
async def held_half_way(deployed: Deployment, session: Session) -> AsyncIterator[tuple[Hold, Service]]:
    """Have a worker, and a trigger that knows the job and will be held half-way through a backfill."""
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS, fall=False)
    await session.execute(DONE)
    deployed.start("worker")
    async with holding(deployed.database_url, "matins.occurrence", "update", HALF_WAY) as hold:
        trigger = deployed.start("trigger")
        await until(lambda: session.fetchval("select count(*) = 1 from matins.job"))
        yield hold, trigger


async def progress(deployed: Deployment) -> Any:
    (found,) = json.loads(await deployed.command("backfills", "night", "--json"))
    return found


async def test_a_trigger_dies_half_way_the_schedule_goes_on_and_each_instant_runs_once(
    deployed: Deployment, session: Session
) -> None:
    async with held_half_way(deployed, session) as (hold, victim):
        made = await ordered(deployed)
        assert (made["started"], {one["why"] for one in made["instants"]}) == (INSTANTS, {"was never planned"})
        await hold.reached(victim)
        await deployed.fall()
        await hold.crash(victim)
        await hold.let_go()
    for _ in range(2):
        deployed.start("trigger")
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    assert row["origin"] == "schedule", "the night was not skipped for the backfill"
    await until(lambda: session.fetchval("select state = 'done' from matins.backfill"))
    found = await progress(deployed)
    assert (found["total"], found["succeeded"], found["waiting"], found["left_out"]) == (INSTANTS, INSTANTS, 0, 0)
    effects = await session.fetch("select occurrence, count(*) as found from effect group by occurrence")
    assert [one["found"] for one in effects] == [ACCOUNTS] * (INSTANTS + 1)
    assert await count(session, "select count(*) from matins.audit where kind = 'takeover'") == 1
    at_once = """select count(*) from matins.occurrence a join matins.occurrence b on a.id < b.id
                  where a.claimed_at < b.closed_at and b.claimed_at < a.closed_at"""
    assert await count(session, at_once) == 0, "never two at once, under overlap skip"


async def test_called_off_half_way_what_runs_ends_and_what_waits_is_skipped(
    deployed: Deployment, session: Session
) -> None:
    async with held_half_way(deployed, session) as (hold, trigger):
        await ordered(deployed, "--reverse")
        await hold.reached(trigger)
        said = await deployed.command("cancel-backfill", "1", "--reason", "the wrong range")
        assert "backfill 1 of night is cancelled" in said
        await hold.let_go()
    await until(lambda: session.fetchval("select count(*) = 5 from matins.occurrence where state = 'succeeded'"))
    assert {row["state"]: row["found"] for row in await session.fetch(STATES)} == {"succeeded": 5, "skipped": 5}
    latest = await session.fetchval("select min(scheduled_at) from matins.occurrence where state = 'succeeded'")
    assert latest == deployed.night - 5 * HOUR, "the latest went first"
    found = await progress(deployed)
    assert (found["state"], found["succeeded"], found["left_out"]) == ("cancelled", 5, 5)


FAILING_JOBS = """
async def broken(call):
    raise GiveUp("the price list is wrong")

jobs = [nightly("night", PerAccount(broken), schedule=Cron("0 * * * *"), pause_after_failures=3)]
"""


async def test_a_job_that_fails_three_times_in_a_row_is_paused_with_its_backfill(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(FAILING_JOBS)
    await deployed.deploy(2, fall=False)
    deployed.start("worker")
    for _ in range(3):
        await deployed.start("trigger").working()
    await until(lambda: session.fetchval("select count(*) = 1 from matins.job"))
    await ordered(deployed)
    await until(lambda: session.fetchval("select paused_at is not null from matins.job"))
    audit: Any = await session.fetchrow("select actor, reason from matins.audit where kind = 'pause'")
    assert tuple(audit) == (None, "paused after 3 failed in a row")
    assert {row["state"]: row["found"] for row in await session.fetch(STATES)} == {"failed": 3, "expected": 7}
    await deployed.command("cancel-backfill", "1", "--reason", "mend the price list first")
    await deployed.command("resume", "night", "--reason", "it is right now")
    assert await count(session, "select count(*) from matins.audit where kind = 'claim'") == 3
