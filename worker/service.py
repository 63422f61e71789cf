"""The worker's composition: what it opens, which tasks run side by side, and the order in which it drains.

Draining: no more messages are taken; what waits is handed back as new; what runs may finish within the grace period;
then the last occurrences are looked at, the process says that it has ended, and the connections close.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta

import anyio
from anyio.abc import TaskGroup

from shared.broker import Consumer, Delivery, Publisher
from shared.errors import MatinsError
from shared.fleet import advance_queues, beat_instance, register_instance, stop_instance
from shared.health import Health
from shared.job import Job, Outside
from shared.lifecycle import Stopping, every, run_service, start_part
from shared.logs import FailureLog, logger
from shared.postgres import Database, is_transient
from shared.start import Prepared, wait_for_servers
from worker.closing import Closing
from worker.consume import Desk, Reception, prefetch_for
from worker.deadletter import DeadLetters
from worker.gate import Gate
from worker.handle import Handling
from worker.invoke import Function, Invocation
from worker.occurrences import Occurrences
from worker.outside import OutsideRunner
from worker.resolve import Resolved, resolve
from worker.send import Sender
from worker.tell import Teller
from worker.transaction import Runner

BACKGROUND_CONNECTIONS = 2
CLOSE_INTERVAL = timedelta(milliseconds=200)
BEAT_INTERVAL = timedelta(seconds=5)
DEAD_LETTER_PREFETCH = 8
# What the end of a drain needs after the last handler was stopped: hand back, look at the occurrences, close.
DRAIN_MARGIN_SECONDS = 5.0
_log = logger(__name__)


class NothingToDoHere(MatinsError):
    """None of the jobs' handlers can be called by this worker."""


