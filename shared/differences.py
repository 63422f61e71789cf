"""Live processes that hold different definitions of a job: who holds which, and since when.

During a rolling deploy that is so for a while, and does no harm: only the current definition plans and claims. If it
stays, somebody runs what nobody meant to run any more.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from schemas.occurrence import format_instant
from shared.postgres import Row, Session
from shared.sql_files import statement

DIFFERING_DEFINITIONS = statement("shared", "differing_definitions")
NAMED_AT_MOST = 8
FINGERPRINT_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Side:
    """One definition of a job, and the live processes that hold it, as `kind id`; `since` the first of them started.

    `revision` is its latest one, None if it never was current.
    """

    fingerprint: str
    revision: int | None
    current: bool
    instances: tuple[str, ...]
    since: datetime

    def __str__(self) -> str:
        """Name it for people."""
        revision = "never current" if self.revision is None else f"revision {self.revision}"
        mark = f"{revision}{', current' if self.current else ''}, {self.fingerprint[:FINGERPRINT_SHOWN]}"
        more = len(self.instances) - NAMED_AT_MOST
        return f"{', '.join(self.instances[:NAMED_AT_MOST])}{f' and {more} more' if more > 0 else ''} ({mark})"


@dataclass(frozen=True, slots=True)
class Difference:
    """A job of which live processes hold several definitions; the sides are in the order in which they came."""

    job: str
    sides: tuple[Side, ...]

    @property
    def since(self) -> datetime:
        """When the second definition came to the first."""
        return self.sides[1].since

    def __str__(self) -> str:
        """Say it in a line."""
        held = "; ".join(str(side) for side in self.sides)
        count = len(self.sides)
        return f"{self.job}: live processes hold {count} definitions since {format_instant(self.since)}: {held}"


async def read_differences(session: Session, *, now: datetime | None = None) -> list[Difference]:
    """Give the jobs of which live processes hold more than one definition, by name."""
    rows = await session.fetch(DIFFERING_DEFINITIONS, now)
    by_job = groupby(rows, key=lambda row: str(row["job"]))
    return [Difference(job, tuple(_side(row) for row in sides)) for job, sides in by_job]


def _side(row: Row) -> Side:
    return Side(row["fingerprint"], row["revision"], row["current"], tuple(row["instances"]), row["since"])
