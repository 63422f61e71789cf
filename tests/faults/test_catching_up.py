"""A fleet that was down when something was due, with real processes."""

import pytest

from shared.postgres import Session
from tests.support.nights import assert_night, assert_one_effect_each
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]


async def test_a_fleet_that_restarts_over_the_due_second_claims_late_once_and_says_how_late(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare("jobs = [nightly('night', PerAccount(effect))]")
    await deployed.deploy(50, fall=False)
    first = await deployed.start("trigger").working()
    await first.logged("job registered")
    first.terminate()
    assert await first.ended() == 0
    await deployed.fall()
    triggers = [deployed.start("trigger"), deployed.start("trigger")]
    deployed.start("worker")
    row = await assert_night(session, deployed, "night", 50)
    await assert_one_effect_each(session, row, 50)
    [told] = [line for trigger in triggers for line in trigger.lines("claimed")]
    lag = (row["claimed_at"] - row["scheduled_at"]).total_seconds()
    assert told["lag_seconds"] == round(lag, 3)
    assert lag > 1
