"""Making a job's definition the current one, once per process start, under the job row's lock.

A definition that the database knows keeps its revision. A new one gets the next: first everything that was due until
now is recorded under the old definition, then the future is planned again. Only the current revision plans and claims.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.definition import definition_of, fingerprint
from shared.errors import MatinsError
from shared.job import Job
from shared.postgres import Row, Session, database_now, transaction
from shared.sql_files import statement
from shared.timing import Occasion, Timing
from shared.zones import tzdata_version
from trigger.plan import LOCK_JOB, PLAN_AHEAD, insert_occasions, plan_target, plan_through, prepare_ledger
from trigger.replan import Planned, Replanned, beyond_plan, compared_instants, replan

CREATE_JOB = statement("trigger", "create_job")
REVISE_JOB = statement("trigger", "revise_job")
RECORD_REVISION = statement("trigger", "record_revision")
REVISION_IS_HELD = statement("trigger", "revision_is_held")
PLANNED_OCCURRENCES = statement("trigger", "planned_occurrences")
SUPERSEDE_OCCURRENCES = statement("trigger", "supersede_occurrences")
REFUSE_OCCURRENCES = statement("trigger", "refuse_occurrences")
ADOPT_OCCURRENCES = statement("trigger", "adopt_occurrences")


class JobRetired(MatinsError):
    """The job was retired: nothing is planned or claimed for it until it is brought back."""


@dataclass(frozen=True, slots=True)
class Registered:
    """The revision under which this process may plan and claim; `changed` tells whether this call made it."""

    revision: int
    changed: bool


async def register(session: Session, job: Job, *, instance: str, now: datetime | None = None) -> Registered:
    """Make the job's definition the current one and give its revision. Raises JobRetired."""
    definition = definition_of(job)
    mark = fingerprint(definition)
    async with transaction(session):
        if await session.fetchval(CREATE_JOB, job.name, definition, mark, now) is not None:
            await session.execute(RECORD_REVISION, job.name, 1, definition, mark, instance, now)
            return Registered(1, changed=True)
        known: Any = await session.fetchrow(LOCK_JOB, job.name)
        if known["retired_at"] is not None:
            told = f"{known['retired_at']:%Y-%m-%d %H:%M} UTC by {known['retired_by']}: {known['retire_reason']}"
            raise JobRetired(f"job {job.name!r} was retired at {told}")
        if known["fingerprint"] == mark:
            return Registered(known["revision"], changed=False)
        revision = known["revision"] + 1
        until = await _change(session, job, known, now or await database_now(session), instance)
        await session.execute(REVISE_JOB, job.name, revision, definition, mark, until)
        await session.execute(RECORD_REVISION, job.name, revision, definition, mark, instance, now)
        return Registered(revision, changed=True)


async def register_if_abandoned(
    session: Session, job: Job, *, instance: str, now: datetime | None = None
) -> Registered | None:
    """Follow the current definition if it is this one again, or make this one current when no live trigger holds it.

    None while another definition is current and held.

    During a rolling deploy an old process that restarts takes the revision back; once all of its kind are gone, nobody
    would plan.
    """
    current: Any = await session.fetchrow(REVISION_IS_HELD, job.name, instance, now)
    is_another = current is not None and current["fingerprint"] != fingerprint(definition_of(job))
    if is_another and current["held"]:
        return None
    return await register(session, job, instance=instance, now=now)


async def _change(session: Session, job: Job, known: Row, now: datetime, by: str) -> datetime:
    """Record what was due under the old definition, and plan the new one; give how far that reaches."""
    until_now = Timing.from_definition(job.name, known["definition"])
    revision = known["revision"]
    planned_through = known["planned_through"]
    written_ahead = known["definition"]["coordination"] != "every"
    # Up to the new one's first instant, since what the old one has before it may be the run of that night.
    reach = min(job.schedule.next_after(now) or now, now + PLAN_AHEAD)
    if planned_through < reach and written_ahead:
        await plan_through(session, until_now, revision, planned_through, reach, by=by)
        planned_through = reach
    until = plan_target(job.schedule, now)
    old = [
        Planned(row["scheduled_at"], row["state"] == "expected", row["claimed"])
        for row in await session.fetch(PLANNED_OCCURRENCES, job.name, now)
        if not row["superseded"]
    ]
    old += beyond_plan(until_now.schedule, max(planned_through, now), job.schedule.next_after(now))
    old.sort(key=lambda one: one.scheduled_at)
    if job.coordination == "every":
        # Each worker runs its own from now on: nothing that waits is anybody's.
        waiting = tuple(one.scheduled_at for one in old if one.expected)
        await _apply(session, job, revision + 1, Replanned((), (), waiting), (), now, by)
        await prepare_ledger(session, now, now + PLAN_AHEAD, until)
        return until
    new = compared_instants(job.schedule, old, now, until)
    occasions = tuple(Timing.of(job).occasions(now, until))
    left_out = {one.scheduled_at for one in occasions if one.left_out}
    await _apply(session, job, revision + 1, replan(old, new, now, until, left_out), occasions, now, by)
    return until


async def _apply(
    session: Session, job: Job, revision: int, replanned: Replanned, named: Sequence[Occasion], now: datetime, by: str
) -> None:
    if replanned.superseded:
        await session.fetchval(SUPERSEDE_OCCURRENCES, job.name, revision, list(replanned.superseded), by)
    if replanned.refused:
        since = [job.schedule.previous_before(instant) or instant for instant in replanned.refused]
        refused_ones = list(replanned.refused)
        await session.execute(REFUSE_OCCURRENCES, job.name, revision, refused_ones, since, tzdata_version(), by)
    refused = set(replanned.refused)
    occasions = [one for one in named if one.scheduled_at not in refused]
    await insert_occasions(session, job.name, revision, occasions, now, by=by)
    instants, due = [one.scheduled_at for one in occasions], [one.due_at for one in occasions]
    await session.execute(ADOPT_OCCURRENCES, job.name, revision, instants, due)
