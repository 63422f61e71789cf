"""What `doctor` asks the database: whether it can be reached, written to, is ours, current, and large enough."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from shared.errors import MatinsError
from shared.migrate import check_schema, enter_environment
from shared.postgres import DatabaseError, DriverError, Session, clock_skew, connect
from shared.settings import Settings
from shared.sql_files import statement
from shared.topology import Topology
from trigger.doctor_finding import Finding, fail, ok, warn
from trigger.status import LIVE_INSTANCES

SERVER_FACTS = statement("trigger", "server_facts")
CURRENT_JOBS = statement("trigger", "current_jobs")

OLDEST_POSTGRES = 150_000
SKEW_WARNS = 0.5
SKEW_FAILS = 5.0
CROWDED = 0.8
LONGEST_LOOK = timedelta(seconds=5)
MIGRATE = "run `python -m trigger migrate`"


@dataclass(slots=True)
class Looked:
    """What was read for the checks of the fleet; `reached`: the tables could be read."""

    reached: bool = False
    instances: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)


async def check_database(settings: Settings, topology: Topology | None, looked: Looked) -> AsyncIterator[Finding]:
    """Give the findings, and fill `looked`."""
    try:
        session = await connect(
            settings.secret("database_url"),
            name="matins doctor",
            timeout=min(settings.database_timeout, LONGEST_LOOK),
            statement_cache_size=0,
        )
    except MatinsError as error:
        yield fail("database", str(error), "start it, or correct MATINS_DATABASE_URL")
        return
    try:
        for check in (_server, _writable, _skew, _schema):
            yield await _guarded(check, session)
        async for finding in _tables(session, settings, topology, looked):
            yield finding
    except (DatabaseError, DriverError, OSError) as error:
        yield fail("database", f"{type(error).__name__}: {error}", f"{MIGRATE}, or see the server's log")
    finally:
        await session.close()


async def _guarded(check: Callable[[Session], Awaitable[Finding]], session: Session) -> Finding:
    try:
        return await check(session)
    except MatinsError as error:
        return fail("schema", str(error), MIGRATE)


async def _server(session: Session) -> Finding:
    facts: Any = await session.fetchrow(SERVER_FACTS)
    told = f"PostgreSQL {facts['version_text']}"
    if facts["version"] < OLDEST_POSTGRES:
        return fail("database", told, "use PostgreSQL 15 or later")
    return ok("database", told)


async def _writable(session: Session) -> Finding:
    facts: Any = await session.fetchrow(SERVER_FACTS)
    if facts["in_recovery"]:
        return fail(
            "writable", "the server is a standby, and claims nothing", "point MATINS_DATABASE_URL at the primary"
        )
    if facts["read_only"]:
        return fail("writable", "default_transaction_read_only is on", "turn it off for this role and database")
    return ok("writable", "the server takes writes")


async def _skew(session: Session) -> Finding:
    seconds = await clock_skew(session)
    side = "ahead of" if seconds > 0 else "behind"
    told = f"this machine's clock is {abs(seconds):.2f} s {side} the database's"
    advice = "synchronise the clocks; the database's decides what is due"
    if abs(seconds) >= SKEW_FAILS:
        return fail("clock", told, advice)
    return warn("clock", told, advice) if abs(seconds) >= SKEW_WARNS else ok("clock", told)


async def _schema(session: Session) -> Finding:
    await check_schema(session)
    return ok("schema", "current")


async def _tables(
    session: Session, settings: Settings, topology: Topology | None, looked: Looked
) -> AsyncIterator[Finding]:
    if settings.environment:
        try:
            await enter_environment(session, settings.environment, create=False)
            yield ok("environment", f"the database belongs to {settings.environment!r}")
        except MatinsError as error:
            yield fail(
                "environment", str(error), f"correct MATINS_ENVIRONMENT or the address; a new database: {MIGRATE}"
            )
    recorded = await session.fetchval("select topology from matins.environment")
    if topology is not None:
        yield _record(topology, recorded)
    looked.instances = [dict(row) for row in await session.fetch(LIVE_INSTANCES)]
    looked.jobs = [dict(row) for row in await session.fetch(CURRENT_JOBS)]
    looked.reached = True
    yield _connections(await session.fetchrow(SERVER_FACTS), settings.pool_size, len(looked.instances))


def _record(topology: Topology, recorded: dict[str, Any] | None) -> Finding:
    if recorded is None:
        return warn("topology record", "nothing is recorded of the broker", MIGRATE)
    if differences := topology.differences(recorded):
        return fail("topology record", "; ".join(differences), f"{MIGRATE} with these settings and jobs")
    return ok("topology record", "what migrate made is what these settings and jobs need")


def _connections(facts: Any, pool_size: int, live: int) -> Finding:
    """Judge the pools of the live processes; a rolling deploy may double them for a while."""
    allowed = facts["max_connections"] - facts["reserved_connections"]
    needed = pool_size * live
    told = (
        f"{live} live processes with up to {pool_size} each: {needed} of {allowed}; {facts['connections']} are open now"
    )
    advice = "lower MATINS_POOL_SIZE, raise max_connections, or put pgbouncer in front"
    if needed > allowed:
        return fail("connections", told, advice)
    return warn("connections", told, advice) if needed > CROWDED * allowed else ok("connections", told)
