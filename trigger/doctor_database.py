"""What `doctor` asks the database: whether it can be reached, written to, is ours, current, and large enough."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from shared.differences import Difference, read_differences
from shared.errors import MatinsError
from shared.job import Job
from shared.limits import CLOCK_SKEW_SECONDS
from shared.migrate import MIGRATE, SchemaBehind, check_schema, enter_environment
from shared.postgres import DatabaseError, DriverError, InsufficientPrivilege, Session, clock_skew, connect
from shared.restore import READ_HOLD, told
from shared.settings import Settings
from shared.sql_files import statement
from shared.topology import Topology
from trigger.doctor_channels import check_channels
from trigger.doctor_finding import Finding, fail, ok, warn
from trigger.doctor_roles import check_roles, expected
from trigger.status import LIVE_INSTANCES

SERVER_FACTS = statement("trigger", "server_facts")
LEADERS = statement("trigger", "leaders")
CURRENT_JOBS = statement("trigger", "current_jobs")

OLDEST_POSTGRES = 150_000
SKEW_WARNS = 0.5
CROWDED = 0.8
LONGEST_LOOK = timedelta(seconds=5)


@dataclass(slots=True)
class Looked:
    """What was read for the checks of the fleet; `reached`: the tables could be read."""

    reached: bool = False
    instances: list[dict[str, Any]] = field(default_factory=list)
    jobs: list[dict[str, Any]] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    topology: dict[str, Any] | None = None
    leaders: dict[str, dict[str, Any]] = field(default_factory=dict)


async def check_database(
    settings: Settings, topology: Topology | None, declared: Mapping[str, Job], looked: Looked
) -> AsyncIterator[Finding]:
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
        async for finding in _readable_tables(session, settings, topology, looked):
            yield finding
        roles = expected(settings.database_roles, declared, looked.jobs)
        async for finding in check_roles(session, roles):
            yield finding
    except (DatabaseError, DriverError, OSError) as error:
        yield fail("database", f"{type(error).__name__}: {error}", f"{MIGRATE}, or see the server's log")
    finally:
        await session.close()


async def _guarded(check: Callable[[Session], Awaitable[Finding]], session: Session) -> Finding:
    try:
        return await check(session)
    except SchemaBehind as error:
        return fail("schema", error.problem, error.advice)
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
    if abs(seconds) >= CLOCK_SKEW_SECONDS:
        return fail("clock", told, advice)
    return warn("clock", told, advice) if abs(seconds) >= SKEW_WARNS else ok("clock", told)


async def _schema(session: Session) -> Finding:
    await check_schema(session)
    return ok("schema", "current")


async def _readable_tables(
    session: Session, settings: Settings, topology: Topology | None, looked: Looked
) -> AsyncIterator[Finding]:
    """Give the same; what the login may not read ends it, since what is told of the login says why."""
    try:
        async for finding in _tables(session, settings, topology, looked):
            yield finding
    except InsufficientPrivilege as error:
        yield fail("tables", f"this login may not read them: {error}", "see what is said of the login")


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
    if held := told(await session.fetchrow(READ_HOLD)):
        yield fail("hold", held, "read `reconcile`, cancel what must not run, then release it")
    recorded = await session.fetchval("select topology from matins.environment")
    looked.topology = recorded
    if topology is not None:
        yield _record(topology, recorded)
    looked.instances = [dict(row) for row in await session.fetch(LIVE_INSTANCES)]
    looked.jobs = [dict(row) for row in await session.fetch(CURRENT_JOBS)]
    looked.leaders = {row["job"]: dict(row) for row in await session.fetch(LEADERS)}
    looked.differences = await read_differences(session)
    looked.reached = True
    async for finding in check_channels(session):
        yield finding
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
