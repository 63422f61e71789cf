"""Preparing the servers at deploy time: the database's schema and environment, the broker's parts, and their record.

Any number of processes may do it at once. What was made on the broker is written down, since a service without the
right to configure can look at names but at no arguments; the record only grows while the prefix stays the same.
"""

from collections.abc import Mapping
from typing import Any

import orjson

from shared import clock, logs
from shared.broker import BrokerUnavailable, declare_topology
from shared.broker_retire import rebind
from shared.job import Job
from shared.migrate import Migration, enter_environment, migrate, migration_script
from shared.postgres import DatabaseUnavailable, InvalidSchema, Session, UndefinedTable, connect, is_transient
from shared.settings import Settings
from shared.sql_files import statement
from shared.start import LONGEST_WAIT, Prepared
from shared.topology import Binding, Topology
from trigger.database_roles import Plan, plan_for, prepare_roles, rights_script, roles_script
from trigger.database_roles import Prepared as PreparedRoles

RECORDED_TOPOLOGY = statement("trigger", "recorded_topology")
RECORD_TOPOLOGY = statement("trigger", "record_topology")

PAUSE_SECONDS = 1.0
_log = logs.logger(__name__)


async def migrate_database(settings: Settings) -> list[Migration]:
    """Bring the database to this release's schema and name its environment; give what was applied.

    Raises WrongEnvironment before anything is changed, FaultyMigration and DatabaseUnavailable.
    """
    session = await _connect(settings)
    try:
        await _refuse_another(session, settings.environment)
        applied = await migrate(session)
        await enter_environment(session, settings.environment, create=True)
    finally:
        await session.close()
    return applied


async def follow_roles(settings: Settings, jobs: Mapping[str, Job]) -> PreparedRoles:
    """Make the database's roles, and the rights that they have, as far as this login may."""
    session = await _connect(settings)
    try:
        return await prepare_roles(session, plan_for(settings.database_roles, jobs))
    finally:
        await session.close()


async def migrate_broker(settings: Settings, topology: Topology, *, record: bool) -> None:
    """Make the broker's parts and, with `record`, write them down in the database.

    Raises WrongEnvironment before anything is made, TopologyMismatch naming queue and argument, BrokerUnavailable,
    DatabaseUnavailable.
    """
    url, seconds = settings.secret("broker_url"), settings.broker_timeout.total_seconds()
    if not record:
        await declare_topology(url, topology, timeout=seconds)
        return
    session = await _connect(settings)
    try:
        await enter_environment(session, settings.environment, create=True)
        async with session.transaction():
            # One after the other, so that the record holds what every one of several migrates has made.
            recorded = await session.fetchval(RECORDED_TOPOLOGY)
            await declare_topology(url, topology, timeout=seconds)
            if led_elsewhere := elsewhere(recorded, topology):
                await rebind(url, add=(), remove=led_elsewhere, timeout=seconds)
            await session.execute(RECORD_TOPOLOGY, merged(recorded, topology))
    finally:
        await session.close()


async def migrate_patiently(prepared: Prepared) -> None:
    """Do both for a service that starts; wait, as it would, for servers that are not there yet."""
    started = clock.monotonic()
    while True:
        try:
            await migrate_database(prepared.settings)
            roles = await follow_roles(prepared.settings, prepared.loaded.jobs)
            await migrate_broker(prepared.settings, prepared.topology, record=True)
        except Exception as error:
            passes = isinstance(error, DatabaseUnavailable | BrokerUnavailable) or is_transient(error)
            if not passes or clock.monotonic() - started > LONGEST_WAIT.total_seconds():
                raise
            _log.warning("waiting for the servers to migrate", reason=str(error))
        else:
            for text in roles.asked:
                _log.warning("an administrator of the database must run", statement=text)
            return
        await clock.sleep(PAUSE_SECONDS)


def merged(recorded: Mapping[str, Any] | None, topology: Topology) -> dict[str, Any]:
    """Add what was made to the record: another release, or a service with other jobs, may need more queues."""
    record = topology.as_record()
    if not recorded or any(recorded.get(name) != record[name] for name in ("prefix", "environment")):
        return record
    for name in ("exchanges", "queues"):
        record[name] = {**recorded.get(name, {}), **record[name]}
    left = [[one.exchange, one.queue, one.routing_key] for one in elsewhere(recorded, topology)]
    record["bindings"] += [one for one in recorded.get("bindings", []) if one not in [*record["bindings"], *left]]
    return record


def elsewhere(recorded: Mapping[str, Any] | None, topology: Topology) -> list[Binding]:
    """Give the recorded bindings that lead our keys to other queues: ours were retired, and are made again now."""
    mine = {topology.routing_key(key): topology.work_queue(key) for key in topology.queues}
    return [
        Binding(exchange, queue, key)
        for exchange, queue, key in (recorded or {}).get("bindings", [])
        if exchange == topology.work_exchange and key in mine and queue != mine[key]
    ]


def sql_script(environment: str, topology: Topology, plan: Plan) -> str:
    """Give everything that an administrator applies to an empty database by hand, as the one who is to own it."""
    record = orjson.dumps(topology.as_record()).decode().replace("'", "''")
    return (
        f"{roles_script(plan)}\n{migration_script()}\n{rights_script(plan)}\n"
        "-- The environment, and what the broker was prepared with (`migrate --definitions`).\n"
        f"insert into matins.environment (name, topology) values ('{environment}', '{record}')\n"
        "on conflict (singleton) do update set topology = excluded.topology where environment.name = excluded.name;\n"
    )


async def _connect(settings: Settings) -> Session:
    return await connect(
        settings.secret("database_url"),
        name="matins migrate",
        timeout=settings.database_timeout,
        statement_cache_size=0,
    )


async def _refuse_another(session: Session, environment: str) -> None:
    """See, before anything is changed, that the database isn't another environment's."""
    try:
        named = await session.fetchval("select name from matins.environment")
    except (UndefinedTable, InvalidSchema):
        return
    if named is not None:
        await enter_environment(session, environment, create=False)
