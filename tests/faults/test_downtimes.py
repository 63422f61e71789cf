"""A fleet is down for a day or for 112 minutes and comes back with a moved schedule: what fell due ends as was decided.

Real processes on a database whose clock the test sets; the instants are those of tests/cases.
"""

import json
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support.processes import Service
from tests.support.stepped_clock import Stepped

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

CASES = {case["id"]: case for case in json.loads(Path("tests/cases/time_cases.json").read_text("utf-8"))}
SECOND = timedelta(seconds=1)
PACE = timedelta(seconds=0.3)
JOBS = """
def caught(name, cron, catch_up, **more):
    kept = dict(catch_up=catch_up, catch_up_within=hours(48), overlap="skip", start_within=seconds(1),
                finish_within=hours(3))
    return nightly(name, PerAccount(effect), schedule=Cron(cron), queue="shared", decisions=Decisions(**kept | more))

jobs = [
    caught("hourly", "0 * * * *", "all", catch_up_at_most=1000, catch_up_pace=seconds(0.3)),
    caught("latest", "{cron}", "latest"),
    caught("skip", "{cron}", "skip"),
]
"""
IN_ORDER = (
    "select scheduled_at, claimed_at from matins.occurrence where job = 'hourly' and claimed_at is not null order by 2"
)


async def started(stepped: Stepped, module: str) -> list[Service]:
    """Start a worker and a trigger, and wait until every job is known to them."""
    services = [stepped.deployed.start(kind, jobs=module) for kind in ("worker", "trigger")]
    for service in services:
        await service.working()
    for job in ("hourly", "latest", "skip"):
        await services[-1].logged("job registered", job=job)
    return services


@pytest.mark.parametrize(
    ("case", "moved", "following"),
    [("M03-01", "*/10 * * * *", timedelta(minutes=10)), ("M03-03", "*/2 * * * *", timedelta(minutes=2))],
)
async def test_what_fell_due_while_nobody_ran_ends_as_was_decided_and_the_schedule_goes_on(
    stepped: Stepped, case: str, moved: str, following: timedelta
) -> None:
    deployed, cron = stepped.deployed, CASES[case]["cron"]
    instants = [datetime.fromisoformat(text) for text in CASES[case]["expected_utc"]]
    last = instants[-1]
    deployed.declare(JOBS.replace("{cron}", cron))
    after = deployed.declare_beside("after", JOBS.replace("{cron}", moved))
    await deployed.deploy(1, fall=False)
    stepped.server.set_clock(instants[0] - 55 * SECOND)
    services = await started(stepped, deployed.module)
    await stepped.decided()
    # However long they took to start, they are gone before the first of these is due.
    stepped.server.set_clock(instants[0] - 55 * SECOND)
    for service in services:
        service.terminate()
    assert [await service.ended() for service in services] == [0, 0]

    stepped.server.set_clock(last + 3 * SECOND)
    await started(stepped, after)
    await stepped.decided()
    assert await stepped.ran("latest") == [last]
    assert await stepped.ends("latest", instants[0], last + SECOND) == {"coalesced": len(instants) - 1, "succeeded": 1}
    assert await stepped.ran("skip") == []
    assert await stepped.ends("skip", instants[0], last + SECOND) == {"skipped: catch_up": len(instants)}
    caught_up = await stepped.session.fetch(IN_ORDER)
    assert [row["scheduled_at"] for row in caught_up] == [one for one in instants if one.minute == 0], (
        "the oldest first"
    )
    times = [row["claimed_at"] for row in caught_up]
    assert all(later - earlier >= PACE for earlier, later in pairwise(times)), "no faster than the pace"

    await stepped.pass_to(last + following)
    assert await stepped.ran("latest") == [last, last + following]
