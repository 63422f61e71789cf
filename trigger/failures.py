"""Pausing a job whose occurrences fail one after the other, where its declaration asks for it.

Decided behind the job row's lock and before each claim, so that no further occurrence is claimed once the last one that
it takes has failed.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from shared.job import Job
from shared.logs import logger
from shared.postgres import Session, database_now, transaction
from shared.sql_files import statement
from trigger.plan import LOCK_JOB

FAILING_JOBS = statement("trigger", "failing_jobs")
PAUSE_AFTER_FAILURES = statement("trigger", "pause_after_failures")
_log = logger(__name__)


async def failing_jobs(session: Session, jobs: Sequence[Job]) -> set[str]:
    """Give the names of the jobs that have to be paused for their failures; takes no lock."""
    asked = {job.name: job.pause_after_failures for job in jobs if job.pause_after_failures is not None}
    if not asked:
        return set()
    return {row["name"] for row in await session.fetch(FAILING_JOBS, list(asked), list(asked.values()))}


async def pause_failing(session: Session, job: str, instance: str, *, now: datetime | None = None) -> None:
    """Pause a job if its last occurrences have failed, as soon as that is seen, with nothing due."""
    async with transaction(session):
        known: Any = await session.fetchrow(LOCK_JOB, job)
        await reason_of_pause(session, known, instance, now or await database_now(session))


async def reason_of_pause(session: Session, known: Mapping[str, Any], instance: str, now: datetime) -> str | None:
    """Give why the job is paused, and pause it first if its last occurrences have failed; None when it may fire.

    `known` is the job's row; the caller holds its lock.
    """
    if known["paused_at"] is not None:
        return str(known["pause_reason"] or "paused")
    failures = known["definition"].get("pause_after_failures")
    if failures is None:
        return None
    reason: str | None = await session.fetchval(PAUSE_AFTER_FAILURES, known["name"], failures, instance, now)
    if reason is not None:
        _log.error("job paused", job=known["name"], reason=reason)
    return reason
