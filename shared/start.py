"""What both processes do before they work: read settings and jobs, and see that the servers are theirs and ready.

The running services neither migrate the database nor make anything on the broker. They wait, not ready, for a migrate
that is still to come, and refuse at once what no waiting mends: another environment, a queue with other arguments.
"""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from shared import clock, logs, telemetry
from shared.broker import BrokerUnavailable, TopologyMissing, check_topology
from shared.broker import WrongEnvironment as WrongBroker
from shared.errors import MatinsError
from shared.fleet import Instance
from shared.job import Job
from shared.lifecycle import instance_id
from shared.load import Loaded, load_jobs
from shared.migrate import SchemaBehind, WrongEnvironment, check_schema, enter_environment
from shared.packages import check_packages
from shared.postgres import Database, DatabaseUnavailable, is_transient
from shared.settings import Settings, load_settings
from shared.stopping import Stopping
from shared.topology import Topology
from shared.version import VERSION
from shared.zones import tzdata_version, tzdata_warning

LONGEST_WAIT = timedelta(minutes=5)
_PAUSE_SECONDS = 1.0
_log = logs.logger(__name__)


class StartRefused(MatinsError):
    """The process must not start here; no waiting mends it."""

    exit_code = 2


@dataclass(frozen=True, slots=True)
class Prepared:
    """What a service starts with."""

    settings: Settings
    loaded: Loaded
    instance: Instance
    topology: Topology

    def database(self, size: int) -> Database:
        """Make the pool of this process, of at most `size` connections; it still has to be opened."""
        settings = self.settings
        return Database(
            lambda: settings.secret("database_url"),
            name=f"matins {self.instance.kind} {self.instance.id[:8]}",
            size=size,
            timeout=settings.database_timeout,
            statement_cache_size=settings.statement_cache_size,
        )


def topology_of(settings: Settings, jobs: Mapping[str, Job]) -> Topology:
    """Give the broker's parts that these jobs need. Raises InvalidTopology."""
    queues = frozenset(job.queue for job in jobs.values())
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
    for fault in loaded.faults:
        _log.error("faulty declaration", fault=str(fault))
    for job in loaded.jobs.values():
        for doubt in job.schedule.warnings():
            _log.warning("schedule", job=job.name, warning=doubt)
    _log.info("starting", version=VERSION, host=instance.host, tzdata=instance.tzdata_version, jobs=sorted(loaded.jobs))
    if warning := tzdata_warning():
        _log.info("time zones", remark=warning)
    return Prepared(settings, loaded, instance, topology_of(settings, loaded.jobs))


async def check_servers(prepared: Prepared, database: Database) -> None:
    """See that both servers are there, are of this environment, and have what this release needs.

    Raises StartRefused for what no waiting mends; otherwise SchemaBehind, TopologyMissing, BrokerUnavailable or a
    driver's error.
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
    differences = prepared.topology.differences(recorded) if recorded else []
    if differences:
        problem = "the broker was prepared for other settings; run migrate with these, or change them:\n"
        raise StartRefused(problem + "\n".join(differences))


async def wait_for_servers(prepared: Prepared, database: Database, stopping: Stopping) -> None:
    """Wait until `check_servers` passes, for as long as waiting can help. Raises StartRefused."""
    started = clock.monotonic()
    told = ""
    while not stopping.requested:
        try:
            await check_servers(prepared, database)
        except Exception as error:
            waits = (SchemaBehind, TopologyMissing, BrokerUnavailable, DatabaseUnavailable)
            if not isinstance(error, waits) and not is_transient(error):
                raise
            if str(error) != told:
                told = str(error)
                _log.warning("waiting for the servers", reason=told)
            if clock.monotonic() - started > LONGEST_WAIT.total_seconds():
                problem = f"the servers were not ready within {LONGEST_WAIT}: {told}"
                raise StartRefused(problem) from error
            await clock.sleep(_PAUSE_SECONDS)
        else:
            return