@dataclass(slots=True)
class Worker:
    """One worker process, composed."""

    prepared: Prepared
    health: Health
    resolved: Resolved = field(init=False)
    database: Database = field(init=False)
    background: Database = field(init=False)
    publisher: Publisher = field(init=False)
    consumer: Consumer = field(init=False)
    reception: Reception = field(init=False)
    closing: Closing = field(init=False)
    dead_letters: DeadLetters = field(init=False)
    failures: FailureLog = field(init=False)

    def __post_init__(self) -> None:
        """Compose everything; nothing is connected yet. Raises NothingToDoHere."""
        settings, instance = self.prepared.settings, self.prepared.instance
        self.resolved = resolve(self.prepared.loaded.jobs)
        for name, problem in self.resolved.problems.items():
            _log.error("handler cannot be called", job=name, reason=problem)
        if not self.resolved.functions:
            raise NothingToDoHere
        jobs = {name: self.prepared.loaded.jobs[name] for name in self.resolved.functions}
        slots = sum(job.handler.concurrency for job in jobs.values())
        # Handlers may hold all their connections for as long as they run; what keeps the worker alive must not wait.
        self.background = self.prepared.database(BACKGROUND_CONNECTIONS)
        self.database = self.prepared.database(min(settings.pool_size - BACKGROUND_CONNECTIONS, slots))
        self.failures = FailureLog(_log)
        self.closing = Closing(self.background, instance.id)
        heartbeat, timeout = int(settings.broker_heartbeat.total_seconds()), settings.broker_timeout.total_seconds()
        name = f"matins worker {instance.id[:8]}"

        def url() -> str:
            return settings.secret("broker_url")

        self.publisher = Publisher(url, name=f"{name} publish", heartbeat=heartbeat, timeout=timeout)
        sender = Sender(self.publisher, self.prepared.topology)
        occurrences = Occurrences()
        self.dead_letters = DeadLetters(self.background, occurrences, self.closing, settings.max_crashes)
        self.reception = self._reception(jobs, sender, occurrences)
        self.consumer = Consumer(
            url, self._prefetches(jobs), name=f"{name} consume", heartbeat=heartbeat, timeout=timeout
        )

    def _reception(self, jobs: Mapping[str, Job], sender: Sender, occurrences: Occurrences) -> Reception:
        gate, desks = Gate(), {}
        for name, job in jobs.items():
            handling = Handling(
                job,
                self._runner(job, self.resolved.functions[name]),
                self.database,
                self.background,
                sender,
                occurrences,
                self.closing,
                gate,
                Teller(name, self.failures),
                self.prepared.settings.max_crashes,
            )
            desks[name] = Desk(handling)
        queues = {self.prepared.topology.work_queue(job.queue): job.queue for job in jobs.values()}
        return Reception(sender, desks, queues, self.failures)

    def _runner(self, job: Job, function: Function) -> Runner | OutsideRunner:
        settings, instance = self.prepared.settings, self.prepared.instance
        invocation = Invocation(function, job.handler.timeout, anyio.CapacityLimiter(job.handler.concurrency))
        if isinstance(job.handler, Outside):
            return OutsideRunner(job, invocation, instance.id, settings.outside_lease, settings.max_crashes)
        return Runner(job, invocation, instance.id)

    def _prefetches(self, jobs: Mapping[str, Job]) -> dict[str, int]:
        topology, beside = self.prepared.topology, self.prepared.settings.prefetch
        keys = {job.queue for job in jobs.values()}
        prefetches = {
            topology.work_queue(key): prefetch_for((job for job in jobs.values() if job.queue == key), beside)
            for key in keys
        }
        return prefetches | {topology.accounted_queue: DEAD_LETTER_PREFETCH}

    async def start(self, group: TaskGroup, stopping: Stopping) -> None:
        """Run until the drain is over."""
        await self.database.open()
        await self.background.open()
        ready = False
        self.health.part("start", lambda: None if ready else "waiting for the servers")
        await wait_for_servers(self.prepared, self.database, stopping)
        if stopping.requested:
            return
        async with self.database.session() as session:
            await register_instance(session, self.prepared.instance, self.resolved.as_record())
        self.health.part("publisher", lambda: self.publisher.problem)
        self.health.part("consumer", lambda: None if stopping.requested else self.consumer.problem)
        self.health.part("handlers", self._handlers)
        start_part(group, stopping, "publisher", self.publisher.run)
        self._start_loop(group, stopping, "close", CLOSE_INTERVAL, self.closing.close_pass)
        self._start_loop(group, stopping, "beat", BEAT_INTERVAL, self.beat_pass)
        async with anyio.create_task_group() as work:
            self._start_slots(work, stopping)
            start_part(group, stopping, "consumer", lambda: self.consumer.run(self._deliver))
            ready = True
            _log.info("working", jobs=sorted(self.resolved.functions))
            await stopping.wait()
            grace = self.prepared.settings.grace_period.total_seconds()
            work.cancel_scope.deadline = anyio.current_time() + grace - min(DRAIN_MARGIN_SECONDS, grace / 2)
            await self.consumer.stop_consuming()
            self.reception.close()
            self.dead_letters.close()
        await self._end()

    def _start_loop(
        self,
        group: TaskGroup,
        stopping: Stopping,
        name: str,
        interval: timedelta,
        run_pass: Callable[[], Awaitable[None]],
    ) -> None:
        async def run() -> None:
            await every(name, interval, run_pass, stopping, health=self.health, transient=is_transient)

        start_part(group, stopping, name, run)

    def _start_slots(self, work: TaskGroup, stopping: Stopping) -> None:
        for name, desk in self.reception.desks.items():
            for number in range(desk.handling.job.handler.concurrency):
                work.start_soon(desk.slot, stopping, name=f"{name} slot {number}")
        work.start_soon(self.reception.handle_odd, name="odd messages")
        work.start_soon(self.dead_letters.work, stopping, name="dead letters")

    def _deliver(self, delivery: Delivery) -> None:
        if delivery.queue == self.prepared.topology.accounted_queue:
            self.dead_letters.incoming.send_nowait(delivery)
        else:
            self.reception.deliver(delivery)

    def _handlers(self) -> str | None:
        faulty = [*self.resolved.problems, *self.prepared.loaded.quarantined]
        return f"cannot be called: {', '.join(faulty)}" if faulty else None

    async def beat_pass(self) -> None:
        """Say that the worker lives, and how far its queues have been worked off."""
        self.failures.report()
        async with self.background.session() as session:
            await beat_instance(session, self.prepared.instance.id)
            await advance_queues(session, self.reception.take_started())

    async def _end(self) -> None:
        """Look at the last occurrences, say goodbye, and close what is open."""
        self.failures.report(everything=True)
        try:
            await self.closing.close_pass()
            async with self.background.session() as session:
                await advance_queues(session, self.reception.take_started())
                await stop_instance(session, self.prepared.instance.id)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("the end was not recorded", reason=str(error))
        await self.consumer.close()
        await self.publisher.close()
        await self.database.close()
        await self.background.close()


async def serve(prepared: Prepared) -> int:
    """Run a worker until it is told to stop; give the process's exit code."""
    health = Health()
    worker = Worker(prepared, health)
    return await run_service(
        "worker",
        worker.start,
        grace_period=prepared.settings.grace_period,
        health=health,
        health_address=prepared.settings.health_address,
    )
