"""A changed queue argument amid a night: a queue beside the old one, both worked off, the old one retired."""

import json

import anyio.to_thread
import pytest

from examples.servers.find import Broker
from shared.postgres import Session
from shared.start import topology_of
from tests.support.broker import manage, virtual_host_of
from tests.support.fleet import prepared_for
from tests.support.holds import call_hold
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.processes import Deployment, Service

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ACCOUNTS = 200
JOBS = """
async def held(call):
    await call.connection.execute("select hold()")
    await effect(call)

jobs = [nightly("night", PerAccount(held, concurrency=2))]
"""
CHANGED = {"delivery_limit": "50"}


def work_queue(deployed: Deployment, **settings: str) -> str:
    """Give the name of the work queue that these settings need."""
    prepared = prepared_for(
        "trigger", deployed.jobs, deployed.database_url, deployed.broker_url, deployed.prefix, **settings
    )
    return topology_of(prepared.settings, prepared.loaded.jobs).work_queue("night")


async def refused(deployed: Deployment, *arguments: str, **settings: str) -> str:
    """Run a command that exits 2, and give what it said."""
    service = deployed.start("trigger", *arguments, **settings)
    assert await service.ended() == 2, service.log.read_text()
    return service.log.read_text()


async def drain(*services: Service) -> None:
    """Have processes end, as a rolling deploy does."""
    for service in services:
        service.terminate()
    assert [await service.ended() for service in services] == [0] * len(services)


async def queues(deployed: Deployment, **settings: str) -> dict[str, dict[str, object]]:
    """List the queues as an operator does; an old one that still holds messages is told by the exit code."""
    service = deployed.start("trigger", "queues", "--json", **settings)
    assert await service.ended() in {0, 1}, service.log.read_text()
    return {one["queue"]: one for one in json.loads(service.log.read_text())}


async def test_a_changed_limit_is_a_queue_beside_the_old_one_until_that_is_retired(
    deployed: Deployment, session: Session, broker: Broker
) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    old, new = work_queue(deployed), work_queue(deployed, **CHANGED)
    assert old == f"{deployed.prefix}.work.night"
    assert new.startswith(f"{old}@")
    async with call_hold(session) as hold:
        trigger, old_worker = (deployed.start(kind, in_flight="100") for kind in ("trigger", "worker"))
        await hold.reached(old_worker)
        await deployed.command("migrate", **CHANGED)
        after = [deployed.start(kind, in_flight="100", **CHANGED) for kind in ("trigger", "worker")]
        for name in (old, new):
            await after[1].logged("queue_consumed", queue=name)
        assert "still counts on" in await refused(deployed, "retire-queue", old, "--reason", "raised", **CHANGED)
        assert "is current" in await refused(deployed, "retire-queue", new, "--reason", "raised", **CHANGED)
        # What the old trigger has not published goes to the new queue.
        await drain(trigger)
        await hold.let_go()
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert await count(session, "select count(distinct worker) from effect") == 2, "old and new workers had their share"
    await drain(old_worker)

    listed = await queues(deployed, **CHANGED)
    assert (listed[old]["current"], listed[new]["current"]) == (False, True)
    await deployed.command("retire-queue", old, "--reason", "the limit was raised", **CHANGED)
    path = f"/api/queues/{virtual_host_of(deployed.broker_url)}"
    names = {one["name"] for one in await anyio.to_thread.run_sync(manage, broker, "GET", path)}
    assert new in names
    assert old not in names
    audited = await session.fetchrow("select reason, detail from matins.audit where kind = 'queue_retired'")
    assert audited is not None
    assert (audited["reason"], audited["detail"]["queue"]) == ("the limit was raised", old)
    assert old not in await queues(deployed, **CHANGED)
    assert all(service.alive for service in after)
    await drain(*after)

    # The deploy is rolled back: the old queue is made again, and its key leads to it alone.
    await deployed.command("migrate")
    bindings = await anyio.to_thread.run_sync(
        manage, broker, "GET", f"/api/bindings/{virtual_host_of(deployed.broker_url)}"
    )
    led = {(one["routing_key"], one["destination"]) for one in bindings if one["source"] == f"{deployed.prefix}.work"}
    assert led == {("night", old), (new.removeprefix(f"{deployed.prefix}.work."), new)}
