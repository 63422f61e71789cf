"""Writing due instants ahead, so that a job that vanishes, or a fleet that is down, leaves rows that say what was due.

Planning goes on from where it stopped, never from now: five days down leave five days of rows.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from shared.job import Job
from shared.postgres import Session, database_now, transaction
from shared.schedule_protocol import Schedule
from shared.sql_files import statement
from shared.timing import Occasion, Timing
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
    """Give the names of the jobs whose plan reaches less far than it must, or is not there at all; takes no lock."""
    rows = await session.fetch(PLANNED_THROUGH, [job.name for job in jobs], now)
    schedules = {job.name: job.schedule for job in jobs}
    long = {row["name"] for row in rows if not _is_short(schedules[row["name"]], row["planned_through"], row["now"])}
    # A failover or a restore may have lost a job's row; whoever plans it then finds that it must be registered anew.
    return schedules.keys() - long


async def plan_ahead(
    session: Session,
    job: Job,
    revision: int,
    *,
    batch: int = BATCH,
    now: datetime | None = None,
    by: str | None = None,
) -> PlanPass:
    """Write up to `batch` instants of the next 48 hours, and at least the next one, under the job row's lock.

    Of a job that every worker runs for itself no row is written ahead: only the ledger is prepared. `by` is the
    instance that plans.
    """
    async with transaction(session):
        known: Any = await session.fetchrow(LOCK_JOB, job.name)
        if not is_current(known, revision):
            return PlanPass(stale=True)
        present = now or await database_now(session)
        planned_through = known["planned_through"]
        if not _is_short(job.schedule, planned_through, present):
            return PlanPass()
        target = plan_target(job.schedule, present)
        if job.coordination == "every":
            await prepare_ledger(session, present, present + PLAN_AHEAD, target)
            await session.execute(ADVANCE_PLAN, job.name, target)
            return PlanPass()
        occasions = list(islice(Timing.of(job).occasions(planned_through, target), batch))
        reached = occasions[-1].scheduled_at if len(occasions) == batch else target
        written = await insert_occasions(session, job.name, revision, occasions, present, by=by)
        await session.execute(ADVANCE_PLAN, job.name, reached)
        return PlanPass(written, more=reached < target)


async def plan_through(
    session: Session,
    timing: Timing,
    revision: int,
    planned_through: datetime,
    until: datetime,
    *,
    by: str | None = None,
) -> None:
    """Write every instant after `planned_through`, up to `until`; the caller holds the job row's lock."""
    occasions = timing.occasions(planned_through, until)
    while batch := list(islice(occasions, BATCH)):
        await insert_occasions(session, timing.job, revision, batch, until, by=by)
    await session.execute(ADVANCE_PLAN, timing.job, until)


async def prepare_ledger(session: Session, *instants: datetime) -> None:
    """Make the ledger's partitions for the months of some instants."""
    for month in {instant.replace(day=1, hour=0, minute=0, second=0, microsecond=0) for instant in instants}:
        await session.execute(ENSURE_PARTITION, month)


async def insert_occasions(
    session: Session, job: str, revision: int, occasions: Sequence[Occasion], now: datetime, *, by: str | None = None
) -> int:
    """Write instants, also those that are left out, and the ledger's partitions for their months; give how many."""
    if not occasions:
        return 0
    instants = [one.scheduled_at for one in occasions]
    await prepare_ledger(session, *instants)
    written = await session.fetchval(
        PLAN_OCCURRENCES,
        job,
        revision,
        instants,
        [one.since for one in occasions],
        [one.due_at for one in occasions],
        [bool(one.left_out) for one in occasions],
        tzdata_version(),
        now,
        by,
    )
    return int(written)


def is_current(known: Any, revision: int) -> bool:
    """Tell whether `revision` plans and claims, by its job's locked row; None where there is no such job."""
    return known is not None and known["revision"] == revision and known["retired_at"] is None


def plan_target(schedule: Schedule, now: datetime) -> datetime:
    """Give how far to plan: all of the next 48 hours and a bit, and at least the next instant if there is one."""
    return max(now + PLAN_AHEAD, schedule.next_after(now) or now)


def _is_short(schedule: Schedule, planned_through: datetime, now: datetime) -> bool:
    return planned_through < now + PLAN_AT_LEAST or planned_through < (schedule.next_after(now) or now)
