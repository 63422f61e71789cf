"""Closing after settles, seldom enough to cost nothing.

Each occurrence that this worker has settled accounts of is looked at every now and then, and always once after the last
settle. A look after each settle would cost two thirds of the throughput.
"""

from shared.closing import close_and_tell
from shared.postgres import Database, Session
from shared.sql_files import statement

NOTE_SETTLED = statement("worker", "note_settled")


class Closing:
    """The occurrences that may be over."""

    def __init__(self, database: Database, instance: str) -> None:
        """Begin with none."""
        self._database = database
        self._instance = instance
        self._touched: dict[int, None] = {}
        self._settled: set[int] = set()

    def touch(self, occurrence_id: int) -> None:
        """Note that accounts of an occurrence have been settled."""
        self._touched[occurrence_id] = None
        self._settled.add(occurrence_id)

    async def tell_settled(self, session: Session) -> None:
        """Say which occurrences get on, with a sign of life; what cannot be said now is said with the next."""
        settled, self._settled = self._settled, set()
        if not settled:
            return
        unsaid = settled
        try:
            unsaid = {row["occurrence_id"] for row in await session.fetch(NOTE_SETTLED, sorted(settled))}
        finally:
            self._settled |= unsaid

    async def close_pass(self) -> None:
        """Look once at each occurrence touched since the last pass. Raises the driver's errors, and forgets nothing."""
        for occurrence_id in list(self._touched):
            # Forgotten before the look: a settle that commits during it must lead to another one.
            del self._touched[occurrence_id]
            try:
                async with self._database.session() as session:
                    await close_and_tell(session, occurrence_id, by=self._instance)
            except BaseException:
                self._touched[occurrence_id] = None
                raise
