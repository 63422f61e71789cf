"""Waiting for an occurrence's end, for a person who has started something and wants to see it through."""

from dataclasses import dataclass
from typing import Any

from schemas.states import ACTIVE, OccurrenceState
from shared import clock
from shared.postgres import Session
from shared.sql_files import statement
from shared.terminal import NotDone
from shared.terminal_tables import progress

PROGRESS = statement("trigger", "progress")
SHORTEST_PAUSE = 0.3
# Counting a large ledger takes its time: at most a tenth of the database's time is spent on looking.
PAUSE_PER_LOOK = 10


@dataclass(frozen=True, slots=True)
class Ended:
    """How an occurrence had ended when it was looked at last; counts by account state."""

    state: str
    reason: str | None
    generation: int
    counts: dict[str, int]

    @property
    def total(self) -> int:
        """All accounts."""
        return sum(self.counts.values())


async def await_end(session: Session, occurrence_id: int, title: str) -> Ended:
    """Show the progress of an occurrence until it is over. Raises NotDone when it has vanished."""
    with progress(title) as advance:
        while True:
            began = clock.monotonic()
            row: Any = await session.fetchrow(PROGRESS, occurrence_id)
            if row is None:
                problem = "the occurrence is no longer in the database"
                raise NotDone(problem)
            counts = {name: row[name] for name in ("pending", "running", "succeeded", "failed", "dead", "cancelled")}
            if row["state"] not in ACTIVE:
                return Ended(row["state"], row["reason"], row["generation"], counts)
            total = sum(counts.values())
            advance(total - counts["pending"] - counts["running"], total if row["sealed"] else 0, _note(row))
            await clock.sleep(max(SHORTEST_PAUSE, (clock.monotonic() - began) * PAUSE_PER_LOOK))


def _note(row: Any) -> str:
    """Say what it is doing, or what is missing for it to go on."""
    if row["ending"]:
        note = f"ending ({row['ending']})"
    elif row["state"] == OccurrenceState.CLAIMED:
        note = "reading the accounts"
    else:
        note = "running"
    if row["state"] == OccurrenceState.CLAIMED and not row["triggers"]:
        note += "; no trigger is live"
    elif not row["workers"]:
        note += "; no worker is live"
    return note
