"""A job moves from one time of the night to another while its fleet is replaced, one instance at a time, across both.

Real processes on a database whose clock is set. Every other order: tests/integration/trigger/test_moves.py.
"""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.nights import count
from tests.support.processes import Service
from tests.support.stepped_clock import Stepped

pytestmark = [pytest.mark.drill, pytest.mark.timeout(240)]

ACCOUNTS = 3
DAY = timedelta(days=1)
FIRST = datetime(2027, 3, 1, tzinfo=UTC)
JOBS = """
jobs = [nightly("night", PerAccount(effect), schedule=Cron("{minute} 2 * * *"))]
"""
BEFORE, AT_THE_FIRST, BETWEEN, AT_THE_SECOND, AFTER = MOMENTS = (
    "01:50:00",
    "01:59:58",
    "02:15:00",
    "02:29:58",
    "02:40:00",
)
# When the one and the other instance are replaced, night by night; from 02:00 to 02:30 and back by turns.
NIGHTS = {
    "killed": [(AT_THE_FIRST, AT_THE_SECOND), (BEFORE, BETWEEN), (BETWEEN, AFTER)],
    "stopped": [(BETWEEN, AFTER), (BEFORE, AFTER), (AT_THE_FIRST, BETWEEN)],
    "started first": [(AT_THE_FIRST, BETWEEN), (AT_THE_SECOND, AFTER), (AT_THE_FIRST, AT_THE_SECOND)],
}


def at(day: datetime, clock: str) -> datetime:
    hours, minutes, seconds = (int(part) for part in clock.split(":"))
    return day + timedelta(hours=hours, minutes=minutes, seconds=seconds)


async def replaced(stepped: Stepped, old: Service, module: str, how: str) -> Service:
    """Put a process with the other definition in the place of one."""
    if how == "started first":
        new = stepped.deployed.start("trigger", jobs=module)
        await new.logged("job registered")
        old.terminate()
        assert await old.ended() == 0
        return new
    if how == "killed":
        old.kill()
    else:
        old.terminate()
        await old.ended()
    return await stepped.deployed.start("trigger", jobs=module).working()


@pytest.mark.parametrize("how", NIGHTS)
async def test_a_deploy_one_by_one_across_both_times_runs_once_a_night(stepped: Stepped, how: str) -> None:
    deployed = stepped.deployed
    deployed.declare(JOBS.replace("{minute}", "0"))
    modules = [deployed.declare_beside(minute, JOBS.replace("{minute}", minute)) for minute in ("0", "30")]
    await deployed.deploy(ACCOUNTS, fall=False)
    stepped.server.set_clock(at(FIRST - DAY, "12:00:00"))
    fleet = [deployed.start("trigger", jobs=modules[0]) for _ in range(2)]
    for service in (*fleet, deployed.start("worker")):
        await service.working()
    for number, moments in enumerate(NIGHTS[how]):
        night, module = FIRST + number * DAY, modules[(number + 1) % 2]
        for moment in MOMENTS:
            await stepped.pass_to(at(night, moment))
            if moment in moments:
                place = moments.index(moment)
                fleet[place] = await replaced(stepped, fleet[place], module, how)
                if moment in {AT_THE_FIRST, AT_THE_SECOND}:
                    await stepped.cross(at(night, moment) + timedelta(seconds=3))
                await stepped.decided()
        await stepped.pass_to(at(night, "12:00:00"))
        ran = [instant for instant in await stepped.ran("night") if night <= instant < night + DAY]
        assert len(ran) == 1, (number, ran, await stepped.ends("night", night, night + DAY))
        assert ran[0] in (at(night, "02:00:00"), at(night, "02:30:00"))
    closed = "select count(*) from matins.occurrence where state = 'succeeded'"
    assert await count(stepped.session, closed) == len(NIGHTS[how])
    twice = "select count(*) from (select from effect group by account, occurrence having count(*) > 1) twice"
    assert await count(stepped.session, twice) == 0
    assert await count(stepped.session, "select count(*) from effect") == ACCOUNTS * len(NIGHTS[how])
