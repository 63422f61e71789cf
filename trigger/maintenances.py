"""The planned maintenances that there are and were."""

from typing import Any

from shared.postgres import Session
from shared.sql_files import statement
from trigger.reach import require_job

LIST_MAINTENANCE = statement("trigger", "list_maintenance")


async def list_maintenance(
    session: Session, job: str | None = None, *, over_too: bool = False, limit: int = 1000
) -> list[dict[str, Any]]:
    """Give what is in force, then what is to come, and with `over_too` what is over. Raises Refused for an unknown job.

    Of a job also what is of all jobs, whose `job` is None.
    """
    if job is not None:
        await require_job(session, job)
    return [dict(row) for row in await session.fetch(LIST_MAINTENANCE, over_too, job, limit)]
