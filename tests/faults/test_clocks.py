"""Machines whose clocks are hours off: the database's clock alone decides what is due, and the skew is told."""

from datetime import timedelta

import pytest

from examples.servers.installer import find_faketime
from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 30
# Due within the next two hours: a clock that is two hours ahead takes it for due.
JOBS = """
jobs = [
    nightly("night", PerAccount(effect)),
    nightly("later", PerAccount(effect), schedule=Cron("0 {later} * * *")),
]
"""


def off_by(offset: str) -> dict[str, str]:
    """Give the variables of a process whose clock is off, and whose waits are as long as ever."""
    library = find_faketime()
    assert library is not None, "this drill needs libfaketime: apt-get install faketime"
    return {"LD_PRELOAD": str(library), "FAKETIME": offset, "FAKETIME_DONT_FAKE_MONOTONIC": "1"}


async def test_clocks_that_are_off_claim_nothing_early_and_nothing_twice(
    deployed: Deployment, session: Session
) -> None:
    later = deployed.night + timedelta(hours=2)
    deployed.declare(JOBS.replace("{later}", str(later.hour)))
    await deployed.deploy(ACCOUNTS, fall=False)
    deployed.settings["watch_interval"] = "500ms"
    for kind, offset in (("trigger", "-0.7s"), ("trigger", "-2h"), ("trigger", "+2h"), ("worker", "+2h")):
        deployed.others = off_by(offset)
        deployed.start(kind)
    for service in deployed.services:
        await service.working()
    await until(lambda: session.fetchval("select count(*) = 2 from matins.job"))
    await deployed.fall()
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert row["scheduled_at"] == deployed.night
    attempts = "select count(*) from matins.attempt where job = 'night'"
    await until(lambda: session.fetchval(f"select ({attempts}) = 3"))
    assert await count(session, "select count(*) from matins.attempt where job = 'later'") == 0
    early = "select state from matins.occurrence where job = 'later' and scheduled_at = $1"
    assert await session.fetchval(early, later) == "expected"
    skewed = "select count(*) from matins.audit where abs(extract(epoch from clock_timestamp() - at)) > 600"
    assert await count(session, skewed) == 0, "every time that was written is the database's"
    doctor = deployed.start("trigger", "doctor")
    assert await doctor.ended() == 2
    assert "ahead of the database's" in doctor.log.read_text()
    skewed = "select count(*) = 3 from matins.alert where kind = 'clock_skew' and closed_at is null"
    await until(lambda: session.fetchval(skewed))
