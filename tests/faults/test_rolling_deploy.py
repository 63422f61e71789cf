"""All instances are replaced in the minute in which the night is due: it is claimed once, and goes on where it was."""

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import SLOW_SOURCE_JOBS, assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]


async def test_three_old_and_three_new_triggers_at_the_due_minute(deployed: Deployment, session: Session) -> None:
    deployed.declare(SLOW_SOURCE_JOBS)
    await deployed.deploy(0, fall=False)
    old, new = ([deployed.start("trigger") for _ in range(3)] for _ in range(2))
    leaving = deployed.start("worker")
    deployed.start("worker")
    for service in (*old, *new, leaving):
        await service.working()
    await until(lambda: session.fetchval("select count(*) = 6 from matins.instance where kind = 'trigger'"))
    await deployed.fall()

    async def under_way() -> bool:
        return bool((await occurrence_of(session, deployed, "night"))["accounts_read"] >= 10)

    await until(under_way)
    for service in (*old, leaving):
        service.terminate()
    assert [await service.ended() for service in (*old, leaving)] == [0] * 4, "drained within the grace period"
    row = await assert_night(session, deployed, "night", 100)
    await assert_one_effect_each(session, row, 100)
    assert await count(session, "select count(*) from matins.attempt where won") == 1
    assert 3 <= await count(session, "select count(*) from matins.attempt") <= 6, "each at most once"
    assert await count(session, "select count(*) from matins.ledger where attempts <> 1") == 0
