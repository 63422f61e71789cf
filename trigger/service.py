"""The trigger's composition: what it opens, which loops run side by side, and the order in which it drains.

Draining: no more is claimed or taken over; a fan-out gives its claim back between two pages; then the process says that
it has ended, which gives back its leases, and the connections close.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial

import anyio
from anyio.abc import TaskGroup

from shared import clock
from shared.broker import Publisher
from shared.fleet import Spoken, end_silent_sessions, register_instance, release_leases, stop_instance
from shared.health import Health
from shared.job import Job
from shared.lifecycle import End, run_service, start_part
from shared.limits import BEAT_INTERVAL
from shared.logs import logger
from shared.loop import every
from shared.masking import text_of
from shared.notify import Notifying
from shared.postgres import Database, is_transient
from shared.restore import Witness
from shared.start import Prepared, join_fleet, wait_for_servers
from shared.stopping import Stopping, Wake
from shared.watch_pass import Watch
from trigger.claim_outcome import Claimant
from trigger.endpoints import start_endpoints
from trigger.fan_outs import FanOuts
from trigger.observe import INTERVAL as OBSERVE_INTERVAL
from trigger.observe import Observer
from trigger.publish import Publishing, publish_pass
from trigger.seal_audit import SEAL_INTERVAL, seal_pass
from trigger.source_roles import SourceRoles
from trigger.surroundings import Surroundings
from trigger.sweep import Sweeping, stop_silent, sweep_pass, undeclared_jobs
from trigger.tell_heads import Heads
from trigger.tick import Tick

FAN_OUTS_AT_ONCE = 4
PUBLISH_SECONDS = 5.0
LEAST_MARGIN = timedelta(seconds=5)
HELD_BACK_SECONDS = 0.1
DRAIN_MARGIN_SECONDS = 5.0
GOODBYE_SECONDS = 3.0
_log = logger(__name__)


@dataclass(slots=True)
class Trigger:
    """One trigger process, composed; nothing is connected before `start`."""

    prepared: Prepared
    health: Health
    database: Database = field(init=False)
    publisher: Publisher = field(init=False)
    claimant: Claimant = field(init=False)
    tick: Tick = field(init=False)
    wakes: dict[str, Wake] = field(init=False)
    witness: Witness = field(init=False)
    spoken: Spoken = field(default_factory=Spoken)
    surroundings: Surroundings = field(init=False)
    source_roles: SourceRoles = field(init=False)
    ready: bool = False

    def __post_init__(self) -> None:
        """Compose everything."""
        settings, instance, jobs = self.prepared.settings, self.prepared.instance, self.prepared.loaded.jobs
        self.database = self.prepared.database(settings.pool_size)
        self.publisher = Publisher(
            lambda: settings.secret("broker_url"),
            name=f"matins trigger {instance.id[:8]} publish",
            heartbeat=int(settings.broker_heartbeat.total_seconds()),
            timeout=settings.broker_timeout.total_seconds(),
        )
        self.claimant = Claimant(instance.id, instance.region, settings.claim_lease)
        self.tick = Tick(self.database, jobs, self.claimant)
        self.surroundings = Surroundings(self.prepared.topology)
        self.wakes = {name: Wake() for name in jobs}
        self.source_roles = SourceRoles(jobs, settings.database_roles)

    async def start(self, group: TaskGroup, stopping: Stopping) -> None:
        """Run until the drain is over."""
        await self.database.open()
        self.health.part("start", lambda: None if self.ready else "waiting for the servers")
        self.health.part("jobs", self._faulty_jobs)
        try:
            started_at = None
            with stopping.cutting_off():
                await wait_for_servers(self.prepared, self.database, stopping)
                started_at = await join_fleet(self.prepared, self.database, {}, stopping, self.source_roles.look)
            if started_at is not None:
                await self._run(group, stopping, started_at)
        finally:
            await self.publisher.close()
            await self.database.close()

    async def _run(self, group: TaskGroup, stopping: Stopping, started_at: datetime) -> None:
        self.witness = Witness(self.prepared.instance.id, started_at)
        self.database.examine_new(self.witness.examine)
        self.health.part("hold", lambda: self.witness.held)
        self.health.part("roles", lambda: self.source_roles.problem)
        self.health.part("publisher", lambda: self.publisher.problem)
        start_part(group, stopping, "publisher", self.publisher.run)
        async with anyio.create_task_group() as work:
            self._start_loops(work, stopping)
            Notifying(self.prepared, self.database).start(work, stopping, self.health)
            start_endpoints(work, stopping, self.prepared, self.health, self.witness.examine)
            self.ready = True
            _log.info("working", jobs=sorted(self.tick.jobs))
            await stopping.wait()
            grace = self.prepared.settings.grace_period.total_seconds()
            # What still reads a page then is cancelled, and gives its claim back; the rest is for saying goodbye.
            work.cancel_scope.deadline = anyio.current_time() + grace - min(DRAIN_MARGIN_SECONDS, grace / 2)
        await self._end()

    def _start_loops(self, work: TaskGroup, stopping: Stopping) -> None:
        settings = self.prepared.settings
        slots = max(1, min(FAN_OUTS_AT_ONCE, settings.pool_size // 3))
        fan_outs = FanOuts(
            self.database, self.tick.jobs, self.claimant, slots, self._written, stopping, settings.database_roles
        )
        self.health.part("fan-outs", lambda: fan_outs.problem)

        async def tick_pass() -> None:
            if await self.tick.register_pass():
                await self._tell_revisions()
            await self.tick.tick_pass(fan_outs.accept)
            await fan_outs.start_pass(work)

        self._start_loop(work, stopping, "tick", settings.tick_interval, tick_pass, afterwards=self._resign)
        self._start_loop(work, stopping, "beat", BEAT_INTERVAL, self.beat_pass)
        seal = partial(seal_pass, self.database, self.prepared.instance.id)
        self._start_loop(work, stopping, "seal audit", SEAL_INTERVAL, seal)
        heads = Heads(self.prepared, self.database)
        self._start_loop(work, stopping, "tell audit heads", SEAL_INTERVAL, heads.tell_pass)
        watch = Watch.of(self.prepared, self.database)
        self.health.part("detectors", watch.problem)
        self._start_loop(work, stopping, "watch", watch.interval, watch.keep)
        observer = Observer(self.database, self.prepared.instance.id)
        self._start_loop(work, stopping, "observe", OBSERVE_INTERVAL, observer.observe_pass)
        interval = settings.sweep_interval
        self._start_loop(work, stopping, "sweep undeclared", interval, lambda: self._sweep_undeclared(stopping))
        for name, job in self.tick.jobs.items():
            # What every worker runs for itself, or something else does, has no queue, and nothing to publish.
            queue = job.queue if job.has_messages else None
            sweep = partial(self._sweep, self._sweeping(name, queue), stopping)
            self._start_loop(work, stopping, f"sweep {name}", settings.sweep_interval, sweep)
            if job.has_messages:
                publish = partial(self._publish, self._publishing(job), stopping)
                self._start_loop(work, stopping, f"publish {name}", settings.tick_interval, publish, self.wakes[name])

    def _start_loop(
        self,
        work: TaskGroup,
        stopping: Stopping,
        name: str,
        interval: timedelta,
        run_pass: Callable[[], Awaitable[object]],
        wake: Wake | None = None,
        afterwards: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        async def run() -> None:
            await every(
                name, interval, discarding(run_pass), stopping, health=self.health, transient=is_transient, wake=wake
            )
            if afterwards is not None:
                await afterwards()

        start_part(work, stopping, name, run)

    async def _publish(self, publishing: Publishing, stopping: Stopping) -> None:
        """Publish for as long as there is something to publish, and look often while the workers make room."""
        ends_at = clock.monotonic() + PUBLISH_SECONDS
        while not stopping.requested:
            done = await publish_pass(publishing)
            if not (done.more or done.held_back):
                return
            if clock.monotonic() > ends_at:
                self.wakes[publishing.job.name].set()
                return
            if done.held_back:
                await clock.sleep(HELD_BACK_SECONDS)

    async def _sweep(self, sweeping: Sweeping, stopping: Stopping) -> None:
        """Sweep for as long as a pass finds more than it may do at once."""
        while (await sweep_pass(sweeping)).more and not stopping.requested:
            pass

    async def _sweep_undeclared(self, stopping: Stopping) -> None:
        """Sweep what is still active of jobs that this process doesn't declare: nobody else may."""
        async with self.database.session() as session:
            found = await undeclared_jobs(session, self.tick.jobs)
        for name, queue in found:
            await self._sweep(self._sweeping(name, queue), stopping)

    async def beat_pass(self) -> None:
        """Say that the trigger lives, and of silent processes that they don't."""
        async with self.database.session() as session:
            await self.witness.beat(session)
            await end_silent_sessions(session)
            await self.spoken.listen(session)
            await self.surroundings.look(session)
            await self.source_roles.look(session)
        await stop_silent(self.database)

    async def _tell_revisions(self) -> None:
        async with self.database.session() as session:
            await register_instance(session, self.prepared.instance, self._held(), self.prepared.topology.queue_names)

    def _held(self) -> dict[str, int]:
        """Give the revision of each job that this process holds for the current one."""
        return {name: revision for name, revision in self.tick.revisions.items() if name not in self.tick.stale}

    def _written(self, job: str) -> None:
        self.wakes[job].set()

    def _publishing(self, job: Job) -> Publishing:
        settings, topology = self.prepared.settings, self.prepared.topology
        return Publishing(
            self.database,
            job,
            self.publisher.publish_many,
            topology.work_exchange,
            self.claimant.instance,
            settings.claim_lease,
            settings.in_flight,
            routing_key=topology.routing_key(job.queue),
            spoken=self.spoken,
        )

    def _sweeping(self, job: str, queue: str | None) -> Sweeping:
        settings, named = self.prepared.settings, self.prepared.topology.work_queue(queue or "")
        return Sweeping(
            self.database,
            job,
            queue,
            lambda: self.publisher.queue_depth(named),
            self.claimant.instance,
            settings.claim_lease,
            settings.resend_after,
            # A page's messages are read before they are sent, and confirmed within the timeout.
            max(LEAST_MARGIN, settings.broker_timeout),
            drained=lambda: self.surroundings.drained(job, queue, self.publisher.queue_depth),
        )

    def _faulty_jobs(self) -> str | None:
        troubles = [*self.prepared.loaded.quarantined, *self.tick.troubles]
        faults = [str(fault) for fault in self.prepared.loaded.faults] if not troubles else []
        return "; ".join(["cannot run: " + ", ".join(troubles)] if troubles else faults) or None

    async def _resign(self) -> None:
        """Let another trigger lead at once, while this one still drains; unsaid, the lead runs out."""
        await self._in_time(self.tick.resign, "leadership was not given back")

    async def _end(self) -> None:
        """Say goodbye, which gives back the leases; what cannot be said in time is left."""

        async def say() -> None:
            async with self.database.session() as session:
                await release_leases(session, self.prepared.instance.id)
                await stop_instance(session, self.prepared.instance.id)

        await self._in_time(say, "the end was not recorded")

    async def _in_time(self, step: Callable[[], Awaitable[None]], failure: str) -> None:
        try:
            with anyio.fail_after(GOODBYE_SECONDS):
                await step()
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning(failure, reason=text_of(error) or type(error).__name__)


def discarding(run_pass: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
    """Give a pass whose result nobody waits for."""

    async def run() -> None:
        await run_pass()

    return run


async def serve(prepared: Prepared) -> End:
    """Run a trigger until it is told to stop; say how it has ended, with exit code 2 where it must not run."""
    health = Health()
    return await run_service(
        "trigger",
        Trigger(prepared, health).start,
        grace_period=prepared.settings.grace_period,
        health=health,
        health_address=prepared.settings.health_address,
    )
