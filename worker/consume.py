"""From deliveries to work: each job has slots, each slot does one message, or one batch of those that wait, at a time.

What a worker holds is bounded by the prefetch of its queues. Nothing here waits inside the broker's callback, and the
work runs in the worker's own tasks: a lost connection cancels none of it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from schemas.message import MESSAGE_VERSION, NewerMessage, UnreadableMessage, WorkMessage, decode
from shared import clock
from shared.broker import Delivery
from shared.job import Job, PerAccount
from shared.logs import FailureLog, logger
from shared.postgres import UnfitData, is_transient
from shared.stopping import Stopping
from shared.telemetry import metrics
from shared.topology_versions import key_of
from worker.elsewhere import Elsewhere
from worker.handle import Handling
from worker.parcel import NotHandedOn, Parcel
from worker.savepoints import RoleUnavailable
from worker.send import Sender
from worker.transaction import SessionLost

BATCH = 50
HAND_ON_SECONDS = 1.0
# Of a version that no live worker reads; the row's own message is published again meanwhile.
HAND_ON_TO_NOBODY_SECONDS = 60.0
LONGEST_PAUSE = 5.0
CUT_OFF_SECONDS = 2.0
_log = logger(__name__)


def prefetch_for(jobs: Iterable[Job], beside: int) -> int:
    """Give the prefetch of a queue: what its jobs in this worker run at once, and `beside` it the next."""
    running = sum(job.handler.concurrency * (BATCH if is_batched(job) else 1) for job in jobs)
    return min(running + beside, 65_535)


def is_batched(job: Job) -> bool:
    """Tell whether one-account messages that wait together share a transaction."""
    return isinstance(job.handler, PerAccount) and job.handler.settle == "batched"


@dataclass(slots=True)
class Desk:
    """One job in this worker: its waiting parcels, and its slots."""

    handling: Handling
    incoming: MemoryObjectSendStream[Parcel] = field(init=False)
    waiting: MemoryObjectReceiveStream[Parcel] = field(init=False)
    started_through: datetime | None = None

    def __post_init__(self) -> None:
        """Make the stream; the prefetch is what bounds it."""
        self.incoming, self.waiting = anyio.create_memory_object_stream[Parcel](math.inf)

    async def slot(self, stopping: Stopping) -> None:
        """Work until the desk is closed; what is taken after the drain has begun is handed back."""
        kept: Parcel | None = None
        with self.waiting.clone() as waiting:
            while True:
                try:
                    parcel = kept or await waiting.receive()
                except anyio.EndOfStream:
                    return
                kept = None
                if stopping.requested:
                    await hand_back(self.handling.sender, parcel.delivery, self.handling.job.queue, wait=0)
                    continue
                batch = [parcel]
                if is_batched(self.handling.job) and not parcel.suspect:
                    kept = self._fill(batch, waiting)
                self._note_started(batch)
                await self._work(batch, stopping)

    def _note_started(self, batch: list[Parcel]) -> None:
        """Note how far the queue has been worked off; a message whose occurrence is not known proves nothing."""
        known = [one.message.published_at for one in batch if self.handling.occurrences.recall(one.message)]
        if known:
            self.started_through = max(known if self.started_through is None else [self.started_through, *known])

    def _fill(self, batch: list[Parcel], waiting: MemoryObjectReceiveStream[Parcel]) -> Parcel | None:
        """Add what waits of the same occurrence and generation; give back the first that doesn't fit."""
        first = batch[0].message
        while len(batch) < BATCH:
            try:
                parcel = waiting.receive_nowait()
            except (anyio.WouldBlock, anyio.EndOfStream):
                return None
            message = parcel.message
            if _group(message) != _group(first) or parcel.suspect:
                return parcel
            batch.append(parcel)
        return None

    async def _work(self, batch: list[Parcel], stopping: Stopping) -> None:
        """Handle a batch; while a server is away, again and again, with the messages held.

        Cut off at the end of the grace period, hand it back: its transaction is undone, and nobody is charged.
        """
        try:
            await self._repeatedly(batch, stopping)
        except anyio.get_cancelled_exc_class():
            with anyio.move_on_after(CUT_OFF_SECONDS, shield=True):
                for parcel in batch:
                    await hand_back(self.handling.sender, parcel.delivery, self.handling.job.queue, wait=0)
            raise

    async def _repeatedly(self, batch: list[Parcel], stopping: Stopping) -> None:
        pause, lost_sessions = 0.1, 0
        # Of a lost channel the messages come again by themselves.
        while not all(parcel.delivery.stale for parcel in batch):
            try:
                await self.handling.handle(batch)
            except SessionLost as error:
                lost_sessions += 1
                self.handling.teller.interrupted(error)
                if lost_sessions >= self.handling.max_crashes and not batch[0].suspect:
                    await self.handling.isolate(batch)
                    return
            except UnfitData as error:
                # The message holds what the database cannot take. Its copy is parked; what is its own is done alone.
                _log.exception("message cannot be worked on", job=self.handling.job.name, error=str(error))
                for parcel in batch:
                    await parcel.delivery.reject(requeue=False)
                return
            except Exception as error:
                if not isinstance(error, (NotHandedOn, RoleUnavailable)) and not is_transient(error):
                    raise
                self.handling.teller.interrupted(error)
            else:
                return
            if stopping.requested:
                return
            await clock.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)


