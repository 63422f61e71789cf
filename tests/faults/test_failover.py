"""A primary dies amid a night and its standby is promoted: nothing is lost if it was synchronous, and if not, what is.

What is documented: behind a synchronous standby each account has its one effect. A standby that lagged has lost what
was committed since: everything is held until a person has read so; released, the occurrence runs again, its effects in
the database were lost with it and are made once, and a call outside is made a second time under the same key.
"""

from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from examples.servers.postgres import PostgresServer
from shared.migrate import migrate
from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import assert_night, assert_one_effect_each
from tests.support.processes import Deployment, deployment
from tests.support.readiness import ready, unready
from tests.support.standby import Standby, either

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ACCOUNTS = 100
KINDS = ("trigger", "worker")
JOBS = """
async def executed(call):
    await effect(call)
    # None waits for the file: lost with its session, it would run alone in its worker, and nothing else beside it.
    if not (HERE / "over").exists():
        await anyio.sleep(1)


async def called(call):
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{call.account} {call.key}\\n")

jobs = [
    nightly("executed", PerAccount(executed, timeout=minutes(5))),
    nightly("called", Outside(called, key_valid_for=hours(24))),
]
"""


@pytest.fixture
async def primary() -> AsyncIterator[PostgresServer]:
    """A primary of the test's own, migrated."""
    server = PostgresServer()
    await anyio.to_thread.run_sync(server.__enter__)
    async with session_on(server.url) as session:
        await migrate(session)
    yield server
    server.delete()


@pytest.fixture
async def standby(primary: PostgresServer) -> AsyncIterator[Standby]:
    """A standby that streams from the primary."""
    server = Standby(primary)
    await anyio.to_thread.run_sync(server.__enter__)
    yield server
    server.delete()


@pytest.fixture
async def replicated(
    tmp_path: Path, primary: PostgresServer, standby: Standby, broker_url: str, prefix: str
) -> AsyncIterator[Deployment]:
    """A deployment whose processes go to whichever of the two takes writes; nothing runs yet."""
    async with deployment(tmp_path, primary.url, broker_url, prefix) as made:
        made.declare(JOBS)
        await made.deploy(ACCOUNTS)
        made.database_url = either(primary, standby)
        yield made


async def settled_accounts(session: Session) -> set[tuple[str, str]]:
    """Give what has ended: job and account."""
    rows = await session.fetch(
        """select o.job, l.account from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
            where l.finished_at is not null"""
    )
    return {(row["job"], row["account"]) for row in rows}


async def test_a_synchronous_standby_has_lost_nothing(
    replicated: Deployment, primary: PostgresServer, standby: Standby
) -> None:
    async with session_on(primary.url) as session:
        await session.execute("alter system set synchronous_standby_names = '*'")
        await session.execute("select pg_reload_conf()")
        services = [replicated.start(kind) for kind in KINDS]

        async def half_done() -> bool:
            return len(await settled_accounts(session)) > ACCOUNTS

        await until(half_done)
        before = await settled_accounts(session)
    await anyio.to_thread.run_sync(primary.kill)
    await standby.promote()
    await ready(*services)
    async with session_on(standby.url) as session:
        assert before <= await settled_accounts(session)
        (replicated.folder / "over").touch()
        row = await assert_night(session, replicated, "executed", ACCOUNTS)
        await assert_one_effect_each(session, row, ACCOUNTS)
        await assert_night(session, replicated, "called", ACCOUNTS)
    assert all(service.alive for service in services), "nobody had to be started again"


async def test_a_standby_that_lagged_has_the_night_run_again(
    replicated: Deployment, primary: PostgresServer, standby: Standby
) -> None:
    await standby.fall_behind()
    (replicated.folder / "over").touch()
    services = [replicated.start(kind) for kind in KINDS]
    async with session_on(primary.url) as session:
        for job in replicated.jobs:
            await assert_night(session, replicated, job.name, ACCOUNTS)
    await anyio.to_thread.run_sync(primary.kill)
    await standby.promote()
    for service in services:
        assert await service.ended() == 1
        assert "the database was put back" in service.lines("service failed")[0]["reason"]
    services = [replicated.start(kind) for kind in KINDS]
    for service in services:
        await unready(service, "hold", "everything is held")
    await replicated.command("reconcile", "--release", "--reason", "the keys are still known")
    async with session_on(standby.url) as session:
        row = await assert_night(session, replicated, "executed", ACCOUNTS)
        await assert_one_effect_each(session, row, ACCOUNTS)
        await assert_night(session, replicated, "called", ACCOUNTS)
    calls = Counter((replicated.folder / "calls").read_text().splitlines())
    assert len(calls) == ACCOUNTS, "an account has the same key in both runs"
    assert set(calls.values()) == {2}, "and is called once in each"
    assert all(service.alive for service in services), "nobody had to be started again"
