"""Processes of the model: the product's passes in loops whose every step waits for its turn."""

import asyncio
import math
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import anyio

from schemas.occurrence import Identity
from shared.broker import Outgoing
from shared.fleet import Instance, Spoken, advance_queues, register_instance
from shared.job import Job, Outside
from shared.logs import FailureLog, logger
from shared.postgres import Session, is_transient
from shared.restore import Witness
from shared.stopping import Stopping
from shared.terminal import Refused
from tests.model import steps
from tests.model.broker import TOPOLOGY, ModelPublisher
from tests.model.database import ModelDatabase, ModelSession
from tests.model.jobs import JOB
from tests.model.turns import PROCESS, Killed
from trigger.backfill import Range, backfill, cancel_backfill
from trigger.claim_outcome import Claimant
from trigger.fan_outs import FanOuts
from trigger.operate import Choice, Order, cancel, fire, rerun
from trigger.pauses import Meanwhile, pause, resume
from trigger.publish import Publishing, publish_pass
from trigger.sweep import Sweeping, stop_silent, sweep_pass
from trigger.tick import Tick
from worker.closing import Closing
from worker.consume import Desk, Reception
from worker.deadletter import DeadLetters
from worker.elsewhere import Elsewhere
from worker.gate import Gate
from worker.handle import Handling
from worker.invoke import Invocation
from worker.occurrences import Occurrences
from worker.outside import OutsideRunner
from worker.send import Sender
from worker.tell import Teller
from worker.transaction import Runner

if TYPE_CHECKING:
    from tests.model.world import World

LEASE = timedelta(seconds=30)
RESEND_AFTER = timedelta(seconds=60)
MAX_CRASHES = 3
PREFETCH = 3
MOST_BACKFILLED = 2
_log = logger(__name__)


@dataclass(eq=False, slots=True)
class Process:
    """A process: what it holds is gone when it dies."""

    world: "World"
    name: str
    lines: int = 0
    dead: bool = False
    frozen_until: datetime | None = None
    sessions: dict[ModelSession, None] = field(default_factory=dict)
    sending: list[Outgoing] = field(default_factory=list)
    task: "asyncio.Task[None] | None" = None

    def check(self) -> None:
        """Raise Killed in a dead process."""
        if self.dead:
            raise Killed

    @property
    def frozen(self) -> bool:
        """Whether it takes no turn now."""
        return self.frozen_until is not None and self.frozen_until > self.world.now

    def start(self) -> None:
        """Begin."""
        self.task = asyncio.create_task(self._run(), name=self.name)

    async def _run(self) -> None:
        PROCESS.set(self)
        try:
            await self.live(ModelDatabase(self.world, self))
        except BaseException as error:  # noqa: BLE001 - a dead process may end in any way
            if not self.dead:
                self.world.violation(f"{self.name} ended by itself: {error!r}", error)

    async def live(self, database: ModelDatabase) -> None:
        """Do what the process is for."""
        raise NotImplementedError

    def loop(
        self, name: str, run: Callable[[], Awaitable[Any]], ready: Callable[[], bool] = lambda: True
    ) -> Callable[[], Coroutine[Any, Any, None]]:
        """Give a loop of passes, as the services have them: a server that is away is tried again."""

        async def passes() -> None:
            while True:
                line = await self.world.turns.take(name, idle=True, ready=ready)
                line.last, line.intent = "begin", name
                try:
                    await run()
                except Exception as error:
                    if not is_transient(error):
                        raise

        return passes


