"""The worker's composition: what it opens, which tasks run side by side, and the order in which it drains.

Draining: no more messages are taken; what waits is handed back as new; what runs may finish within the grace period;
then the last occurrences are looked at, the process says that it has ended, and the connections close.
"""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

import anyio
from anyio.abc import TaskGroup

from shared.broker import Consumer, Delivery, Publisher
from shared.errors import MatinsError
from shared.fleet import Spoken, advance_queues, end_silent_sessions, read_topology, stop_instance
from shared.health import Health
from shared.job import Job, Outside
from shared.lifecycle import End, Stopping, every, run_service, start_part
from shared.limits import BEAT_INTERVAL
from shared.logs import FailureLog, logger
from shared.masking import text_of
from shared.notify import Notifying
from shared.postgres import Database, is_transient
from shared.restore import Witness
from shared.start import Prepared, join_fleet, wait_for_servers
from shared.watch_pass import Watch
from worker.closing import Closing
from worker.consume import Desk, Reception, prefetch_for
from worker.deadletter import DeadLetters
from worker.elsewhere import Elsewhere
from worker.gate import Gate
from worker.handle import Handling
from worker.invoke import Function, Invocation
from worker.left_behind import LeftBehind
from worker.logins import Logins
from worker.occurrences import Occurrences
from worker.outside import OutsideRunner
from worker.own_jobs import OwnJobs, served_by_messages
from worker.resolve import Resolved, resolve
from worker.send import Sender
from worker.tell import Teller
from worker.transaction import Runner

