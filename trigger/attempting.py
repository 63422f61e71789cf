"""Which of its jobs a trigger attempts now: those open to every trigger, those that it leads, those of its region.

What an outside scheduler fires, or what runs elsewhere, is never attempted here, only recorded when nobody has called.
"""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta

from shared.job import Job
from shared.postgres import Session
from shared.sql_files import statement
from trigger.catch_up import CaughtUp
from trigger.claim_outcome import Claimant
from trigger.leader import Leadership

DUE_JOBS = statement("trigger", "due_jobs")
UNCALLED_JOBS = statement("trigger", "uncalled_jobs")

AT_ONCE = timedelta(0)
# What an outside scheduler calls for, and what runs elsewhere: nothing of it is claimed from inside.
CALLED = frozenset({"external", "elsewhere"})


def delay_elsewhere(job: Job, region: str) -> timedelta:
    """Give how much later than the due instant a trigger in `region` attempts the job."""
    return job.region_delay if job.region and job.region != region else AT_ONCE


def uncalled(caught_up: CaughtUp) -> CaughtUp:
    """Give what is recorded of a job that is called: what was missed or covered; the rest may be called for."""
    return replace(caught_up, turns=(), coalesced=(), late=(), beyond=())


async def due_jobs(
    session: Session,
    jobs: list[str],
    instance: str,
    *,
    delay: timedelta = AT_ONCE,
    also_taken: bool = True,
    now: datetime | None = None,
) -> set[str]:
    """Give the names of the jobs that have something for `claim_due`; takes no lock.

    Only what was due `delay` ago counts. With `also_taken` an instant that another has taken counts until this instance
    has recorded its attempt on it.
    """
    return {row["name"] for row in await session.fetch(DUE_JOBS, jobs, instance, delay, also_taken, now)}


async def attempted_now(
    session: Session,
    jobs: Mapping[str, Job],
    claimant: Claimant,
    leadership: Leadership,
    *,
    now: datetime | None = None,
) -> set[str]:
    """Begin a pass over `jobs`, and give the names of those that have something for `claim_due` of this process."""
    led = await leadership.lead(session, [name for name, job in jobs.items() if job.coordination == "leader"], now=now)
    due = await due_jobs(session, sorted(led), claimant.instance, also_taken=False, now=now) if led else set()
    by_delay: dict[timedelta, list[str]] = {}
    for name, job in jobs.items():
        if job.coordination == "claim":
            by_delay.setdefault(delay_elsewhere(job, claimant.region), []).append(name)
    for delay, names in by_delay.items():
        due |= await due_jobs(session, names, claimant.instance, delay=delay, now=now)
    outside = [name for name, job in jobs.items() if job.coordination in CALLED]
    if outside:
        due |= {row["name"] for row in await session.fetch(UNCALLED_JOBS, outside, now)}
    return due
