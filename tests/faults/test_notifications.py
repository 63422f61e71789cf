"""Alerts and pings by real processes: who is dead is missed outside, and who lives tells what the dead cannot."""

import anyio.to_thread
import pytest

from shared.postgres import Session
from tests.faults.test_watch import ACCOUNTS, NIGHT, WATCHFUL, declared
from tests.support.fleet import until
from tests.support.nights import assert_night
from tests.support.outside import new_key
from tests.support.processes import Deployment
from tests.support.receivers import Receiver, http_receiver

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

# Ten times as long as a living fleet is ever silent.
SILENCE_SECONDS = 4.0


def channels(switch: Receiver, receiver: Receiver) -> str:
    return f"""
        [channels.dead-man]
        kind = "ping"
        url = "{switch.url("/uuid-of-the-check")}"
        [channels.team]
        kind = "webhook"
        url = "{receiver.url("/alerts")}"
        keys = ["{new_key()}"]
        kinds = ["not_claimed"]
    """


async def test_a_switch_outside_misses_its_ping_when_everything_is_dead_and_those_who_return_tell_it_all(
    deployed: Deployment, session: Session
) -> None:
    with http_receiver() as switch, http_receiver() as receiver:
        deployed.settings |= {**WATCHFUL, "channels": channels(switch, receiver)}
        deployed.declare(declared(NIGHT))
        await deployed.deploy(ACCOUNTS, fall=False)
        fleet = [await deployed.start(kind).working() for kind in ("trigger", "worker", "trigger")]
        await anyio.to_thread.run_sync(switch.wait_for, 3)
        for service in fleet:
            service.kill()
        heard = await anyio.to_thread.run_sync(switch.silent_for, SILENCE_SECONDS)
        await deployed.fall()
        assert len(switch.requests) == heard
        assert receiver.requests == []
        await deployed.start("worker").working()
        await anyio.to_thread.run_sync(switch.wait_for, heard + 1)
        (first,) = await anyio.to_thread.run_sync(receiver.wait_for, 1)
        assert first.json["type"] == "alert.opened"
        await deployed.start("worker").working()
        await deployed.start("trigger").working()
        await assert_night(session, deployed, "night", ACCOUNTS)
        told = await anyio.to_thread.run_sync(receiver.wait_for, 2)
        assert [request.json["type"] for request in told] == ["alert.opened", "alert.closed"]
        assert {request.json["data"]["subject"] for request in told} == {f"night:{deployed.night:%Y-%m-%dT%H:%MZ}"}

        async def recorded() -> bool:
            rows = await session.fetch("select state from matins.delivery")
            return [row["state"] for row in rows] == ["delivered", "delivered"]

        await until(recorded)
