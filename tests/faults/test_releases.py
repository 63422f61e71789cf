"""Two releases, a message version and a schema version apart, through one night: up, mixed, and down again."""

import pytest

from examples.servers.find import Broker
from shared.postgres import Session
from tests.support.broker import until_acknowledged
from tests.support.fleet import until
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of, settled
from tests.support.processes import ROOT, Deployment, Service
from tests.support.releases import next_release

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

ACCOUNTS = 400
# An account waits until the night may go as far as it.
JOBS = """
async def gated(call):
    while not await call.connection.fetchval("select through > $1 from gate", int(call.account[1:])):
        await anyio.sleep(0.05)
    await effect(call)

jobs = [nightly("night", PerAccount(gated, concurrency=2, timeout=minutes(1)))]
"""
NOT_MINE = "message not for this worker"


async def go_through(session: Session, deployed: Deployment, through: int, *workers: Service) -> None:
    """Let the night go on as far as an account, and wait for it; each of the workers has had its share."""
    await session.execute("update gate set through = $1", through)

    async def reached() -> bool:
        return await settled(session, await occurrence_of(session, deployed, "night")) >= through

    await until(reached)
    for worker in workers:
        name = f"matins worker {(await worker.instance())[:8]}"
        assert await count(session, "select count(*) from effect where worker = $1", name) > 0


async def drain(*services: Service) -> None:
    for service in services:
        service.terminate()
    assert [await service.ended() for service in services] == [0] * len(services)


def start(deployed: Deployment) -> list[Service]:
    return [deployed.start(kind, in_flight="40", delays="1,2") for kind in ("trigger", "worker")]


async def test_two_releases_share_a_night_up_and_down_again(
    deployed: Deployment, session: Session, broker: Broker
) -> None:
    deployed.settings["delays"] = "1,2"
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    await session.execute("create table gate (through integer not null); insert into gate values (0)")
    await session.execute("grant select on gate to public")
    newer = next_release(deployed.folder)

    old_trigger, old_worker = start(deployed)
    await go_through(session, deployed, 50, old_worker)
    deployed.root = newer
    assert "_farewell" in await deployed.command("migrate")
    new_trigger, new_worker = start(deployed)
    for service in (new_trigger, new_worker):
        await service.working()
    await go_through(session, deployed, 150, old_worker, new_worker)
    await drain(old_trigger)
    await go_through(session, deployed, 200, old_worker, new_worker)
    assert not old_worker.lines(NOT_MINE), "while it lives, everybody speaks its version"

    await drain(old_worker)
    await new_trigger.logged("message version", version=2)
    await go_through(session, deployed, 300, new_worker)

    # Back: this release's code on the next one's schema, with messages around that it cannot read.
    deployed.root = ROOT
    await deployed.command("migrate")
    old_trigger, old_worker = start(deployed)
    await old_worker.logged(NOT_MINE)
    await drain(new_trigger, new_worker)
    farewells = "select count(*) from matins.instance where farewell = 'goodbye'"
    assert await count(session, farewells) == 2
    await go_through(session, deployed, ACCOUNTS, old_worker)
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert row["dead"] == row["failed"] == 0

    # What only the next release can read is kept until it comes again, for it alone: in this one's hands none is seen.
    await drain(old_worker)
    deployed.root = newer
    await start(deployed)[1].working()
    await until_acknowledged(broker, deployed.broker_url)
