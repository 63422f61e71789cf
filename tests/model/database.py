"""A real database whose clock is stepped by the test, and sessions on it that can be cut before any statement.

The clock is a function of the same name in a schema that is sought before the system's own: the product's statements
stay as they are. Real time decides nothing.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import asyncpg

from shared.migrate import migrate
from shared.postgres import Database, connect
from tests.model import steps
from tests.model.turns import Killed, Turns
from tests.support.servers import execute, unique_name, with_path

if TYPE_CHECKING:
    from tests.model.process import Process
    from tests.model.world import World

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SEARCH_PATH = "stepped,pg_catalog,public"
STEPPED = """
create schema stepped;
create sequence stepped.clock as bigint minvalue 0;
create function stepped.clock_timestamp() returns timestamptz language sql volatile as
    $$ select timestamptz 'epoch' + nextval('stepped.clock') * interval '1 microsecond' $$;
create table stepped.effect (occurrence text not null, account text not null, worker text not null);
create table stepped.promise (account text not null, constraint kept unique (account) deferrable initially deferred);
"""
EMPTY = """
delete from matins.backfill_occurrence; delete from matins.backfill; delete from matins.trial;
delete from matins.ledger; delete from matins.publication; delete from matins.occurrence; delete from matins.attempt;
delete from matins.job_revision; delete from matins.job; delete from matins.instance; delete from matins.lease;
delete from matins.work_queue; delete from matins.account_lock;
delete from matins.audit; delete from stepped.effect; delete from stepped.promise;
"""
# Each look at the clock takes a microsecond, so that no two are at the same time.
SET_CLOCK = "select setval('stepped.clock', greatest($1, last_value)) from stepped.clock"
RUNS_BEFORE_VACUUM = 40
IDLE_LIMIT = re.compile(r"idle_in_transaction_session_timeout = '?(\d+)(s?)")
# What one of our own statements may take, by the model's clock.
STATEMENT_SECONDS = 30.0


@dataclass(eq=False, slots=True)
class Server:
    """One database for many runs: a session that looks past the product, and connections that runs take and give."""

    url: str
    control: Any
    locks: Any
    free: list[Any] = field(default_factory=list)
    pids: dict[Any, int] = field(default_factory=dict)
    runs: int = 0

    async def connection(self) -> Any:
        """Give a connection as a process has one."""
        while self.free:
            found = self.free.pop()
            if not found.is_closed():
                return found
        opened = await asyncpg.connect(
            self.url,
            statement_cache_size=500,
            max_cached_statement_lifetime=0,
            server_settings={
                "search_path": SEARCH_PATH,
                "timezone": "UTC",
                "synchronous_commit": "off",
                "deadlock_timeout": "20ms",
                "jit": "off",
            },
        )
        await _with_codec(opened)
        self.pids[opened] = opened.get_server_pid()
        return opened

    async def step(self, now: datetime, *, back: bool = False) -> None:
        """Set the clock; within a run it never goes back."""
        if back:
            await self.control.fetchval("select setval('stepped.clock', 0)")
        await self.control.fetchval(SET_CLOCK, (now - EPOCH) // timedelta(microseconds=1))

    async def empty(self) -> None:
        """Make the tables as new."""
        await self.control.execute(EMPTY)
        self.runs += 1
        if self.runs % RUNS_BEFORE_VACUUM == 0:
            await self.control.execute("vacuum")

    async def end_backend(self, raw: Any) -> None:
        """End a connection at the server, whatever it is doing there."""
        raw.terminate()
        await self.control.fetchval("select pg_terminate_backend($1, 5000)", self.pids[raw])


async def _with_codec(connection: Any) -> None:
    from shared.postgres import _prepare  # noqa: PLC0415 - the codec that every connection of the product has

    await _prepare(connection)


@asynccontextmanager
async def model_server(administrator_url: str) -> AsyncIterator[Server]:
    """Have a migrated database with a stepped clock meanwhile."""
    name = unique_name()
    await execute(administrator_url, f'create database "{name}"')
    url = with_path(administrator_url, name)
    try:
        first = await asyncpg.connect(url, server_settings={"search_path": SEARCH_PATH})
        await first.execute(STEPPED)
        await migrate(first)
        await first.close()
        timeout = timedelta(seconds=30)
        server = Server(
            url,
            await connect(url, name="model", timeout=timeout),
            await connect(url, name="model locks", timeout=timeout),
        )
        try:
            yield server
        finally:
            for raw in [*server.free, server.control, server.locks]:
                raw.terminate()
    finally:
        await execute(administrator_url, f'drop database "{name}" with (force)')


@dataclass(eq=False, slots=True)
class ModelSession:
    """A session as the product sees it; every statement that matters waits for its turn."""

    world: "World"
    process: "Process"
    raw: Any
    over: bool = False
    said: list[str] = field(default_factory=list)
    idle_limit: timedelta | None = None
    at_server: bool = False
    saying: str = ""
    since: datetime = EPOCH
    on_commit: list[Callable[[], None]] = field(default_factory=list)

    @property
    def turns(self) -> Turns:
        """The run's turns."""
        return self.world.turns

    def is_closed(self) -> bool:
        """As the driver's."""
        return self.over or bool(self.raw.is_closed())

    def is_in_transaction(self) -> bool:
        """As the driver's."""
        return not self.is_closed() and bool(self.raw.is_in_transaction())

    def terminate(self) -> None:
        """As the driver's."""
        self.over = True
        self.raw.terminate()

    async def execute(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """As the driver's."""
        return await self._say("execute", query, args)

    async def fetch(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """As the driver's."""
        return await self._say("fetch", query, args)

    async def fetchrow(self, query: str, *args: Any, timeout: float | None = None) -> Any:
        """As the driver's."""
        return await self._say("fetchrow", query, args)

    async def fetchval(self, query: str, *args: Any, column: int = 0, timeout: float | None = None) -> Any:
        """As the driver's."""
        return await self._say("fetchval", query, args)

    async def _say(self, method: str, query: str, args: tuple[Any, ...]) -> Any:
        label = steps.label_of(query)
        self.process.check()
        if label not in steps.QUIET:
            await self.turns.take(label)
        if self.is_closed():
            raise asyncpg.InterfaceError("connection is closed")
        began, self.saying = self.world.picks, label
        try:
            result = await self._at_server(method, self.world.mutated(label, query), args)
        except BaseException as error:
            self._failed(error)
            raise
        self.process.check()
        self._note(label, query, result)
        if label in self.world.lose_reply_of:
            self.world.lose_reply_of.discard(label)
            await self.world.lose(self)
            raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")
        self.world.watch.saw(self, label, args, result, began)
        return result

    async def _at_server(self, method: str, query: str, args: tuple[Any, ...]) -> Any:
        self.at_server, self.since = True, self.world.now
        try:
            with self.turns.flight(self.world.server.pids[self.raw]):
                return await getattr(self.raw, method)(query, *args)
        finally:
            self.at_server = False

    def _failed(self, error: BaseException) -> None:
        if self.process.dead:
            raise Killed from error
        if isinstance(error, asyncpg.DeadlockDetectedError):
            self.world.violation(f"deadlock in {self.said[-3:]}: {error}")

    def _note(self, label: str, query: str, result: Any) -> None:
        line = self.turns.line()
        self.since = self.world.now
        for number, unit in IDLE_LIMIT.findall(query):
            limit = timedelta(milliseconds=int(number) * (1000 if unit else 1))
            self.idle_limit = limit or None
        if label in {"commit", "rollback"}:
            self.said.clear()
            self.idle_limit = None
            waiting, self.on_commit = self.on_commit, []
            for call in waiting if result == "COMMIT" else ():
                call()
            line.last = steps.after_commit(line.last) if label == "commit" else line.last
            return
        self.said.append(label)
        line.intent = steps.STEPS.get(label, line.intent)
        if label in steps.EFFECTS:
            line.last = steps.STEPS[label] if self.is_in_transaction() else steps.after_commit(steps.STEPS[label])

    @asynccontextmanager
    async def transaction(self, *, readonly: bool = False) -> AsyncIterator[None]:
        """As the driver's, by statements that wait for their turns."""
        await self.execute("begin read only" if readonly else "begin")
        try:
            yield
        except BaseException:
            if not self.process.dead and self.is_in_transaction():
                await self.execute("rollback")
            raise
        await self.execute("commit")


class ModelDatabase(Database):
    """A pool as the product sees it: it lends sessions that can be cut."""

    def __init__(self, world: "World", process: "Process") -> None:
        self._world, self._process = world, process

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        """Lend a session."""
        self._process.check()
        with self._world.turns.flight():
            raw = await self._world.server.connection()
        lent = ModelSession(self._world, self._process, raw)
        self._process.sessions[lent] = None
        try:
            yield lent
        finally:
            if self._process.sessions.pop(lent, self) is None:
                with self._world.turns.flight():
                    await asyncio.shield(give_back(self._world.server, lent))


async def give_back(server: Server, lent: ModelSession) -> None:
    """Take a session back: what was not committed is undone, as it is when its process dies."""
    if lent.is_closed():
        return
    if lent.at_server:
        await server.end_backend(lent.raw)
        return
    if lent.raw.is_in_transaction():
        await lent.raw.execute("rollback")
    server.free.append(lent.raw)
