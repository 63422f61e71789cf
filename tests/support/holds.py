"""Holding a process at a chosen write from outside: whoever reaches it waits in the database until it is let go on."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.processes import Service

_keys = itertools.count(7001)


@dataclass(slots=True)
class Hold:
    """One held place; `key` is the lock that those who reach it wait for."""

    session: Session
    key: int
    held: bool = True

    async def reached(self, service: Service) -> None:
        """Wait until a process waits here."""
        instance = await service.instance()

        async def look() -> object:
            assert service.alive, service.log.read_text()
            return await self.session.fetchval(
                """select l.pid from pg_locks l join pg_stat_activity a on a.pid = l.pid
                    where l.locktype = 'advisory' and not l.granted and l.objid = $1
                      and a.application_name like '%' || $2""",
                self.key,
                instance[:8],
            )

        await until(look)

    async def crash(self, service: Service) -> None:
        """End a process that waits here, and what it left on the server: what it was about to write is not written."""
        instance = await service.instance()
        service.kill()
        await self.session.execute(
            """select pg_terminate_backend(pid, 5000) from pg_stat_activity
                where application_name like '%' || $1 and datname = current_database()""",
            instance[:8],
        )

    async def let_go(self) -> None:
        """Let everybody pass from now on."""
        if self.held:
            self.held = False
            await self.session.execute("select pg_advisory_unlock($1)", self.key)


@asynccontextmanager
async def holding(database_url: str, table: str, event: str, condition: str) -> AsyncIterator[Hold]:
    """Hold every `event` (insert or update) on rows of `table` for which `condition` holds, of `old` and `new`."""
    key = next(_keys)
    async with session_on(database_url) as session:
        await session.execute(
            f"""create function hold_{key}() returns trigger language plpgsql as $$
                begin perform pg_advisory_xact_lock_shared({key}); return new; end $$"""
        )
        await session.execute(
            f"""create trigger hold_{key} before {event} on {table} for each row
                when ({condition}) execute function hold_{key}()"""
        )
        await session.execute("select pg_advisory_lock($1)", key)
        hold = Hold(session, key)
        try:
            yield hold
        finally:
            await hold.let_go()


@asynccontextmanager
async def call_hold(session: Session) -> AsyncIterator[Hold]:
    """Hold every handler that calls `hold()` in the database."""
    key = next(_keys)
    await session.execute(
        f"""create or replace function hold() returns void language sql as $$
            select pg_advisory_xact_lock_shared({key}) $$"""
    )
    await session.execute("select pg_advisory_lock($1)", key)
    hold = Hold(session, key)
    try:
        yield hold
    finally:
        await hold.let_go()