@dataclass(frozen=True, slots=True)
class Odd:
    """A delivery that is not for this worker: `newer` or `unreadable`, with the reason, or `no code` for `job`."""

    delivery: Delivery
    kind: Literal["newer", "unreadable", "no code"]
    reason: str = ""
    job: str = ""


@dataclass(slots=True)
class Reception:
    """Takes deliveries from the broker's callback and puts each on the desk of its job; the odd ones are set aside."""

    sender: Sender
    desks: dict[str, Desk]
    failures: FailureLog
    elsewhere: Elsewhere
    odd: MemoryObjectSendStream[Odd] = field(init=False)
    set_aside: MemoryObjectReceiveStream[Odd] = field(init=False)

    def __post_init__(self) -> None:
        """Make the stream of odd deliveries; the prefetch is what bounds it."""
        self.odd, self.set_aside = anyio.create_memory_object_stream[Odd](math.inf)

    def deliver(self, delivery: Delivery) -> None:
        """Take a delivery; never waits, never raises."""
        try:
            message = decode(delivery.body)
        except NewerMessage as newer:
            self.odd.send_nowait(Odd(delivery, "newer", str(newer)))
            return
        except UnreadableMessage as unreadable:
            self.odd.send_nowait(Odd(delivery, "unreadable", str(unreadable)))
            return
        desk = self.desks.get(message.job)
        if desk is None:
            self.odd.send_nowait(Odd(delivery, "no code", job=message.job))
            return
        desk.incoming.send_nowait(Parcel(delivery, message))

    async def handle_odd(self) -> None:
        """Park what nobody can read; hand on, uncharged, what another worker can do."""
        with self.set_aside:
            async for one in self.set_aside:
                await self._handle_odd_one(one)

    async def _handle_odd_one(self, one: Odd) -> None:
        delivery = one.delivery
        if one.kind == "no code":
            await self._hand_on(delivery, self.elsewhere.wait(one.job, delivery.queue, delivery.handed_on))
            return
        somebody_reads_it = self.sender.spoken.newest > MESSAGE_VERSION
        self.failures.failure(
            "message not for this worker",
            error_class=one.kind,
            queue=delivery.queue,
            message=delivery.message_id,
            reason=f"{one.kind}: {one.reason}",
        )
        if one.kind == "unreadable":
            await delivery.reject(requeue=False)
        else:
            await self._hand_on(delivery, HAND_ON_SECONDS if somebody_reads_it else HAND_ON_TO_NOBODY_SECONDS)

    async def _hand_on(self, delivery: Delivery, wait: float) -> None:
        key = key_of(self.sender.topology.prefix, delivery.queue) or delivery.routing_key
        while not await hand_back(self.sender, delivery, key, wait=wait, handed_on=delivery.handed_on + 1):
            await clock.sleep(HAND_ON_SECONDS)
        metrics.handed_on.add(1, operation="publish", destination=delivery.queue)

    def take_started(self) -> dict[str, datetime]:
        """Give, by queue, the latest publish time among the messages that were started, for the heartbeat."""
        started: dict[str, datetime] = {}
        for desk in self.desks.values():
            key = desk.handling.job.queue
            if desk.started_through is not None:
                started[key] = max(started.get(key, desk.started_through), desk.started_through)
        return started

    def close(self) -> None:
        """Let every slot end once it has seen what waits."""
        for desk in self.desks.values():
            desk.incoming.close()
            # Each slot reads a clone of its own.
            desk.waiting.close()
        self.odd.close()


def _group(message: WorkMessage) -> tuple[int, datetime, int]:
    return message.occurrence_id, message.scheduled_at, message.generation


async def hand_back(sender: Sender, delivery: Delivery, queue: str, *, wait: float, handed_on: int = 0) -> bool:
    """Publish a delivery as new, so that nothing is counted against it; unconfirmed (False), it is still held."""
    if not await sender.hand_back(delivery, queue, wait=wait, handed_on=handed_on):
        return False
    await delivery.ack()
    return True
