"""A database server fails in one way after another amid a night: all goes on by itself, and readiness tells the truth.

What is stated: once the server takes writes again, every process is ready within 30 seconds, and none is restarted.
"""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from pathlib import Path

import anyio
import pytest

from examples.servers.server import DatabaseServer
from shared import clock
from shared.migrate import migrate
from shared.postgres import DatabaseUnavailable, Session, database_now, is_over
from tests.support.fleet import until
from tests.support.holds import holding
from tests.support.ledger import session_on
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.processes import Deployment, Service, deployment
from tests.support.readiness import ready, staying_alive, unready
from tests.support.relief import relieve

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

RECOVERY_SECONDS = 30.0
TERMINATIONS = 5
EXECUTED, READ = 300, 1000
KINDS = ("trigger", "trigger", "worker", "worker")
# Whatever happens, the reading of one job's accounts is not over until the file `over` is there; then nobody waits.
# No account may wait for it: lost with its session, it would run alone in its worker, and nothing else beside it.
JOBS = """
async def unhurried(seconds):
    if not (HERE / "over").exists():
        await anyio.sleep(seconds)


async def executed(call):
    await effect(call)
    await unhurried(1.5)
    await call.connection.execute("select pg_sleep(0.05)")


async def called(call):
    await unhurried(0.5)
    return call.key


async def numbers(call):
    for number in range(int(call.cursor or 0), 1000):
        while number > 990 and not (HERE / "over").exists():
            await anyio.sleep(0.1)
        await unhurried(0.1)
        yield AccountAt(f"a{number:06d}", str(number + 1))

jobs = [
    nightly("executed", PerAccount(executed, timeout=minutes(5))),
    nightly("read", PerAccount(effect), accounts=GeneratedAccounts(numbers, page_size=5)),
    nightly("called", Outside(called, key_valid_for=hours(24), concurrency=2)),
]
"""


@pytest.fixture
async def broken(
    tmp_path: Path, throwaway_postgres: DatabaseServer, broker_url: str, prefix: str
) -> AsyncIterator[Deployment]:
    """A deployment on a database server of its own, amid its night."""
    async with session_on(throwaway_postgres.url) as session:
        await migrate(session)
    async with deployment(tmp_path, throwaway_postgres.url, broker_url, prefix) as made:
        made.declare(JOBS)
        await made.deploy(EXECUTED)
        # So many sessions are lost that the accounts would be taken for killers of them, and run alone.
        for kind in KINDS:
            made.start(kind, database_timeout="1s", claim_lease="3s", outside_lease="3s", max_crashes="20")
        yield made


async def progress(deployed: Deployment) -> None:
    """Wait until more of the night is done than was, and see that there is still something to do."""
    done = "select count(*) from matins.ledger where finished_at is not null"
    async with session_on(deployed.database_url) as session:
        before = await count(session, done)

        async def more() -> bool:
            return await count(session, done) > before

        await until(more)
        assert await count(session, "select count(*) from matins.occurrence where closed_at is null")


@asynccontextmanager
async def fault(deployed: Deployment, part: str, reason: str = "") -> AsyncIterator[Callable[[], Awaitable[None]]]:
    """Have a fault between two times of progress: meanwhile nobody is ready, behind it everybody is soon.

    What is given waits until every process says that it isn't ready, and names a part and a reason.
    """
    await progress(deployed)

    async def felt() -> None:
        for service in deployed.services:
            await unready(service, part, reason)

    yield felt
    with anyio.fail_after(RECOVERY_SECONDS):
        await ready(*deployed.services)
    await progress(deployed)


async def backends(deployed: Deployment) -> list[int]:
    """Give the process ids of our processes' sessions."""
    async with session_on(deployed.database_url) as session:
        rows = await session.fetch("select pid from pg_stat_activity where application_name like 'matins %'")
    return [row["pid"] for row in rows]


async def moment(deployed: Deployment) -> datetime:
    async with session_on(deployed.database_url) as session:
        now: datetime = await database_now(session)
    return now


async def used_since(deployed: Deployment, process_ids: list[int], since: datetime) -> list[str]:
    """Give what sessions have said since a moment."""
    query = "select query from pg_stat_activity where pid = any ($1) and query_start > $2"
    async with session_on(deployed.database_url) as session:
        return [row["query"] for row in await session.fetch(query, process_ids, since)]


async def set_read_only(deployed: Deployment, *, value: bool) -> None:
    async with session_on(deployed.database_url) as session:
        await session.execute(f"alter system set default_transaction_read_only = {value}")
        await session.execute("select pg_reload_conf()")


async def test_the_database_fails_in_every_way(broken: Deployment, throwaway_postgres: DatabaseServer) -> None:
    services: list[Service] = broken.services
    await ready(*services)
    async with staying_alive(services):
        async with fault(broken, "") as _:
            for _ in range(TERMINATIONS):
                async with session_on(broken.database_url) as session:
                    await session.execute(
                        """select pg_terminate_backend(pid) from pg_stat_activity
                            where application_name like 'matins %' and pid <> pg_backend_pid()"""
                    )
                await clock.sleep(0.2)
        async with fault(broken, "beat") as felt:
            await anyio.to_thread.run_sync(throwaway_postgres.stop_at_once)
            await felt()
            await anyio.to_thread.run_sync(throwaway_postgres.start)
        async with fault(broken, "beat") as felt:
            await anyio.to_thread.run_sync(throwaway_postgres.pause)
            await felt()
            await anyio.to_thread.run_sync(throwaway_postgres.resume)
        async with fault(broken, "beat", "ReadOnly") as felt:
            await set_read_only(broken, value=True)
            connected = await backends(broken)
            await felt()
            demoted = await moment(broken)
            await set_read_only(broken, value=False)
        assert not await used_since(broken, connected, demoted), "a server that takes no writes is left for good"
        (broken.folder / "over").touch()
        await crash_in_the_close(broken, throwaway_postgres)
        await until(lambda: answers(broken))
        await ready(*services)
    async with session_on(broken.database_url) as session:
        for job, accounts in (("executed", EXECUTED), ("read", READ)):
            row = await assert_night(session, broken, job, accounts)
            await assert_one_effect_each(session, row, accounts)
        row = await assert_night(session, broken, "called", EXECUTED)
        results = "select count(distinct result) from matins.ledger where occurrence_id = $1"
        assert await count(session, results, row["id"]) == EXECUTED
    assert all(service.alive for service in services), "nobody had to be started again"
    await relieve(broken)


async def crash_in_the_close(deployed: Deployment, server: DatabaseServer) -> None:
    """Kill the backend that is about to write the end of an occurrence: the server restarts, and the end is unknown."""
    closing = "new.closed_at is not null and old.closed_at is null and new.job = 'read'"
    async with holding(deployed.database_url, "matins.occurrence", "update", closing) as hold:
        held = "select pid from pg_locks where locktype = 'advisory' and not granted and objid = $1"
        process_id: int = await until(lambda: hold.session.fetchval(held, hold.key))
        await anyio.to_thread.run_sync(server.kill_backend, process_id)
        # The server has ended every session, and with the test's own the hold.
        await until(lambda: ended(hold.session))
        hold.held = False


async def answers(deployed: Deployment) -> bool:
    """Tell whether the server has recovered."""
    try:
        async with session_on(deployed.database_url):
            return True
    except DatabaseUnavailable:
        return False


async def ended(session: Session) -> bool:
    return is_over(session)
