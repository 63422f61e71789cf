"""A broker that refuses: users it does not know, parts that are not ours. Nobody waits for ever without saying why."""

import urllib.parse

import pytest

from tests.support.broker import administrator
from tests.support.processes import Deployment, Service
from tests.support.readiness import ready, unready
from tests.support.servers import with_path

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

UNPREPARED = "no migrate has recorded what it made on the broker; run migrate"
JOBS = 'jobs = [nightly("night", PerAccount(effect))]'


def with_password(url: str, password: str) -> str:
    address = urllib.parse.urlsplit(url)
    return address._replace(netloc=f"{address.username}:{password}@{address.hostname}:{address.port}").geturl()


async def refusal(service: Service) -> str:
    """Wait for the end of a service that must not run; give the reason that its last line names."""
    assert await service.ended() == 2
    last = service.lines()[-1]
    assert service.log.read_text().rstrip().endswith("}"), "the last line is one for people and machines to read"
    assert last["event"] == "service failed"
    return str(last["reason"])


async def test_who_is_not_known_stops_with_the_reason(deployed: Deployment) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(1, fall=False)
    stranger = deployed.start("worker", broker_url=with_password(deployed.broker_url, "wrong-horse"))
    lost = deployed.start("trigger", broker_url=with_path(deployed.broker_url, "elsewhere"))
    assert "refuses user" in await refusal(stranger)
    assert "wrong-horse" not in stranger.log.read_text()
    assert "virtual host 'elsewhere' does not exist" in await refusal(lost)


async def test_a_queue_of_another_kind_is_named_by_migrate_and_waited_for_by_services(deployed: Deployment) -> None:
    deployed.declare(JOBS)
    queue = f"{deployed.prefix}.work.night"
    async with administrator(deployed.broker_url) as channel:
        await channel.declare_queue(queue, durable=True)
        migrate = deployed.start("trigger", "migrate")
        assert await migrate.ended() != 0, migrate.log.read_text()
        assert f"queue {queue}: " in " ".join(migrate.log.read_text().split())
        # The queue's other parts are there.
        worker = deployed.start("worker")
        waiting = await unready(worker, "start", "waiting for the servers")
        assert list(waiting) == ["start"]
        await worker.logged("waiting for the servers", reason=UNPREPARED)
        await channel.queue_delete(queue)
    await deployed.command("migrate")
    await worker.working()
    await ready(worker)
    worker.terminate()
    assert await worker.ended() == 0
