"""A server is away for long, or loses everything, amid a fan-out and an execution: all goes on by itself."""

from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from examples.servers.server import BrokerServer, DatabaseServer, Server
from shared import clock
from shared.broker import declare_topology
from shared.migrate import migrate
from shared.postgres import Session
from shared.start import topology_of
from tests.support.fleet import prepared_for, until
from tests.support.ledger import session_on
from tests.support.nights import assert_night, assert_one_effect_each, occurrence_of, settled
from tests.support.processes import Deployment, deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

OUTAGE_SECONDS = 20.0
EXECUTED, READ = 400, 600
JOBS = """
async def slowly(call):
    await effect(call)
    await call.connection.execute("select pg_sleep(0.1)")


async def numbers(call):
    for number in range(int(call.cursor or 0), 600):
        await anyio.sleep(0.005)
        yield AccountAt(f"a{number:06d}", str(number + 1))

jobs = [
    nightly("executed", PerAccount(slowly)),
    nightly("read", PerAccount(effect), accounts=GeneratedAccounts(numbers, page_size=20)),
]
"""


@pytest.fixture
async def broken_broker(
    tmp_path: Path, database_url: str, throwaway_rabbit: BrokerServer, prefix: str
) -> AsyncIterator[Deployment]:
    """A deployment on a broker of its own."""
    async with deployment(tmp_path, database_url, throwaway_rabbit.url, prefix) as made:
        yield made


@pytest.fixture
async def broken_database(
    tmp_path: Path, throwaway_postgres: DatabaseServer, broker_url: str, prefix: str
) -> AsyncIterator[Deployment]:
    """A deployment on a database server of its own."""
    async with session_on(throwaway_postgres.url) as session:
        await migrate(session)
    async with deployment(tmp_path, throwaway_postgres.url, broker_url, prefix) as made:
        yield made


async def begin(deployed: Deployment) -> None:
    """Start a night, and wait until one job is in its fan-out and the other in its execution."""
    deployed.declare(JOBS)
    await deployed.deploy(EXECUTED)
    for kind in ("worker", "worker", "trigger", "trigger"):
        deployed.start(kind, in_flight="200", broker_timeout="2s", claim_lease="3s")

    async def under_way(session: Session) -> bool:
        executed = await occurrence_of(session, deployed, "executed")
        read = await occurrence_of(session, deployed, "read")
        return bool(
            executed["state"] == "running"
            and 20 <= await settled(session, executed) < EXECUTED
            and 20 <= read["accounts_read"] < READ
        )

    async with session_on(deployed.database_url) as session:
        await until(lambda: under_way(session))


async def away(server: Server) -> None:
    """Stop a server for a while; its clients meet refused connections."""
    await anyio.to_thread.run_sync(server.stop)
    await clock.sleep(OUTAGE_SECONDS)
    await anyio.to_thread.run_sync(server.start)


async def assert_all_done(deployed: Deployment) -> None:
    async with session_on(deployed.database_url) as session:
        for job, accounts in (("executed", EXECUTED), ("read", READ)):
            row = await assert_night(session, deployed, job, accounts)
            await assert_one_effect_each(session, row, accounts)
    assert all(service.alive for service in deployed.services), "nobody had to be started again"


async def test_the_broker_is_away(broken_broker: Deployment, throwaway_rabbit: BrokerServer) -> None:
    await begin(broken_broker)
    await away(throwaway_rabbit)
    await assert_all_done(broken_broker)


async def test_the_broker_loses_everything(broken_broker: Deployment, throwaway_rabbit: BrokerServer) -> None:
    await begin(broken_broker)
    await anyio.to_thread.run_sync(throwaway_rabbit.wipe)
    prepared = prepared_for(
        "trigger", broken_broker.jobs, broken_broker.database_url, throwaway_rabbit.url, broken_broker.prefix
    )
    topology = topology_of(prepared.settings, prepared.loaded.jobs)
    await declare_topology(throwaway_rabbit.url, topology, timeout=20)
    await assert_all_done(broken_broker)


async def test_the_database_is_away(broken_database: Deployment, throwaway_postgres: DatabaseServer) -> None:
    await begin(broken_database)
    await away(throwaway_postgres)
    await assert_all_done(broken_database)
