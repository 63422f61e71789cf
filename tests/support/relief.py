"""Relieving a deployment's processes by new ones, so that it comes to rest."""

from tests.support.processes import Deployment


async def relieve(deployed: Deployment) -> None:
    """End every process in order, and have a new worker do what is still in the queues.

    After faults a worker may hold a copy of a message for some seconds before it tries again; as it ends, it puts that
    back into the queue.
    """
    services = [service for service in deployed.services if service.alive]
    for service in services:
        service.terminate()
    for service in services:
        code = await service.ended()
        assert code == 0, f"each ends in order; this {service.kind} with {code}:\n{service.log.read_text()[-3000:]}"
    await deployed.start("worker").working()
