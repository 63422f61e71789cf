"""A session whose process has frozen in the middle of a message, where the server's own limits do not count."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import Any

import anyio
import pytest

from shared.fleet import end_silent_sessions
from shared.postgres import DatabaseError, DriverError, Session, connect
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.proxy import Proxy

PATIENCE = timedelta(seconds=60)
NOW = timedelta(0)
LONG = timedelta(hours=1)
STUCK = """
select count(*) from pg_stat_activity
 where datname = current_database() and application_name = 'matins worker frozen'
   and state = 'active' and wait_event = 'ClientRead'"""
HELD = """
select count(*) from pg_locks
 where locktype = 'advisory' and database = (select oid from pg_database where datname = current_database())"""


@asynccontextmanager
async def frozen(url: str) -> AsyncIterator[Session]:
    """Have a session in a transaction with a lock, that has named a statement and hears no answer; give another one."""
    async with Proxy(url) as wire, session_on(url) as session:
        victim: Any = await connect(wire.url, name="matins worker frozen", timeout=PATIENCE)
        await victim.execute("begin; select pg_advisory_xact_lock(7)")
        wire.to_client.hold()

        async def name_a_statement() -> None:
            with suppress(DatabaseError, DriverError, OSError):
                await victim.fetch("select $1::int + 41", 1)

        async with anyio.create_task_group() as group:
            group.start_soon(name_a_statement)
            try:
                await until(lambda: session.fetchval(STUCK))
                yield session
            finally:
                victim.terminate()
                group.cancel_scope.cancel()


async def test_its_locks_are_given_back_once_it_was_silent_for_long(database_url: str) -> None:
    async with frozen(database_url) as session:
        await end_silent_sessions(session, LONG)
        assert await session.fetchval(HELD) == 1
        await end_silent_sessions(session, NOW)

        async def free() -> bool:
            return bool(await session.fetchval(HELD) == 0)

        await until(free)


@pytest.mark.parametrize("name", ["matins worker", "psql"])
async def test_a_session_between_two_messages_is_left_to_the_server(database_url: str, name: str) -> None:
    async with session_on(database_url) as session:
        other: Any = await connect(database_url, name=name, timeout=PATIENCE)
        await other.execute("begin; select pg_advisory_xact_lock(7)")
        await end_silent_sessions(session, NOW)
        assert await other.fetchval("select 1") == 1
        await other.close()


async def test_a_copy_that_waits_for_its_rows_is_left_alone(database_url: str) -> None:
    async with session_on(database_url) as session:
        other: Any = await connect(database_url, name="matins worker frozen", timeout=PATIENCE)
        await other.execute("create table copied (id int)")

        async def rows() -> AsyncIterator[bytes]:
            await until(lambda: session.fetchval(STUCK))
            await end_silent_sessions(session, NOW)
            yield b"1\n"

        await other.copy_to_table("copied", source=rows())
        assert await other.fetchval("select count(*) from copied") == 1
        await other.close()
