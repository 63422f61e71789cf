"""Accounting for dead letters: what the broker gave up on must still end in the ledger, so that the occurrence closes.

An account is dead only if its message carried it alone and the ledger shows that it has used up its starts. Every other
account met its neighbour's fate: it is published again, alone. What cannot be read names no row; the sweep sends that
row's own message again.
"""

import math
from dataclasses import dataclass, field

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream

from schemas.message import NewerMessage, UnreadableMessage, WorkMessage, decode
from shared import clock
from shared.broker import Delivery
from shared.logs import logger
from shared.postgres import Database, Session, UnfitData, is_transient
from shared.sql_files import statement
from shared.stopping import Stopping
from shared.telemetry import Destination, dead_letter_span, metrics
from worker.closing import Closing
from worker.occurrences import Occurrences, WorkOccurrence

BURY = statement("worker", "bury")
PUBLISH_ALONE = statement("worker", "publish_alone")
PAUSE_SECONDS = 1.0
_log = logger(__name__)


@dataclass(slots=True)
class DeadLetters:
    """Reads the dead letters of all jobs."""

    database: Database
    occurrences: Occurrences
    closing: Closing
    max_crashes: int
    incoming: MemoryObjectSendStream[Delivery] = field(init=False)
    waiting: MemoryObjectReceiveStream[Delivery] = field(init=False)

    def __post_init__(self) -> None:
        """Make the stream; the prefetch is what bounds it."""
        self.incoming, self.waiting = anyio.create_memory_object_stream[Delivery](math.inf)

    async def work(self, stopping: Stopping) -> None:
        """Account for what comes, until closed; what is left when the drain begins goes back to its queue."""
        with self.waiting:
            async for delivery in self.waiting:
                while not stopping.requested and not await self._try(delivery):
                    await clock.sleep(PAUSE_SECONDS)

    async def _try(self, delivery: Delivery) -> bool:
        try:
            await self.account_for(delivery)
        except UnfitData as error:
            _log.exception(
                "dead letter names nothing that can be a row", message=delivery.message_id, reason=str(error)
            )
            await delivery.ack()
        except Exception as error:
            if not is_transient(error):
                raise
            _log.warning("dead letter will be tried again", reason=str(error))
            return False
        return True

    def close(self) -> None:
        """Let `work` end."""
        self.incoming.close()

    async def account_for(self, delivery: Delivery) -> None:
        """Settle one dead letter in the ledger and acknowledge it; its copy stays parked for people.

        Raises the driver's errors: then it was not acknowledged, and can be accounted for again.
        """
        try:
            message = decode(delivery.body)
        except (UnreadableMessage, NewerMessage) as error:
            _log.error("dead letter cannot be read", message=delivery.message_id, reason=str(error))
            metrics.dead_letters.add(1, job="")
        else:
            await self._settle(delivery, message)
        await delivery.ack()

    async def _settle(self, delivery: Delivery, message: WorkMessage) -> None:
        async with self.database.session() as session:
            occurrence = await self.occurrences.find(session, message)
            if occurrence is None:
                _log.error("dead letter without its occurrence", job=message.job, occurrence_id=message.occurrence_id)
                return
            metrics.dead_letters.add(1, job=message.job)
            identity = str(occurrence.identity)
            with dead_letter_span(
                message.job,
                Destination("", queue=delivery.queue),
                occurrence=identity,
                message_id=delivery.message_id or "",
                links=[delivery.trace_context] if delivery.trace_context else [],
                accounts=len(message.accounts),
            ):
                reason = delivery.death.reason
                dead = len(message.accounts) == 1 and await self._bury(session, occurrence, message, reason)
                again = 0 if dead else await self._publish_alone(session, occurrence, message)
        _log.error(
            "dead letter",
            occurrence=identity,
            accounts=list(message.accounts[:20]),
            dead=dead,
            again=again,
            reason=reason,
        )
        self.closing.touch(occurrence.id)

    async def _bury(self, session: Session, occurrence: WorkOccurrence, message: WorkMessage, reason: str) -> bool:
        error = f"its worker ended {self.max_crashes} times while it ran; the message is parked ({reason})"
        buried = await session.fetchval(
            BURY,
            occurrence.id,
            occurrence.scheduled_at,
            message.accounts[0],
            message.generation,
            self.max_crashes,
            error,
        )
        if buried is not None:
            metrics.accounts.add(1, job=message.job, outcome="dead")
        return buried is not None

    async def _publish_alone(self, session: Session, occurrence: WorkOccurrence, message: WorkMessage) -> int:
        rows = await session.fetch(
            PUBLISH_ALONE,
            occurrence.id,
            occurrence.scheduled_at,
            list(message.accounts),
            message.generation,
            self.max_crashes,
        )
        return len(rows)
