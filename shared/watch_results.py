"""What has ended badly and is not mended: `partial`, `failed` and `missed`.

An alert for it stays while it is run again, until that has succeeded or somebody has acknowledged it.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from schemas.occurrence import Identity
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Detector, Finding, written

UNMENDED_OCCURRENCES = statement("shared", "unmended_occurrences")
# What ended longer ago, with no watch to see it, is not told any more.
DAYS: Final = 30


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Find what ended badly in the last days, and what has an open alert for that."""
    return [_finding(row) for row in await session.fetch(UNMENDED_OCCURRENCES, DAYS, now)]


def _finding(row: Row) -> Finding:
    subject = str(Identity(row["job"], row["scheduled_at"], row["variant"]))
    detail = {"generation": row["generation"], "reason": row["reason"]}
    detail |= {"total": row["total"], "succeeded": row["succeeded"]}
    return Finding(row["kind"], subject, _told(subject, row), row["job"], row["id"], detail)


def _told(subject: str, row: Row) -> str:
    if not row["badly"]:
        return f"{subject} ended badly and is {row['state']} again"
    if row["state"] == "missed":
        return f"{subject} was due at {written(row['due_at'])} and did not run: {row['reason'] or 'nobody claimed it'}"
    if row["total"]:
        ended = "is partial" if row["state"] == "partial" else "failed"
        return f"{subject} {ended}: {row['total'] - row['succeeded']} of {row['total']} accounts did not succeed"
    return f"{subject} {row['state']}: {row['reason'] or 'no account was read'}"


RESULTS: Final = Detector("results", frozenset({"partial", "failed", "missed"}), look)