BACKGROUND_CONNECTIONS = 2
CLOSE_INTERVAL = timedelta(milliseconds=200)
DEAD_LETTER_PREFETCH = 8
# What the end of a drain needs after the last handler was stopped: hand back, look at the occurrences, close.
DRAIN_MARGIN_SECONDS = 5.0
GOODBYE_SECONDS = 3.0
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
    witness: Witness = field(init=False)
    logins: Logins = field(init=False)
    spoken: Spoken = field(default_factory=Spoken)
    left_behind: LeftBehind = field(default_factory=LeftBehind)
    own_jobs: OwnJobs = field(init=False)
    elsewhere: Elsewhere = field(init=False)

    def __post_init__(self) -> None:
        """Compose everything; nothing is connected yet. Raises NothingToDoHere or FaultySettings."""
        settings, instance = self.prepared.settings, self.prepared.instance
        self.resolved = resolve(self.prepared.loaded.jobs)
        for name, problem in self.resolved.problems.items():
            _log.error("handler cannot be called", job=name, reason=problem)
        if not self.resolved.functions:
            raise NothingToDoHere
        jobs = {name: self.prepared.loaded.jobs[name] for name in self.resolved.functions}
        self.logins = Logins(self.prepared, jobs)
        slots = sum(job.handler.concurrency for job in jobs.values())
        # Handlers may hold all their connections for as long as they run; what keeps the worker alive must not wait.
        self.background = self.prepared.database(BACKGROUND_CONNECTIONS)
        self.database = self.prepared.database(min(settings.pool_size - BACKGROUND_CONNECTIONS, slots))
        self.failures = FailureLog(_log)
        self.elsewhere = Elsewhere(instance.id, self.resolved.problems)
        self.closing = Closing(self.background, instance.id)
        heartbeat, timeout = int(settings.broker_heartbeat.total_seconds()), settings.broker_timeout.total_seconds()
        name = f"matins worker {instance.id[:8]}"

        def url() -> str:
            return settings.secret("broker_url")

        self.publisher = Publisher(url, name=f"{name} publish", heartbeat=heartbeat, timeout=timeout)
        sender = Sender(self.publisher, self.prepared.topology, self.spoken)
        occurrences = Occurrences()
        self.dead_letters = DeadLetters(self.background, occurrences, self.closing, settings.max_crashes)
        served = served_by_messages(jobs)
        self.own_jobs = OwnJobs(
            self.prepared, self.resolved, self.database, self.closing, self.failures, self.left_behind
        )
        self.reception = self._reception(served, sender, occurrences)
        self.consumer = Consumer(
            url, self._prefetches(served), name=f"{name} consume", heartbeat=heartbeat, timeout=timeout
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
                self.logins.pool(job) or self.database,
            )
            desks[name] = Desk(handling)
        return Reception(sender, desks, self.failures, self.elsewhere)

    def _runner(self, job: Job, function: Function) -> Runner | OutsideRunner:
        settings, instance = self.prepared.settings, self.prepared.instance
        threads = anyio.CapacityLimiter(job.handler.concurrency)
        invocation = Invocation(function, job.handler.timeout, threads, job.name, self.left_behind)
        if isinstance(job.handler, Outside):
            return OutsideRunner(job, invocation, instance.id, settings.outside_lease, settings.max_crashes)
        return Runner(job, invocation, instance.id, names=settings.database_roles)

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
        drained = anyio.Event()
        try:
            await self._run(group, stopping, drained)
        finally:
            await self._close()
        drained.set()

    async def _run(self, group: TaskGroup, stopping: Stopping, drained: anyio.Event) -> None:
        ready = False
        self.health.part("start", lambda: None if ready else "waiting for the servers")
        started_at = None
        with stopping.cutting_off():
            await wait_for_servers(self.prepared, self.database, stopping)
            await self.logins.open()
            known = self.resolved.as_record()
            started_at = await join_fleet(self.prepared, self.database, known, stopping, self.logins.look)
        if started_at is None:
            return
        self.witness = Witness(self.prepared.instance.id, started_at)
        for database in (self.database, self.background):
            database.examine_new(self.witness.examine)
        self.logins.examine_new(self.background, self.witness.examine)
        self.health.part("hold", lambda: self.witness.held)
        self._start_parts(group, stopping, drained)
        async with anyio.create_task_group() as work:
            # Ended before the goodbye: two looks at once get in each other's way, and a late sign of life undoes it.
            self._start_loops(work, stopping)
            self._start_slots(work, stopping)
            self.own_jobs.start(work, stopping, self.health, started_at)
            Notifying(self.prepared, self.background).start(work, stopping, self.health)
            start_part(group, stopping, "consumer", lambda: self.consumer.run(self._deliver))
            ready = True
            _log.info("working", jobs=sorted(self.resolved.functions))
            await stopping.wait()
            grace = self.prepared.settings.grace_period.total_seconds()
            work.cancel_scope.deadline = anyio.current_time() + grace - min(DRAIN_MARGIN_SECONDS, grace / 2)
            await self.consumer.stop_consuming()
            self.reception.close()
            self.dead_letters.close()
        await self._say_goodbye()

    def _start_parts(self, group: TaskGroup, stopping: Stopping, drained: anyio.Event) -> None:
        self.health.part("publisher", lambda: self.publisher.problem)
        self.health.part("consumer", lambda: None if stopping.requested else self.consumer.problem)
        self.health.part("handlers", self._handlers)
        self.health.part("code", self.elsewhere.problem)
        self.health.part("roles", lambda: self.logins.problem)
        self.health.part("plain functions", self.left_behind.problem)
        start_part(group, stopping, "plain functions", lambda: self.left_behind.watch(stopping, drained))
        start_part(group, stopping, "publisher", self.publisher.run)

    def _start_loops(self, work: TaskGroup, stopping: Stopping) -> None:
        def start(name: str, interval: timedelta, run_pass: Callable[[], Awaitable[None]]) -> None:
            run = partial(every, name, interval, run_pass, stopping, health=self.health, transient=is_transient)
            start_part(work, stopping, name, run)

        start("close", CLOSE_INTERVAL, self.closing.close_pass)
        start("beat", BEAT_INTERVAL, self.beat_pass)
        watch = Watch.of(self.prepared, self.background)
        self.health.part("detectors", watch.problem)
        start("watch", watch.interval, watch.keep)

    def _start_slots(self, work: TaskGroup, stopping: Stopping) -> None:
        for name, desk in self.reception.desks.items():
            for number in range(desk.handling.job.handler.concurrency):
                start_part(work, stopping, f"{name} slot {number}", partial(desk.slot, stopping))
        start_part(work, stopping, "odd messages", self.reception.handle_odd)
        start_part(work, stopping, "dead letters", partial(self.dead_letters.work, stopping))

    def _deliver(self, delivery: Delivery) -> None:
        if delivery.queue == self.prepared.topology.accounted_queue:
            self.dead_letters.incoming.send_nowait(delivery)
        else:
            self.reception.deliver(delivery)

    def _handlers(self) -> str | None:
        faulty = [*self.resolved.problems, *self.prepared.loaded.quarantined]
        return f"cannot be called: {', '.join(faulty)}" if faulty else None

    async def beat_pass(self) -> None:
        """Say that the worker lives and how far its queues have been worked off; follow the versions of these."""
        self.failures.report()
        async with self.background.session() as session:
            await self.witness.beat(session)
            await end_silent_sessions(session)
            await self.spoken.listen(session)
            await self.elsewhere.look(session)
            await advance_queues(session, self.reception.take_started())
            await self.closing.tell_settled(session)
            await self.logins.look(session)
            await self.own_jobs.tell(session)
            recorded = await read_topology(session)
        await self.consumer.consume_also(self._other_versions(recorded))

    def _other_versions(self, recorded: Mapping[str, Any] | None) -> dict[str, int]:
        """Give the prefetches of our queues as other arguments made them: what is still in there is ours too."""
        topology = self.prepared.topology
        prefetches = self._prefetches({name: desk.handling.job for name, desk in self.reception.desks.items()})
        others = topology.other_versions(recorded)
        current = {name: topology.work_queue(key) for name, key in others.items()}
        return {name: prefetches[queue] for name, queue in current.items() if queue in prefetches}

    async def _say_goodbye(self) -> None:
        """Look at the last occurrences, and say that this process has ended; what cannot be said in time is left."""
        self.failures.report(everything=True)
        try:
            with anyio.fail_after(GOODBYE_SECONDS):
                await self.closing.close_pass()
                async with self.background.session() as session:
                    await advance_queues(session, self.reception.take_started())
                    await stop_instance(session, self.prepared.instance.id)
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("the end was not recorded", reason=text_of(error) or type(error).__name__)

    async def _close(self) -> None:
        """Close what is open; a server that does not answer holds up each for a bounded time."""
        await self.consumer.close()
        await self.publisher.close()
        async with anyio.create_task_group() as closing:
            closing.start_soon(self.database.close)
            closing.start_soon(self.background.close)
            closing.start_soon(self.logins.close)


async def serve(prepared: Prepared) -> End:
    """Run a worker until it is told to stop; say how it has ended."""
    health = Health()
    worker = Worker(prepared, health)
    return await run_service(
        "worker",
        worker.start,
        grace_period=prepared.settings.grace_period,
        health=health,
        health_address=prepared.settings.health_address,
    )
