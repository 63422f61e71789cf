"""The network to the broker breaks within frames, goes silent and grows slow, while a night runs over it."""

import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial

import pytest

from shared import clock
from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import assert_night
from tests.support.outages import under_way, waiting_fleet
from tests.support.processes import Deployment
from tests.support.proxy import Proxy, Way
from tests.support.readiness import ready, staying_alive, unready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(150)]

ACCOUNTS = 800
SETTINGS = {"broker_timeout": "2s", "in_flight": "200"}
# Behind some frames, in a body, in a frame's head, within the handshake; now in what is sent, now in what is heard.
CUTS = (
    ("to_server", 4096),
    ("to_server", 1500),
    ("to_client", 500),
    ("to_server", 380),
    ("to_client", 120),
    ("to_server", 3),
)
SLOW_SECONDS = 0.25
RESETS = 4
JOBS = """
async def slowly(call):
    await effect(call)
    await call.connection.execute("select pg_sleep(0.1)")


async def quickly(call):
    await effect(call)
    await call.connection.execute("select pg_sleep(0.03)")

jobs = [
    nightly("cut", PerAccount(slowly)),
    nightly("silent", PerAccount(quickly, chunk_size=5)),
    nightly("slow", PerAccount(quickly, chunk_size=5)),
]
"""


@pytest.fixture
async def wires(broker_url: str) -> AsyncIterator[list[Proxy]]:
    """The trigger's wire to the broker, and the worker's. They are asked for first, so that the fleet ends before."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(Proxy(broker_url)) for _ in range(2)]


async def break_within_frames(wires: list[Proxy]) -> None:
    """Cut both processes' connections after so many bytes."""
    for name, length in CUTS:
        ways: list[Way] = [getattr(wire, name) for wire in wires]
        for way in ways:
            way.cut_after = length
        await until(partial(all_cut, ways))


async def all_cut(ways: list[Way]) -> bool:
    return all(way.cut_after is None for way in ways)


async def mend(wire: Proxy) -> None:
    """Lose what is on its way and let new connections pass."""
    wire.refuse()
    wire.reset()
    wire.heal()
    await wire.accept()


async def test_nights_over_a_bad_wire(wires: list[Proxy], deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    addresses = wires[0].url, wires[1].url
    trigger, worker = await waiting_fleet(deployed, ACCOUNTS, SETTINGS, addresses=addresses)
    async with staying_alive([trigger, worker]):
        await deployed.fall("cut")
        await under_way(session, deployed, "cut", ACCOUNTS)
        await break_within_frames(wires)
        await ready(trigger, worker)
        await assert_night(session, deployed, "cut", ACCOUNTS)

        # The broker's side has forgotten the connections; ours look as healthy as ever.
        await deployed.fall("silent")
        await under_way(session, deployed, "silent", ACCOUNTS)
        for wire in wires:
            wire.vanish()
        await unready(trigger, "publisher")
        await unready(worker, "consumer")
        for wire in wires:
            await mend(wire)
        await ready(trigger, worker)
        # One way only: what the broker says does not arrive.
        wires[1].to_client.hold()
        await unready(worker, "consumer")
        await mend(wires[1])
        await ready(worker)
        await assert_night(session, deployed, "silent", ACCOUNTS)

        for wire in wires:
            wire.to_server.delay = wire.to_client.delay = SLOW_SECONDS
        await deployed.fall("slow")
        chance = random.Random(7)  # noqa: S311 - chooses moments
        for _ in range(RESETS):
            await clock.sleep(chance.uniform(0.2, 1.5))
            chance.choice(wires).reset()
        await ready(trigger, worker)
        await assert_night(session, deployed, "slow", ACCOUNTS)
        for wire in wires:
            wire.heal()