@dataclass(eq=False, slots=True)
class TriggerProcess(Process):
    """A trigger with one release of the code."""

    job: Job = field(kw_only=True)

    async def live(self, database: ModelDatabase) -> None:
        """Tick, publish, sweep and beat."""
        world, name = self.world, self.job.name
        claimant = Claimant(self.name, "north", LEASE)
        tick = Tick(database, {name: self.job}, claimant)
        instance = Instance(self.name, "trigger", "model", "0", "", "model")
        witness, spoken = Witness(self.name, await self._say(database, instance, {})), Spoken()
        async with anyio.create_task_group() as group:
            fan_outs = FanOuts(database, tick.jobs, claimant, 2, lambda _name: None, Stopping())

            async def tick_pass() -> None:
                if await tick.register_pass():
                    await self._say(
                        database, instance, {n: r for n, r in tick.revisions.items() if n not in tick.stale}
                    )
                await tick.tick_pass(fan_outs.accept)
                await fan_outs.start_pass(group)
                if tick.troubles:
                    world.violation(f"a tick is in trouble: {tick.troubles}")

            async def beat_pass() -> None:
                async with database.session() as session:
                    await witness.beat(session)
                    await spoken.listen(session)
                await stop_silent(database)

            publisher = ModelPublisher(world, self, "publish")
            publishing = Publishing(
                database,
                self.job,
                publisher.publish_many,
                TOPOLOGY.work_exchange,
                self.name,
                LEASE,
                world.profile.bound,
            )
            own = self.job.coordination == "every"
            queue = None if own else self.job.queue
            sweeping = Sweeping(database, name, queue, world.depth, self.name, LEASE, RESEND_AFTER)
            group.start_soon(self.loop("tick", tick_pass))
            if not own:
                group.start_soon(self.loop("publish pass", partial(publish_pass, publishing)))
            group.start_soon(self.loop("sweep pass", partial(sweep_pass, sweeping)))
            group.start_soon(self.loop("beat", beat_pass))

    async def _say(self, database: ModelDatabase, instance: Instance, jobs: dict[str, int]) -> datetime:
        async with database.session() as session:
            return await register_instance(session, instance, jobs)


@dataclass(eq=False, slots=True)
class WorkerProcess(Process):
    """A worker: real slots, fed by the model's broker."""

    job: Job = field(kw_only=True)

    async def live(self, database: ModelDatabase) -> None:
        """Consume, close, account for dead letters, and beat."""
        occurrences, closing = Occurrences(), Closing(database, self.name)
        sender = Sender(ModelPublisher(self.world, self, "send"), TOPOLOGY, Spoken())  # type: ignore[arg-type] # publishes alike
        failures = FailureLog(_log)
        handling = Handling(
            self.job, self._runner(), database, database, sender, occurrences, closing, Gate(),
            Teller(self.job.name, failures), MAX_CRASHES, database,
        )  # fmt: skip
        reception = Reception(sender, {self.job.name: Desk(handling)}, failures, Elsewhere(self.name))
        dead_letters = DeadLetters(database, occurrences, closing, MAX_CRASHES)
        try:
            async with database.session() as session:
                instance = Instance(self.name, "worker", "model", "0", "", "model")
                started_at = await register_instance(session, instance, {self.job.name: None})
            await self._work(database, reception, dead_letters, closing, Witness(self.name, started_at))
        finally:
            reception.close()
            reception.set_aside.close()
            dead_letters.close()
            dead_letters.waiting.close()

    async def _work(
        self,
        database: ModelDatabase,
        reception: Reception,
        dead_letters: DeadLetters,
        closing: Closing,
        witness: Witness,
    ) -> None:
        world, stopping = self.world, Stopping()

        async def deliver() -> None:
            reception.deliver(world.broker.take(self))  # type: ignore[arg-type] # delivers alike

        async def dead_letter() -> None:
            dead_letters.incoming.send_nowait(world.broker.take_dead(self))  # type: ignore[arg-type] # delivers alike

        async def beat() -> None:
            async with database.session() as session:
                await witness.beat(session)
                await advance_queues(session, reception.take_started())

        def has_room() -> bool:
            held = sum(one.process is self for one in world.broker.held)
            return held < PREFETCH and bool(world.broker.ready())

        def is_touched() -> bool:
            return bool(closing._touched)  # noqa: SLF001 - a pass without any would look at nothing

        async with anyio.create_task_group() as group:
            for desk in reception.desks.values():
                for _ in range(self.job.handler.concurrency):
                    group.start_soon(desk.slot, stopping)
            group.start_soon(reception.handle_odd)
            group.start_soon(dead_letters.work, stopping)
            group.start_soon(self.loop("deliver", deliver, has_room))
            group.start_soon(self.loop("dead letter", dead_letter, lambda: bool(world.broker.dead)))
            group.start_soon(self.loop("close pass", closing.close_pass, is_touched))
            group.start_soon(self.loop("beat", beat))

    def _runner(self) -> Runner | OutsideRunner:
        world, handler = self.world, self.job.handler
        assert not isinstance(handler.handler, str)
        invocation = Invocation(handler.handler, handler.timeout, anyio.CapacityLimiter(8))
        if isinstance(handler, Outside):
            return OutsideRunner(self.job, invocation, self.name, LEASE, MAX_CRASHES, chance=world.random.random)
        return Runner(self.job, invocation, self.name, chance=world.random.random, budget_seconds=math.inf)


