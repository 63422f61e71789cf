"""What both processes do before they work: read settings and jobs, and see that the servers are theirs and ready.

The running services neither migrate the database nor make anything on the broker. They wait, not ready, for a migrate
that is still to come, and refuse at once what no waiting mends: another environment, a queue with other arguments; and
after some seconds a user, a password or a virtual host that the broker does not know.
"""

import socket
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared import clock, logs, telemetry
from shared.broker import BrokerRefuses, BrokerUnavailable, TopologyMissing, check_topology
from shared.broker import WrongEnvironment as WrongBroker
from shared.definition import fingerprints
from shared.deploys import deployed_version, record_deploy
from shared.errors import MatinsError
from shared.fleet import Instance, register_instance
from shared.job import Job
from shared.lifecycle import instance_id
from shared.load import Loaded, load_jobs
from shared.migrate import SchemaBehind, WrongEnvironment, check_schema, enter_environment
from shared.packages import check_packages
from shared.postgres import Database, DatabaseUnavailable, Session, is_transient
from shared.restore import await_continuity
from shared.settings import Settings, load_settings
from shared.stopping import Stopping
from shared.topology import Topology
from shared.version import VERSION
from shared.zones import tzdata_version, tzdata_warning

LONGEST_WAIT = timedelta(minutes=5)
# A broker that is still starting may refuse whom it knows.
LONGEST_REFUSAL = timedelta(seconds=5)
_PAUSE_SECONDS = 1.0
_log = logs.logger(__name__)


class StartRefused(MatinsError):
    """The process must not start here; no waiting mends it."""

    exit_code = 2


class BrokerUnprepared(MatinsError):
    """No migrate has written down what it made on the broker: the parts that are there may be anybody's."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a service starts with."""

    settings: Settings
    loaded: Loaded
    instance: Instance
    topology: Topology

    def database(self, size: int, *, login: str | None = None) -> Database:
        """Make a pool of this process, or of a job's own login, of at most `size` connections; it is not open yet."""
        settings = self.settings
        return Database(
            lambda: settings.secret("database_url") if login is None else settings.login_url(login),
            name=f"matins {self.instance.kind} {self.instance.id[:8]}",
            size=size,
            timeout=settings.database_timeout,
            statement_cache_size=settings.statement_cache_size,
        )


def topology_of(settings: Settings, jobs: Mapping[str, Job]) -> Topology:
    """Give the broker's parts that these jobs need. Raises InvalidTopology."""
    queues = frozenset(job.queue for job in jobs.values() if job.has_messages)
    return Topology(settings.prefix, settings.environment, queues, settings.delays, settings.delivery_limit)


def prepare(kind: str) -> Prepared:
    """Read settings and jobs for a service of `kind` (trigger or worker), and begin to log and to trace.

    Raises AmbiguousPackage, FaultySettings or InvalidTopology: the start is refused. Faulty jobs are set aside, told in
    the log, and kept in `loaded`.
    """
    check_packages()
    settings = load_settings()
    instance = Instance(instance_id(), kind, socket.gethostname(), VERSION, settings.region, tzdata_version() or "")
    logs.configure(settings.log_level, settings.log_layout, service=f"matins-{kind}", instance=instance.id)
    telemetry.configure(
        f"matins-{kind}",
        instance=instance.id,
        version=VERSION,
        environment=settings.environment,
        success_sampling=settings.success_sampling,
        otel=settings.otel,
    )
    loaded = load_jobs(settings.jobs)
    telemetry.metrics.begin(kind, loaded.jobs)
    for fault in loaded.faults:
        _log.error("faulty declaration", fault=str(fault))
    for job in loaded.jobs.values():
        for doubt in job.schedule.warnings():
            _log.warning("schedule", job=job.name, warning=str(doubt))
    _log.info("starting", version=VERSION, host=instance.host, tzdata=instance.tzdata_version, jobs=sorted(loaded.jobs))
    if warning := tzdata_warning():
        _log.info("time zones", remark=warning)
    return Prepared(settings, loaded, instance, topology_of(settings, loaded.jobs))


async def check_servers(prepared: Prepared, database: Database) -> None:
    """See that both servers are there, are of this environment, and have what this release needs.

    Raises StartRefused for what no waiting mends; otherwise SchemaBehind, TopologyMissing, BrokerUnprepared,
    BrokerUnavailable or a driver's error.
    """
    settings = prepared.settings
    try:
        async with database.session() as session:
            await check_schema(session)
            await enter_environment(session, settings.environment, create=False)
            recorded = await session.fetchval("select topology from matins.environment")
        url, seconds = settings.secret("broker_url"), settings.broker_timeout.total_seconds()
        await check_topology(url, prepared.topology, timeout=seconds)
    except (WrongEnvironment, WrongBroker) as wrong:
        raise StartRefused(str(wrong)) from wrong
    if recorded is None:
        # A queue of another kind, say, which a migrate has refused.
        raise BrokerUnprepared("no migrate has recorded what it made on the broker; run migrate")
    differences = prepared.topology.differences(recorded)
    if differences:
        problem = "the broker was prepared for other settings; run migrate with these, or change them:\n"
        raise StartRefused(problem + "\n".join(differences))


async def wait_for_servers(prepared: Prepared, database: Database, stopping: Stopping) -> None:
    """Wait until `check_servers` passes, for as long as waiting can help. Raises StartRefused."""
    started = accepted = clock.monotonic()
    told = ""
    while not stopping.requested:
        try:
            await check_servers(prepared, database)
        except Exception as error:
            waits = (SchemaBehind, TopologyMissing, BrokerUnprepared, BrokerUnavailable, DatabaseUnavailable)
            if not isinstance(error, waits) and not is_transient(error):
                raise
            if str(error) != told:
                told = str(error)
                _log.warning("waiting for the servers", reason=told)
            now = clock.monotonic()
            if not isinstance(error, BrokerRefuses):
                accepted = now
            if now - accepted > LONGEST_REFUSAL.total_seconds():
                raise StartRefused(told) from error
            if now - started > LONGEST_WAIT.total_seconds():
                problem = f"the servers were not ready within {LONGEST_WAIT}: {told}"
                raise StartRefused(problem) from error
            await clock.sleep(_PAUSE_SECONDS)
        else:
            return


async def join_fleet(
    prepared: Prepared,
    database: Database,
    jobs: Mapping[str, object],
    stopping: Stopping,
    look: Callable[[Session], Awaitable[None]],
) -> datetime | None:
    """Register this process, its declarations and what it knows of each job.

    It waits until the database can be had and is the one it was.

    `look` then reads what else the process must know before it works.
    Gives the database's time of the start; None when a drain was asked for before.
    """
    definitions = fingerprints(prepared.loaded.jobs)
    while not stopping.requested:
        try:
            await await_continuity(database, prepared.instance.id, stopping)
            async with database.session() as session:
                queues = prepared.topology.queue_names
                started_at = await register_instance(session, prepared.instance, jobs, queues, definitions)
                await record_deploy(session, prepared.instance, deployed_version(prepared.settings.otel, VERSION))
                await look(session)
                return started_at
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("waiting for the servers", reason=str(error))
        await clock.sleep(_PAUSE_SECONDS)
    return None
