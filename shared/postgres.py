"""The only module that knows the database driver: connecting, the pool, and which errors pass by themselves."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

import anyio
import asyncpg
import orjson

from shared import clock
from shared.errors import MatinsError
from shared.tls import handshake_problem

if TYPE_CHECKING:
    from asyncpg.pool import PoolConnectionProxy

    Session: TypeAlias = PoolConnectionProxy[asyncpg.Record] | asyncpg.Connection[asyncpg.Record]
    Row: TypeAlias = asyncpg.Record
else:
    Session = Any
    Row = Any

CLOSE_SECONDS = 5.0
SILENCE_SECONDS = 30
DatabaseError = asyncpg.PostgresError
DriverError = asyncpg.InterfaceError
UniqueViolation = asyncpg.UniqueViolationError
DuplicateObject = asyncpg.DuplicateObjectError
IntegrityViolation = asyncpg.IntegrityConstraintViolationError
UnfitData = asyncpg.DataError
UndefinedTable = asyncpg.UndefinedTableError
InvalidSchema = asyncpg.InvalidSchemaNameError
InsufficientPrivilege = asyncpg.InsufficientPrivilegeError
ReadOnly = asyncpg.ReadOnlySQLTransactionError
LockNotAvailable = asyncpg.LockNotAvailableError
# Somebody's code has thrown away what the driver had prepared on this connection, and believes to be there.
StatementsGone = asyncpg.InvalidSQLStatementNameError
# The whole transaction is to be run again: it met another one, or a table was altered under a cached plan, of which the
# driver tells once inside a transaction.
CONFLICTS = (asyncpg.SerializationError, asyncpg.DeadlockDetectedError, asyncpg.InvalidCachedStatementError)

_TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    asyncpg.SerializationError,
    asyncpg.DeadlockDetectedError,
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.TooManyConnectionsError,
    asyncpg.InvalidCachedStatementError,
    StatementsGone,
    asyncpg.DiskFullError,
    OSError,
    TimeoutError,
)


class DatabaseUnavailable(MatinsError):
    """PostgreSQL cannot be reached, or gave no connection in time."""


def is_transient(error: BaseException) -> bool:
    """Tell whether trying again later can succeed without anybody's help."""
    if isinstance(error, BaseExceptionGroup):
        return all(is_transient(one) for one in error.exceptions)
    return isinstance(error, (*_TRANSIENT, DatabaseUnavailable))


def is_servers_trouble(error: BaseException) -> bool:
    """Tell whether the server is at fault, whatever was asked of it: away, full, not writable, out of connections."""
    trouble = (
        DatabaseUnavailable,
        asyncpg.CannotConnectNowError,
        asyncpg.DiskFullError,
        asyncpg.ReadOnlySQLTransactionError,
        asyncpg.TooManyConnectionsError,
    )
    return isinstance(error, trouble)


def is_lost_connection(error: BaseException) -> bool:
    """Tell whether the connection itself is gone, so that the outcome of what ran on it is unknown."""
    lost = (
        asyncpg.PostgresConnectionError,
        asyncpg.AdminShutdownError,
        asyncpg.CrashShutdownError,
        asyncpg.CannotConnectNowError,
        asyncpg.IdleInTransactionSessionTimeoutError,
        asyncpg.InterfaceError,
        # What the driver says when the server has ended the session behind its back.
        asyncpg.InternalClientError,
        OSError,
    )
    return isinstance(error, lost) and not isinstance(error, TimeoutError)


def is_over(session: Session) -> bool:
    """Tell whether a session has ended; a pool takes one that has ended back at once, and then it cannot be asked."""
    try:
        return bool(session.is_closed())
    except asyncpg.InterfaceError:
        return True


class _Connection(asyncpg.Connection):
    """A connection that returns to its pool without what the driver's `reset all` would leave to its next user.

    That is the role, and temporary tables, which would hide a table of the same name from another job.
    """

    def get_reset_query(self) -> str:
        return f"{super().get_reset_query()}\nRESET ROLE;\nDISCARD TEMP;"


async def _prepare(connection: Any) -> None:
    await connection.set_type_codec(
        "jsonb", encoder=_encode_jsonb, decoder=_decode_jsonb, schema="pg_catalog", format="binary"
    )


def _encode_jsonb(value: Any) -> bytes:
    return b"\x01" + (value if isinstance(value, bytes) else orjson.dumps(value))


def _decode_jsonb(value: bytes) -> Any:
    return orjson.loads(value[1:])


