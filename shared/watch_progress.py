"""What is active and does not get on: `no_progress`.

The ledger says what was settled, but not when without reading all of it. So each look notes what it sees of an active
occurrence, and when that changed; and workers say with each sign of life of which occurrences they have settled.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from schemas.occurrence import Identity
from shared.job_faults import duration_text
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Detector, Finding, counted, written

NOTE_PROGRESS = statement("shared", "note_progress")
STUCK_OCCURRENCES = statement("shared", "stuck_occurrences")


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Note how far each active occurrence is, and find those that have stood still."""
    await session.execute(NOTE_PROGRESS, now)
    return [_finding(row) for row in await session.fetch(STUCK_OCCURRENCES, now)]


def _finding(row: Row) -> Finding:
    subject = str(Identity(row["job"], row["scheduled_at"], row["variant"]))
    alive = f"{counted(row['triggers'], 'trigger')}, {counted(row['workers'], 'worker')}"
    told = (
        f"{subject} is {row['state']}, and nothing of it was settled, published or read since "
        f"{written(row['moved_at'])}, for more than {duration_text(row['no_progress_within'])}; {alive}"
    )
    detail = {
        "generation": row["generation"],
        "moved_at": written(row["moved_at"]),
        "no_progress_within": row["no_progress_within"].total_seconds(),
        "accounts_read": row["accounts_read"],
        "workers": row["workers"],
        "triggers": row["triggers"],
    }
    return Finding("no_progress", subject, told, row["job"], row["id"], detail)


PROGRESS: Final = Detector("progress", frozenset({"no_progress"}), look)
