"""The backfills that there are and were, with how far each has got."""

from typing import Any

from shared.postgres import Session
from shared.sql_files import statement
from trigger.reach import require_job

LIST_BACKFILLS = statement("trigger", "list_backfills")


async def list_backfills(session: Session, job: str | None, limit: int) -> list[dict[str, Any]]:
    """Give backfills, the latest first, each with the counts of its occurrences. Raises Refused for an unknown job."""
    if job is not None:
        await require_job(session, job)
    return [dict(row) for row in await session.fetch(LIST_BACKFILLS, job, limit)]