async def connect(url: str, *, name: str, timeout: timedelta, statement_cache_size: int = 200) -> Session:
    """Open one connection. Raises DatabaseUnavailable with the server's reason, never with the URL."""
    seconds = timeout.total_seconds()
    try:
        connection = await asyncpg.connect(
            url,
            connection_class=_Connection,
            timeout=seconds,
            command_timeout=seconds,
            statement_cache_size=statement_cache_size,
            server_settings={"application_name": name, "timezone": "UTC"},
        )
    except ssl.SSLError as error:
        raise DatabaseUnavailable(f"PostgreSQL: {handshake_problem(error)}") from error
    except ValueError:
        # What the parser says of an address can hold a part of the password.
        raise DatabaseUnavailable("PostgreSQL: the database's address is not a URL that can be read") from None
    except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError) as error:
        reason = f"PostgreSQL: {type(error).__name__}: {error}"
        raise DatabaseUnavailable(reason) from error
    await _prepare(connection)
    return connection


class Database:
    """A pool whose every wait has a deadline, and which reads the URL anew at each connect."""

    def __init__(
        self, url: Callable[[], str], *, name: str, size: int, timeout: timedelta, statement_cache_size: int = 200
    ) -> None:
        """Prepare a pool of at most `size` connections; `timeout` bounds a connect, a wait and a statement."""
        self._url = url
        self._name = name
        self._size = size
        self._timeout = timeout
        self._statement_cache_size = statement_cache_size
        self._examine: Callable[[Session], Awaitable[None]] | None = None
        self._pool: Any = None

    def examine_new(self, examine: Callable[[Session], Awaitable[None]]) -> None:
        """Have every new connection examined before anything is done on it; what that raises, `session` raises."""
        self._examine = examine

    async def _connect(self, *_: Any, **__: Any) -> Any:
        try:
            url = self._url()
        except MatinsError as error:
            # A file that is being replaced, say: the next connect reads it again.
            raise DatabaseUnavailable(f"PostgreSQL: the database's address cannot be read: {error}") from error
        session = await connect(
            url, name=self._name, timeout=self._timeout, statement_cache_size=self._statement_cache_size
        )
        if self._examine is not None:
            try:
                await self._examine(session)
            except BaseException:
                session.terminate()
                raise
        return session

    async def open(self) -> None:
        """Make the pool; connections follow when they are needed."""
        self._pool = await asyncpg.create_pool(
            min_size=0, max_size=self._size, connect=self._connect, max_inactive_connection_lifetime=300
        )

    async def close(self) -> None:
        """Close the pool; after the timeout, by force."""
        if self._pool is None:
            return
        pool, self._pool = self._pool, None
        with anyio.move_on_after(min(self._timeout.total_seconds(), CLOSE_SECONDS)) as closing:
            await pool.close()
        if closing.cancelled_caught:
            pool.terminate()

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Session]:
        """Lend a connection. Raises DatabaseUnavailable when none is to be had in time, or the pool is closed."""
        # Closed meanwhile, the pool waits for what it has lent.
        pool = self._pool
        if pool is None:
            raise DatabaseUnavailable("the database connections of this process are closed")
        try:
            connection = await pool.acquire(timeout=self._timeout.total_seconds())
        except TimeoutError as error:
            reason = f"no database connection within {self._timeout.total_seconds():g} s (pool of {self._size})"
            raise DatabaseUnavailable(reason) from error
        try:
            yield connection
        except ReadOnly:
            # A server that was demoted answers everything but writes: keep no connection to it, idle ones neither.
            connection.terminate()
            await pool.expire_connections()
            raise
        except StatementsGone:
            # The driver would fail with the same at every statement that it has met here before.
            connection.terminate()
            raise
        finally:
            # What was done with it stands. One that cannot be made fit for the next is ended by the pool.
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError):
                await pool.release(connection, timeout=self._timeout.total_seconds())

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Session]:
        """Lend a connection with a transaction open on it."""
        async with self.session() as connection, transaction(connection):
            yield connection


@asynccontextmanager
async def transaction(session: Session, *, readonly: bool = False) -> AsyncIterator[None]:
    """Have a transaction open on `session`.

    The server ends it when its process says nothing in it for 30 seconds: one that is frozen there would hold its
    locks, and with them the job or the occurrence, for as long as it stays so.
    """
    async with session.transaction(readonly=readonly):
        await session.execute(f"set local idle_in_transaction_session_timeout = '{SILENCE_SECONDS}s'")
        yield


async def database_now(connection: Session) -> Any:
    """Give the database's present instant, aware, in UTC: the clock that decides."""
    return await connection.fetchval("select clock_timestamp()")


async def clock_skew(connection: Session) -> float:
    """Give how many seconds this machine's clock is ahead of the database's, to within the round trip."""
    before = clock.utc_now()
    theirs = await database_now(connection)
    after = clock.utc_now()
    return float((before + (after - before) / 2 - theirs).total_seconds())
