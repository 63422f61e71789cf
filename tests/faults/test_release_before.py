"""An earlier release, as it was, works on today's schema with today's rights: alone, and beside this release."""

from pathlib import Path

import pytest

from shared.migrate import migrations
from shared.postgres import Session
from tests.faults.test_releases import JOBS, drain, go_through
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.processes import ROOT, Deployment, Service
from tests.support.releases import release_before

pytestmark = [pytest.mark.drill, pytest.mark.timeout(240)]

ACCOUNTS = 250


async def start(deployed: Deployment, root: Path) -> list[Service]:
    """Start a trigger and a worker of a release at once, and wait until both work."""
    deployed.root = root
    started = [deployed.start(kind, in_flight="40", delays="1,2") for kind in ("trigger", "worker")]
    return [await service.working() for service in started]


async def test_the_release_before_works_alone_and_beside_this_one(deployed: Deployment, session: Session) -> None:
    deployed.settings["delays"] = "1,2"
    # Whoever waits at the gate waits for processes to start.
    deployed.declare(JOBS.replace("timeout=minutes(1)", "timeout=minutes(10)"))
    await deployed.deploy(ACCOUNTS)
    await session.execute("create table gate (through integer not null); insert into gate values (0)")
    await session.execute("grant select on gate to public")
    before = release_before(deployed.folder)
    assert len(list((before / "schemas" / "migrations").iterdir())) < len(migrations()), "today's schema is ahead"

    old_trigger, old_worker = await start(deployed, before)
    await go_through(session, deployed, 50, old_worker)
    new_trigger, new_worker = await start(deployed, ROOT)
    await go_through(session, deployed, 130, old_worker, new_worker)
    # What today's trigger publishes the earlier worker reads.
    await drain(old_trigger, new_worker)
    await go_through(session, deployed, 180, old_worker)
    # And back: the earlier trigger takes the night over, and its worker ends it.
    _, other_worker = await start(deployed, before)
    await drain(new_trigger)
    await go_through(session, deployed, ACCOUNTS, old_worker, other_worker)
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert row["dead"] == row["failed"] == 0
    assert await count(session, "select count(*) from matins.ledger where attempts <> 1") == 0