@dataclass(eq=False, slots=True)
class OperatorProcess(Process):
    """An operator, who cancels, re-runs, fires, pauses and fills up, and may be cut off as any other.

    When the faults are over all that is left to do is to resume what is paused.
    """

    async def live(self, database: ModelDatabase) -> None:
        """Act at any time."""
        await self.loop("operate", partial(self._act, database), lambda: self.world.faults or self.world.watch.paused)()

    async def _act(self, database: ModelDatabase) -> None:
        random, order = self.world.random, Order("operator", "because", self.name)
        act = random.choice(self.world.profile.operator_acts) if self.world.faults else "resume"
        if act in _ACTS_ON_JOBS:
            try:
                async with database.session() as session:
                    await _ACTS_ON_JOBS[act](session, order, self.world.now)
            except Refused:
                pass
            return
        with self.world.turns.flight():
            rows = await self.world.server.control.fetch(_ACTED_ON[act])
        if not rows:
            return
        row = random.choice(rows)
        identity = Identity(row["job"], row["scheduled_at"], row["variant"])
        try:
            async with database.session() as session:
                if act in {"cancel", "call off"}:
                    await cancel(session, identity, order)
                elif act == "fire":
                    await fire(session, identity, order)
                else:
                    await rerun(session, identity, Choice(reconciled=True), order)
        except Refused:
            return


async def _fill_up(session: Session, order: Order, now: datetime) -> None:
    await backfill(session, JOB, Range(now - timedelta(hours=1), now, "all", max_active=MOST_BACKFILLED), order)


async def _end_backfill(session: Session, order: Order, _now: datetime) -> None:
    found = await session.fetchval(steps.NEWEST_BACKFILL)
    await cancel_backfill(session, found or 0, order)


async def _resume(session: Session, order: Order, _now: datetime) -> None:
    await resume(session, JOB, order)


def _pausing(meanwhile: Meanwhile) -> Callable[[Session, Order, datetime], Awaitable[None]]:
    async def act(session: Session, order: Order, _now: datetime) -> None:
        await pause(session, JOB, order, meanwhile)

    return act


_ACTS_ON_JOBS = {
    "pause": _pausing("skip"),
    "hold": _pausing("hold"),
    "resume": _resume,
    "backfill": _fill_up,
    "end backfill": _end_backfill,
}
_COLUMNS = "select job, scheduled_at, variant from matins.occurrence where "
_ACTED_ON = {
    "cancel": _COLUMNS + "state in ('claimed', 'running') and ending is null order by id",
    "rerun": _COLUMNS + "state in ('partial', 'failed', 'cancelled') order by id",
    "call off": _COLUMNS + "state = 'expected' order by scheduled_at limit 3",
    "fire": _COLUMNS + "state = 'expected' order by scheduled_at limit 3",
}
