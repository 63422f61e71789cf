"""Claiming what is due: one winner for each occurrence, decided under the job row's lock by the database's clock.

The lock is the transaction's first statement. Where it came later, or in the claim's own statement, several occurrences
of one job were active at once. What is read behind it cannot change before the commit.
"""

from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity
from shared.calls import Window
from shared.job import Job
from shared.postgres import Row, Session, database_now
from shared.sql_files import statement
from shared.telemetry import claim_span, metrics
from trigger.catch_up import CaughtUp, Due, catch_up
from trigger.claim_outcome import (
    Claim,
    Claimant,
    ClaimOutcome,
    FireOutcome,
    Held,
    NotDue,
    Nothing,
    Overlapped,
    Stale,
    Won,
)
from trigger.overlap import Decided, without_overlap
from trigger.plan import ENSURE_PARTITION, LOCK_JOB

__all__ = [
    "Claim",
    "Claimant",
    "Held",
    "NotDue",
    "Nothing",
    "Overlapped",
    "Stale",
    "Won",
    "claim_due",
    "claim_of",
    "claim_one",
    "due_jobs",
]

DUE_JOBS = statement("trigger", "due_jobs")
ATTEMPT_DUE = statement("trigger", "attempt_due")
DUE_OCCURRENCES = statement("trigger", "due_occurrences")
ACTIVE_OCCURRENCE = statement("trigger", "active_occurrence")
CLAIM = statement("trigger", "claim")
OCCURRENCE_HOLDER = statement("trigger", "occurrence_holder")
COALESCE_OCCURRENCES = statement("trigger", "coalesce_occurrences")
SETTLE_WITHOUT_CLAIM = statement("trigger", "settle_without_claim")

DUE_AT_ONCE = 10_000


async def due_jobs(session: Session, jobs: list[str], instance: str, *, now: datetime | None = None) -> set[str]:
    """Give the names of the jobs that have something for `claim_due`; takes no lock."""
    return {row["name"] for row in await session.fetch(DUE_JOBS, jobs, instance, now)}


async def claim_due(
    session: Session, job: Job, revision: int, claimant: Claimant, *, now: datetime | None = None
) -> ClaimOutcome:
    """Decide everything that is due for a job and claim at most one occurrence, in one transaction."""
    async with session.transaction():
        known: Any = await session.fetchrow(LOCK_JOB, job.name)
        if known is None or known["revision"] != revision or known["retired_at"] is not None:
            return Stale(known and known["revision"])
        present = now or await database_now(session)
        if known["planned_through"] < present:
            return Nothing(more=True)
        taken = await session.fetch(ATTEMPT_DUE, job.name, claimant.instance, claimant.region, present)
        rows = await session.fetch(DUE_OCCURRENCES, job.name, present, DUE_AT_ONCE)
        due = [Due(row["id"], row["scheduled_at"], row["covered_by"]) for row in rows]
        if due or taken:
            metrics.claim_attempts.add(1, job=job.name)
        if not due:
            return _held(taken[0]) if taken else Nothing()
        if known["paused_at"] is not None:
            await _settle(session, due, "skipped", "paused", claimant)
            return Nothing(more=len(due) == DUE_AT_ONCE)
        return await _decide(session, job, revision, claimant, due, present)


async def claim_one(
    session: Session,
    identity: Identity,
    claimant: Claimant,
    *,
    fired_by: str,
    reason: str | None = None,
    now: datetime | None = None,
) -> FireOutcome:
    """Claim a named occurrence, by hand or for an outside scheduler: the same claim as the schedule's.

    Whoever comes second is told who holds it. While another occurrence of the job runs, nothing is claimed.
    """
    async with session.transaction():
        known: Any = await session.fetchrow(LOCK_JOB, identity.job)
        if known is None:
            return NotDue(known=False)
        if known["retired_at"] is not None:
            return Stale(None)
        holder = await _holder(session, identity, now)
        if not isinstance(holder, NotDue) and holder.state == "expected":
            active = await session.fetchrow(ACTIVE_OCCURRENCE, identity.job)
            if active is not None:
                return Overlapped(_identity_of(identity.job, active))
            await session.execute(ENSURE_PARTITION, identity.scheduled_at)
        finish_within = timedelta(seconds=known["definition"]["decisions"]["finish_within"])
        claim = await _claim(
            session, identity, known["revision"], claimant, finish_within, fired_by=fired_by, reason=reason, now=now
        )
        return Won(claim) if claim else await _holder(session, identity, now)


