"""What live workers should have run for themselves and have not: `not_claimed`, of jobs that `every` worker runs.

Nothing is written ahead for such a job, so its absence is judged against those that live: a worker that is gone owes
nothing. One that stays away is told of once, by the first instant that it left out.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from schemas.occurrence import Identity, parse_identity
from shared.declaration import FaultyDeclaration
from shared.errors import DeclarationError
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Detector, Finding, written
from shared.watch_schedules import ROWLESS_ALERTS, schedule_in

OWN_JOBS = statement("shared", "own_jobs")
ABSENT_SINCE = statement("shared", "absent_since")


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Find the live workers that have left out the last instant that they should have run."""
    last = {row["name"]: due for row in await session.fetch(OWN_JOBS, now) if (due := _last_due(row)) is not None}
    standing = [parse_identity(row["subject"]) for row in await session.fetch(ROWLESS_ALERTS)]
    asked: list[tuple[str, datetime, str | None]] = [
        (one.job, one.scheduled_at, one.variant[1:]) for one in standing if one.variant and one.job in last
    ]
    asked += [(job, due, None) for job, due in last.items()]
    if not asked:
        return []
    jobs, dues, workers = zip(*asked, strict=True)
    found: dict[tuple[str, str], Row] = {}
    # In the order in which they were due: what stands comes first, and is what is told.
    for row in await session.fetch(ABSENT_SINCE, jobs, dues, workers, now):
        found.setdefault((row["job"], row["id"]), row)
    return [_finding(row) for row in found.values()]


def _last_due(row: Row) -> datetime | None:
    """Give the last instant that should have begun by now, if it counts."""
    tolerance = timedelta(seconds=row["definition"]["decisions"]["start_within"])
    try:
        due = schedule_in(row["definition"]).previous_before(row["now"] - tolerance)
    except (DeclarationError, FaultyDeclaration):
        # No worker can run it; the others' absence is seen all the same.
        return None
    return due if due is not None and due > row["counts_from"] else None


def _finding(row: Row) -> Finding:
    subject = str(Identity(row["job"], row["due"], f"@{row['id']}"))
    told = f"{row['job']} was due at {written(row['due'])} and worker {row['id'][:8]} on {row['host']}, which lives, "
    told += "has run nothing of it since"
    return Finding("not_claimed", subject, told, row["job"], None, {"due_at": written(row["due"]), "worker": row["id"]})


WORKERS: Final = Detector("workers", frozenset({"not_claimed"}), look)
