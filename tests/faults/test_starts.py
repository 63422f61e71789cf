"""A process amid its start: told to end, it does so at once; when its database goes away, it waits, and starts."""

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.holds import holding
from tests.support.nights import count
from tests.support.processes import Deployment, Service
from tests.support.proxy import Proxy
from tests.support.readiness import unready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

JOBS = """
jobs = [nightly("night", PerAccount(effect))]
"""
SLOW_IMPORT = """
(HERE / "importing").touch()
if not (HERE / "imported").exists():
    time.sleep(600)
"""
END_REGISTRATION = """
select pg_terminate_backend(pid, 5000) from pg_stat_activity
 where datname = current_database() and wait_event_type = 'Lock' and query ilike '%insert into matins.instance%'
"""


async def told_to_end(*services: Service) -> None:
    """Ask processes to end, and see that each does, as one that has drained, long before its grace period is over."""
    for service in services:
        service.terminate()
    for service in services:
        assert await service.ended() == 0, service.log.read_text()
        last = service.lines()[-1]
        assert (last["event"], last["reason"]) == ("service ended", "SIGTERM")


async def test_a_process_ends_at_every_stage_of_its_start(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(1, fall=False)
    deployed.settings |= {"grace_period": "1h", "database_timeout": "10m", "broker_timeout": "10m"}
    async with Proxy(deployed.database_url) as database, Proxy(deployed.broker_url) as broker:
        database.hold()
        broker.hold()
        waiting = [
            deployed.start("trigger", database_url=database.url),
            deployed.start("worker", database_url=database.url),
            deployed.start("worker", broker_url=broker.url),
            deployed.start("trigger", prefix="nothing"),
        ]
        async with holding(deployed.database_url, "matins.instance", "insert", "true") as hold:
            waiting.append(deployed.start("worker"))
            await hold.reached(waiting[-1])
            for service in waiting:
                await unready(service, "start", "waiting for the servers")
            await told_to_end(*waiting)
    await told_to_end(await deployed.start("trigger").working(), await deployed.start("worker").working())
    live = "select count(*) from matins.instance where stopped_at is null"
    assert await count(session, live) == 0, "whoever has begun says that it has ended"


async def test_a_process_ends_while_it_reads_its_jobs(deployed: Deployment) -> None:
    deployed.declare(JOBS)
    module = deployed.folder / f"{deployed.module}.py"
    module.write_text(module.read_text() + SLOW_IMPORT)
    service = deployed.start("worker")

    async def importing() -> bool:
        return (deployed.folder / "importing").exists()

    await until(importing)
    service.terminate()
    assert await service.ended() == 0


@pytest.mark.parametrize("kind", ["trigger", "worker"])
async def test_a_process_that_loses_the_database_as_it_registers_tries_again(
    kind: str, deployed: Deployment, session: Session
) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(1, fall=False)
    async with holding(deployed.database_url, "matins.instance", "insert", "true") as hold:
        service = deployed.start(kind)
        await hold.reached(service)
        ended = await session.fetch(END_REGISTRATION)
        assert [row[0] for row in ended] == [True]
        await service.logged("waiting for the servers")
        await hold.let_go()
        await service.working()
