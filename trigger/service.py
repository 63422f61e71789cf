"""The trigger's composition: what it opens, which loops run side by side, and the order in which it drains.

Draining: no more is claimed or taken over; a fan-out gives its claim back between two pages; then the process says that
it has ended, which gives back its leases, and the connections close.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
from anyio.abc import TaskGroup

from shared import clock
from shared.broker import Publisher
from shared.fleet import beat_instance, register_instance, stop_instance
from shared.health import Health
from shared.job import Job
from shared.lifecycle import run_service, start_part
from shared.logs import logger
from shared.loop import every
from shared.postgres import Database, is_transient
from shared.start import Prepared, wait_for_servers
from shared.stopping import Stopping, Wake
from trigger.claim_outcome import Claimant
from trigger.fan_outs import FanOuts
from trigger.publish import Publishing, publish_pass
from trigger.sweep import Sweeping, stop_silent, sweep_pass, undeclared_jobs
from trigger.tick import Tick

BEAT_INTERVAL = timedelta(seconds=5)
FAN_OUTS_AT_ONCE = 4
PUBLISH_SECONDS = 5.0
LEAST_MARGIN = timedelta(seconds=5)
HELD_BACK_SECONDS = 0.1
DRAIN_MARGIN_SECONDS = 5.0
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
        self.wakes = {name: Wake() for name in jobs}

    async def start(self, group: TaskGroup, stopping: Stopping) -> None:
        """Run until the drain is over."""
        await self.database.open()
        self.health.part("start", lambda: None if self.ready else "waiting for the servers")
        self.health.part("jobs", self._faulty_jobs)
        try:
            await wait_for_servers(self.prepared, self.database, stopping)
            if not stopping.requested:
                await self._run(group, stopping)
        finally:
            await self.publisher.close()
            await self.database.close()

    async def _run(self, group: TaskGroup, stopping: Stopping) -> None:
        async with self.database.session() as session:
            await register_instance(session, self.prepared.instance, {})
        self.health.part("publisher", lambda: self.publisher.problem)
        start_part(group, stopping, "publisher", self.publisher.run)
        async with anyio.create_task_group() as work:
            self._start_loops(work, stopping)
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
        fan_outs = FanOuts(self.database, self.tick.jobs, self.claimant, slots, self._written, stopping)

        async def tick_pass() -> None:
            if await self.tick.register_pass():
                await self._tell_revisions()
            await self.tick.tick_pass(fan_outs.accept)
            await fan_outs.start_pass(work)

        self._start_loop(work, stopping, "tick", settings.tick_interval, tick_pass)
        self._start_loop(work, stopping, "beat", BEAT_INTERVAL, self.beat_pass)
        interval = settings.sweep_interval
        self._start_loop(work, stopping, "sweep undeclared", interval, lambda: self._sweep_undeclared(stopping))
        for name, job in self.tick.jobs.items():
            publish, sweep = self._publishing(job), self._sweeping(name, job.queue)
            self._start_loop(
                work,
                stopping,
                f"publish {name}",
                settings.tick_interval,
                lambda publish=publish: self._publish(publish, stopping),  # type: ignore[misc] # bound for the loop
                self.wakes[name],
            )
            self._start_loop(
                work,
                stopping,
                f"sweep {name}",
                settings.sweep_interval,
                lambda sweep=sweep: self._sweep(sweep, stopping),  # type: ignore[misc] # bound for the loop
            )

    def _start_loop(
        self,
        work: TaskGroup,
        stopping: Stopping,
        name: str,
        interval: timedelta,
        run_pass: Callable[[], Awaitable[object]],
        wake: Wake | None = None,
    ) -> None:
        async def run() -> None:
            await every(
                name, interval, discarding(run_pass), stopping, health=self.health, transient=is_transient, wake=wake
            )

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
            await beat_instance(session, self.prepared.instance.id)
        await stop_silent(self.database)

    async def _tell_revisions(self) -> None:
        held = {name: revision for name, revision in self.tick.revisions.items() if name not in self.tick.stale}
        async with self.database.session() as session:
            await register_instance(session, self.prepared.instance, held)

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
        )

    def _faulty_jobs(self) -> str | None:
        troubles = [*self.prepared.loaded.quarantined, *self.tick.troubles]
        faults = [str(fault) for fault in self.prepared.loaded.faults] if not troubles else []
        return "; ".join(["cannot run: " + ", ".join(troubles)] if troubles else faults) or None

    async def _end(self) -> None:
        """Say goodbye, which gives back the leases."""
        try:
            async with self.database.session() as session:
                await stop_instance(session, self.prepared.instance.id)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("the end was not recorded", reason=str(error))


def discarding(run_pass: Callable[[], Awaitable[object]]) -> Callable[[], Awaitable[None]]:
    """Give a pass whose result nobody waits for."""

    async def run() -> None:
        await run_pass()

    return run


async def serve(prepared: Prepared) -> int:
    """Run a trigger until it is told to stop; give the process's exit code: 2 where it must not run."""
    health = Health()
    return await run_service(
        "trigger",
        Trigger(prepared, health).start,
        grace_period=prepared.settings.grace_period,
        health=health,
        health_address=prepared.settings.health_address,
    )
