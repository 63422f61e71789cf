"""Writing due instants ahead, so that a job that vanishes, or a fleet that is down, leaves rows that say what was due.

Planning goes on from where it stopped, never from now: five days down leave five days of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from typing import Any

from shared.job import Job
from shared.postgres import Session, database_now
from shared.schedule import Cron
from shared.sql_files import statement
from shared.zones import tzdata_version

LOCK_JOB = statement("trigger", "lock_job")
PLANNED_THROUGH = statement("trigger", "planned_through")
PLAN_OCCURRENCES = statement("trigger", "plan_occurrences")
ENSURE_PARTITION = statement("trigger", "ensure_partition")
ADVANCE_PLAN = statement("trigger", "advance_plan")

# All of the next 48 hours are always planned; the hour on top spares a write at every tick.
PLAN_AT_LEAST = timedelta(hours=48)
PLAN_AHEAD = timedelta(hours=49)
BATCH = 1000


@dataclass(frozen=True, slots=True)
class PlanPass:
    """What a pass wrote; `more` asks for another at once, `stale` says that another definition is current."""

    written: int = 0
    more: bool = False
    stale: bool = False


async def short_plans(session: Session, jobs: Sequence[Job], *, now: datetime | None = None) -> set[str]:
    """Give the names of the jobs whose plan reaches less far than it must; takes no lock."""
    rows = await session.fetch(PLANNED_THROUGH, [job.name for job in jobs], now)
    schedules = {job.name: job.schedule for job in jobs}
    return {row["name"] for row in rows if _is_short(schedules[row["name"]], row["planned_through"], row["now"])}


async def plan_ahead(
    session: Session, job: Job, revision: int, *, batch: int = BATCH, now: datetime | None = None
) -> PlanPass:
    """Write up to `batch` instants of the next 48 hours, and at least the next one, under the job row's lock."""
    async with session.transaction():
        known: Any = await session.fetchrow(LOCK_JOB, job.name)
        if known is None or known["revision"] != revision or known["retired_at"] is not None:
            return PlanPass(stale=True)
        present = now or await database_now(session)
        planned_through = known["planned_through"]
        if not _is_short(job.schedule, planned_through, present):
            return PlanPass()
        target = max(present + PLAN_AHEAD, job.schedule.next_after(present))
        instants = list(islice(job.schedule.instants(planned_through, target), batch))
        reached = instants[-1] if len(instants) == batch else target
        written = await _plan(session, job.name, job.schedule, revision, instants, present)
        await session.execute(ADVANCE_PLAN, job.name, reached)
        return PlanPass(written, more=reached < target)


async def plan_through(
    session: Session, job: str, schedule: Cron, revision: int, planned_through: datetime, until: datetime
) -> None:
    """Write every instant after `planned_through`, up to `until`; the caller holds the job row's lock."""
    instants = schedule.instants(planned_through, until)
    while batch := list(islice(instants, BATCH)):
        await _plan(session, job, schedule, revision, batch, until)
    await session.execute(ADVANCE_PLAN, job, until)


async def insert_instants(
    session: Session, job: str, revision: int, windows: Sequence[tuple[datetime, datetime]], now: datetime
) -> int:
    """Write instants, each given as the window that it covers, and the ledger's partitions for their months."""
    for month in {instant.replace(day=1, hour=0, minute=0, second=0) for _, instant in windows}:
        await session.execute(ENSURE_PARTITION, month)
    since, instants = [window[0] for window in windows], [window[1] for window in windows]
    written = await session.fetchval(PLAN_OCCURRENCES, job, revision, instants, since, tzdata_version(), now)
    return int(written)


async def _plan(
    session: Session, job: str, schedule: Cron, revision: int, instants: Sequence[datetime], now: datetime
) -> int:
    if not instants:
        return 0
    before = schedule.previous_before(instants[0]) or instants[0]
    return await insert_instants(session, job, revision, [*pairwise([before, *instants])], now)


def _is_short(schedule: Cron, planned_through: datetime, now: datetime) -> bool:
    return planned_through < now + PLAN_AT_LEAST or planned_through < schedule.next_after(now)
