"""What drills of a maltreated broker share: a fleet that waits for its night, and a look at how far a night has got."""

from collections.abc import Mapping
from typing import Any

from shared.broker import declare_topology
from shared.postgres import Session
from tests.support.fleet import prepared_for, until
from tests.support.nights import occurrence_of, settled
from tests.support.processes import Deployment, Service
from tests.support.readiness import ready


async def waiting_fleet(
    deployed: Deployment, accounts: int, settings: Mapping[str, str], *, addresses: tuple[str, str] | None = None
) -> tuple[Service, Service]:
    """Deploy what is declared, and have a trigger and a worker that are ready and have nothing to do yet.

    With `addresses` they reach the broker by these, the trigger's first.
    """
    await deployed.deploy(accounts, fall=False)
    ways = addresses or (deployed.broker_url, deployed.broker_url)
    trigger = deployed.start("trigger", broker_url=ways[0], **settings)
    worker = deployed.start("worker", broker_url=ways[1], **settings)
    for job in deployed.jobs:
        await trigger.logged("job registered", job=job.name)
    await worker.working()
    await ready(trigger, worker)
    return trigger, worker


async def make_again(deployed: Deployment) -> None:
    """Make the parts on the broker, as migrate does."""
    prepared = prepared_for("trigger", deployed.jobs, deployed.database_url, deployed.broker_url, deployed.prefix)
    await declare_topology(deployed.broker_url, prepared.topology, timeout=20)


async def under_way(session: Session, deployed: Deployment, job: str, accounts: int, *, more_than: int = 0) -> None:
    """Wait until some of the night's accounts of a job have ended; fails if all had before anybody could look."""

    async def look() -> Any:
        row = await occurrence_of(session, deployed, job)
        ended = 0 if row is None else await settled(session, row)
        return ended if ended >= more_than + 10 else None

    assert await until(look) < accounts, "it was over before anybody could look"
