"""The minute falls while nobody runs, or the database's clock is set: each instant has one row, and late is late once.

Real processes on a database whose clock the test sets.
"""

from datetime import UTC, datetime, timedelta

import orjson
import pytest

from tests.support.processes import Service
from tests.support.stepped_clock import Stepped

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

ACCOUNTS = 2
MINUTE = timedelta(minutes=1)
EVERY_MINUTE = """
kept = Decisions(
    catch_up="latest", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(30))
jobs = [nightly("minutely", PerAccount(effect), schedule=Cron("* * * * *"), decisions=kept)]
"""


async def started(stepped: Stepped, jobs: str, now: datetime) -> Service:
    """Deploy jobs at an instant, with a worker; give the trigger."""
    stepped.deployed.declare(jobs)
    await stepped.deployed.deploy(ACCOUNTS, fall=False)
    stepped.server.set_clock(now)
    await stepped.deployed.start("worker").working()
    trigger = await stepped.deployed.start("trigger").working()
    await trigger.logged("job registered")
    await stepped.decided()
    return trigger


async def ended(*services: Service) -> None:
    for service in services:
        service.terminate()
    assert [await service.ended() for service in services] == [0] * len(services)


async def test_a_restart_over_the_due_minute_is_late_once_and_its_lag_is_told(stepped: Stepped) -> None:
    due = datetime(2027, 3, 2, 2, tzinfo=UTC)
    nightly = EVERY_MINUTE.replace("* * * * *", "0 2 * * *").replace("minutely", "night")
    trigger = await started(stepped, nightly, due - 10 * MINUTE)
    stepped.server.set_clock(due - timedelta(seconds=5))
    await ended(trigger)
    await stepped.cross(due)
    stepped.server.set_clock(due + timedelta(seconds=40))
    await stepped.deployed.start("trigger").working()
    await stepped.decided()
    assert await stepped.ran("night") == [due]
    said = orjson.loads(await stepped.deployed.command("show", "night:2027-03-02T02:00Z", "--json"))
    lag = datetime.fromisoformat(said["claimed_at"]) - datetime.fromisoformat(said["scheduled_at"])
    assert timedelta(seconds=40) <= lag < 2 * MINUTE
    assert [one["won"] for one in said["attempts"]] == [True]


async def test_the_clock_is_set_back_and_forth_and_each_minute_has_one_row(stepped: Stepped) -> None:
    at_two = datetime(2027, 3, 2, 2, tzinfo=UTC)
    trigger = await started(stepped, EVERY_MINUTE, at_two - MINUTE / 2)
    await stepped.pass_to(at_two + timedelta(seconds=5))
    await stepped.pass_to(at_two + timedelta(seconds=65))
    assert await stepped.ran("minutely") == [at_two, at_two + MINUTE]
    stepped.server.set_clock(at_two - 9 * MINUTE)
    back = await trigger.logged("the database's clock was set")
    while back["seconds"] > 0:
        back = await trigger.logged("the database's clock was set", seconds=min(_steps(trigger)))
    await stepped.beaten(trigger)
    assert await stepped.ran("minutely") == [at_two, at_two + MINUTE], "nothing is due, or it was run"
    await stepped.pass_to(at_two + 3 * MINUTE + timedelta(seconds=1))
    assert await stepped.ran("minutely") == [at_two, at_two + MINUTE, at_two + 3 * MINUTE]
    day_on = at_two + timedelta(days=1, minutes=3)
    await stepped.pass_to(day_on + timedelta(seconds=1))
    assert (await stepped.ran("minutely"))[3:] == [day_on], "no storm: what was due goes into one"
    found = await stepped.ends("minutely", at_two, day_on + MINUTE / 2)
    assert sum(found.values()) == 24 * 60 + 4, "each minute has one row"
    assert found.pop("succeeded") == 4
    assert set(found) == {"coalesced", "missed: not claimed within catch_up_within"}


def _steps(trigger: Service) -> list[float]:
    return [line["seconds"] for line in trigger.lines("the database's clock was set")]
