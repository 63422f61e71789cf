"""Alerts are silenced and acknowledged by commands while processes look, tell again and close."""

import json
from typing import Any

import pytest

from shared.postgres import Session
from tests.faults.test_watch import ACCOUNTS, NIGHT, WATCHFUL, declared, looked_at, opened, told
from tests.support.fleet import until
from tests.support.nights import assert_night
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

REPEAT = {"alert_repeat": "1s"}
# More looks, a fifth of a second apart, than two repeats take.
LOOKS = 12


async def test_orders_are_followed_by_a_fleet_that_tells_again_each_second(
    deployed: Deployment, session: Session
) -> None:
    deployed.settings |= WATCHFUL | REPEAT
    deployed.declare(declared(NIGHT))
    await deployed.deploy(ACCOUNTS, fall=False)
    trigger = await deployed.start("trigger").working()
    for _ in range(2):
        await deployed.start("worker").working()
    trigger.kill()
    await deployed.fall()
    alert = await opened(session, "not_claimed", f"night:{deployed.night:%Y-%m-%dT%H:%MZ}")
    name, number = f"not_claimed:{alert['subject']}", str(alert["id"])
    await until(lambda: notices(session, more_than=1))

    await deployed.command("silence", name, "--for", "1h", "--reason", "the trigger is on its way")
    before = await notices(session)
    await looked_at(session, LOOKS)
    assert await notices(session) == before, "silenced"

    await deployed.command("unsilence", number, "--reason", "it does not come")
    await until(lambda: notices(session, more_than=before))
    said = json.loads(await deployed.command("acknowledge", number, name, "--reason", "I start one", "--json"))
    assert [one["changed"] for one in said["alerts"]] == [True, False], "of the same alert, once"
    before = await notices(session)
    await looked_at(session, LOOKS)
    assert await notices(session) == before, "acknowledged"
    shown: Any = json.loads(await deployed.command("alert", number, "--json"))
    assert shown["standing"] == "acknowledged"
    assert [one["kind"] for one in shown["events"]] == ["alert_opened", "silence", "unsilence", "acknowledge"]

    deployed.start("trigger")
    await assert_night(session, deployed, "night", ACCOUNTS)
    await until(lambda: session.fetchval("select closed_at from matins.alert where id = $1", alert["id"]))
    assert await told(session, "closed") == ["not_claimed"]


async def notices(session: Session, *, more_than: int = 0) -> int:
    """Give how often the alert was told, once that is more than a number; 0 until then."""
    found: int = await session.fetchval("select notices from matins.alert order by id limit 1")
    return found if found > more_than else 0
