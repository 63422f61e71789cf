"""What a worker knows of the occurrences it works on: read once from the table, never taken from a message."""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime

from schemas.message import WorkMessage
from schemas.occurrence import Identity
from shared.calls import Window
from shared.postgres import Session
from shared.sql_files import statement

READ_OCCURRENCE = statement("worker", "read_occurrence")
_KEPT = 256


@dataclass(frozen=True, slots=True)
class WorkOccurrence:
    """The parts of an occurrence's row that never change once it is claimed."""

    id: int
    identity: Identity
    window: Window
    trace_context: str

    @property
    def scheduled_at(self) -> datetime:
        """The instant it was due, in UTC: the ledger's partition."""
        return self.identity.scheduled_at


class Occurrences:
    """The occurrences read lately."""

    def __init__(self) -> None:
        """Begin with none."""
        self._known: OrderedDict[int, WorkOccurrence] = OrderedDict()

    async def find(self, session: Session, message: WorkMessage) -> WorkOccurrence | None:
        """Give the occurrence that a message names; None when there is none, or the message tells another story."""
        if self.recall(message) is None:
            # Read again what tells another story: after a restore an id may name another occurrence.
            await self._read(session, message.occurrence_id)
        return self.recall(message)

    def recall(self, message: WorkMessage) -> WorkOccurrence | None:
        """Give the same without asking the database; None also when it hasn't been read lately."""
        known = self._known.get(message.occurrence_id)
        if known is None or known.identity.job != message.job or known.scheduled_at != message.scheduled_at:
            return None
        return known

    async def _read(self, session: Session, occurrence_id: int) -> None:
        row = await session.fetchrow(READ_OCCURRENCE, occurrence_id)
        if row is None:
            return
        self._known[occurrence_id] = WorkOccurrence(
            row["id"],
            Identity(row["job"], row["scheduled_at"], row["variant"]),
            Window(row["window_since"], row["window_until"]),
            row["trace_context"],
        )
        while len(self._known) > _KEPT:
            self._known.popitem(last=False)