async def _decide(
    session: Session, job: Job, revision: int, claimant: Claimant, due: list[Due], now: datetime
) -> ClaimOutcome:
    caught_up = catch_up(due, job.decisions, now)
    if len(due) == DUE_AT_ONCE and (caught_up.missed or caught_up.late or caught_up.covered):
        # More are due than were read: what runs is decided when the last of them is known.
        await _record(session, Decided(CaughtUp(covered=caught_up.covered, missed=caught_up.missed)), None, claimant)
        await _settle(session, caught_up.late, "skipped", "catch_up", claimant)
        return Nothing(more=True)
    active = await session.fetchrow(ACTIVE_OCCURRENCE, job.name) if caught_up.run else None
    decided = without_overlap(caught_up, job.decisions.overlap, active=active is not None)
    in_the_way = _identity_of(job.name, active) if active else None
    run = decided.caught_up.run
    claim = None
    if run is not None:
        identity = Identity(job.name, run.scheduled_at)
        claim = await _claim(session, identity, revision, claimant, job.decisions.finish_within, now=now)
    await _record(session, decided, in_the_way, claimant)
    if claim is not None:
        return Won(claim)
    return Overlapped(in_the_way) if in_the_way else Nothing()


async def _record(session: Session, decided: Decided, in_the_way: str | None, claimant: Claimant) -> None:
    """Write what becomes of the instants that are not claimed."""
    caught_up = decided.caught_up
    into = [(one.id, one.covered_by) for one in caught_up.covered]
    into += [(one.id, caught_up.run.id) for one in caught_up.coalesced if caught_up.run]
    if into:
        ids, targets = [one for one, _ in into], [target for _, target in into]
        await session.execute(COALESCE_OCCURRENCES, ids, targets, claimant.instance)
    await _settle(session, caught_up.missed, "missed", "not claimed within catch_up_within", claimant)
    await _settle(session, caught_up.late, "skipped", "catch_up", claimant)
    await _settle(session, decided.overlapping, "skipped", "overlap", claimant, in_the_way)


async def _settle(
    session: Session,
    due: list[Due] | tuple[Due, ...],
    state: str,
    reason: str,
    claimant: Claimant,
    because_of: str | None = None,
) -> None:
    if due:
        ids = [one.id for one in due]
        await session.execute(SETTLE_WITHOUT_CLAIM, ids, state, reason, claimant.instance, because_of)


async def _claim(
    session: Session,
    identity: Identity,
    revision: int,
    claimant: Claimant,
    finish_within: timedelta,
    *,
    fired_by: str | None = None,
    reason: str | None = None,
    now: datetime | None = None,
) -> Claim | None:
    with claim_span(identity.job, str(identity), region=claimant.region) as span:
        row = await session.fetchrow(
            CLAIM,
            identity.job,
            identity.scheduled_at,
            identity.variant,
            claimant.instance,
            claimant.region,
            revision,
            claimant.lease,
            finish_within,
            span.context,
            fired_by,
            reason,
            now,
        )
        span.set(outcome="lost" if row is None else "won")
    if row is None:
        return None
    metrics.claim_wins.add(1, job=identity.job)
    metrics.lag.record((row["claimed_at"] - row["scheduled_at"]).total_seconds(), job=identity.job)
    return claim_of(row)


def claim_of(row: Row) -> Claim:
    """Read a claim from the row that the claim and the takeover give."""
    return Claim(
        row["id"],
        Identity(row["job"], row["scheduled_at"], row["variant"]),
        Window(row["window_since"], row["window_until"]),
        row["generation"],
        row["epoch"],
        row["cursor"],
        row["accounts_read"],
        row["fan_out_attempts"],
        row["claimed_at"],
        row["trace_context"],
    )


async def _holder(session: Session, identity: Identity, now: datetime | None) -> Held | NotDue:
    row = await session.fetchrow(OCCURRENCE_HOLDER, identity.job, identity.scheduled_at, identity.variant, now)
    if row is None or not row["due"]:
        return NotDue(known=row is not None)
    return Held(identity.scheduled_at, row["state"], row["claimed_by"], row["claimed_at"], row["reason"])


def _held(row: Row) -> Held:
    return Held(row["scheduled_at"], row["state"], row["claimed_by"], row["claimed_at"])


def _identity_of(job: str, row: Row) -> str:
    return str(Identity(job, row["scheduled_at"], row["variant"]))
