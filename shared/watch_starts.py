"""What was due and nobody has claimed: `not_claimed`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from schemas.occurrence import Identity
from shared.job_faults import duration_text
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Detector, Finding, counted, written

LATE_OCCURRENCES = statement("shared", "late_occurrences")
# Of one job; those behind are told of once these are over.
MOST_OF_A_JOB: Final = 20


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Find the rows that are still expected after their job's `start_within`."""
    return [_finding(row) for row in await session.fetch(LATE_OCCURRENCES, MOST_OF_A_JOB, now)]


def _finding(row: Row) -> Finding:
    subject = str(Identity(row["job"], row["scheduled_at"], row["variant"]))
    within, alive = duration_text(row["start_within"]), counted(row["triggers"], "trigger")
    told = (
        f"{subject} was due at {written(row['due_at'])} and was to be claimed within {within}; nobody has, and {alive}"
    )
    if row["elsewhere"]:
        told = f"{subject} was due at {written(row['due_at'])} and was to check in within {within}; it has not"
    detail = {"due_at": written(row["due_at"]), "start_within": row["start_within"].total_seconds()}
    return Finding("not_claimed", subject, told, row["job"], row["id"], detail | {"triggers": row["triggers"]})


STARTS: Final = Detector("starts", frozenset({"not_claimed"}), look)
