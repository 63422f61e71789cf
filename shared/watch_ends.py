"""What is still active when it should have ended: `not_finished`."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from schemas.occurrence import Identity
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Detector, Finding, counted, written

OVERDUE_OCCURRENCES = statement("shared", "overdue_occurrences")


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Find the active occurrences whose `finish_within` is over."""
    return [_finding(row) for row in await session.fetch(OVERDUE_OCCURRENCES, now)]


def _finding(row: Row) -> Finding:
    subject = str(Identity(row["job"], row["scheduled_at"], row["variant"]))
    since = f"since {written(row['opened_at'])} with {row['accounts_read']} accounts"
    state = f"ending ({row['ending']})" if row["ending"] else row["state"]
    alive = counted(row["workers"], "worker")
    told = f"{subject} was to be finished by {written(row['finish_by'])}; it is {state} {since}, and {alive}"
    if row["elsewhere"]:
        told = (
            f"{subject} began at {written(row['opened_at'])} and was to report its end by {written(row['finish_by'])}"
        )
    detail = {
        "generation": row["generation"],
        "finish_by": written(row["finish_by"]),
        "opened_at": written(row["opened_at"]),
        "accounts_read": row["accounts_read"],
        "workers": row["workers"],
    }
    return Finding("not_finished", subject, told, row["job"], row["id"], detail)


ENDS: Final = Detector("ends", frozenset({"not_finished"}), look)
