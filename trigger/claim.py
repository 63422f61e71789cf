"""Claiming what is due: one winner for each occurrence, decided under the job row's lock by the database's clock.

The lock is the transaction's first statement. Where it came later, or in the claim's own statement, several occurrences
of one job were active at once. What is read behind it cannot change before the commit.
"""

from datetime import datetime, timedelta
from typing import Any

from schemas.audit import ActorKind
from schemas.occurrence import Identity
from shared.job import Job
from shared.postgres import Row, Session, database_now, transaction
from shared.sql_files import statement
from shared.telemetry import metrics
from trigger.attempting import CALLED, delay_elsewhere, due_jobs
from trigger.catch_up import Due
from trigger.claim_outcome import (
    Claim,
    Claimant,
    ClaimOutcome,
    Fired,
    FireOutcome,
    Foreign,
    Held,
    NotDue,
    Nothing,
    OnHold,
    Overlapped,
    Paused,
    Pruned,
    Stale,
    Won,
)
from trigger.decide import (
    DUE_AT_ONCE,
    active_of,
    decide,
    end_previous,
    let_wait,
    settle,
    take,
)
from trigger.failures import reason_of_pause
from trigger.plan import LOCK_JOB, is_current, prepare_ledger

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
    "claim_one",
    "due_jobs",
]

ATTEMPT_DUE = statement("trigger", "attempt_due")
DUE_OCCURRENCES = statement("trigger", "due_occurrences")
OCCURRENCE_HOLDER = statement("trigger", "occurrence_holder")


async def claim_due(
    session: Session, job: Job, revision: int, claimant: Claimant, *, now: datetime | None = None
) -> ClaimOutcome:
    """Decide everything that is due for a job and claim at most one occurrence, in one transaction.

    Of a job that is called for from outside nothing is claimed, only recorded.
    """
    async with transaction(session):
        known: Any = await session.fetchrow(LOCK_JOB, job.name)
        if not is_current(known, revision):
            return Stale(known and known["revision"])
        present = now or await database_now(session)
        if known["planned_through"] < present:
            return Nothing(more=True)
        if known["paused_at"] is not None and known["meanwhile"] == "hold":
            return Nothing()
        paused = await reason_of_pause(session, known, claimant.instance, present)
        delay = delay_elsewhere(job, claimant.region)
        attempted = await _attempt(session, job, claimant, delay, present)
        if attempted:
            metrics.claim_attempts.add(1, job=job.name)
        taken = [row for row in attempted if row["state"] != "expected"]
        rows = await _due_rows(session, job, present)
        rows = [row for row in rows if row["due_at"] <= present - delay]
        beyond = [_due(row) for row in rows if row["beyond_retention"]]
        await settle(session, beyond, "missed", "older than what is retained", claimant)
        due = [_due(row) for row in rows if not row["beyond_retention"]]
        if not due:
            return _held(taken[0]) if taken else Nothing(more=len(beyond) == DUE_AT_ONCE)
        if paused is not None:
            await settle(session, due, "skipped", "paused", claimant, paused)
            return Nothing(more=len(due) == DUE_AT_ONCE)
        return await decide(session, job, known, claimant, due, rows[0]["last_claimed_at"], present=present, now=now)


async def claim_one(
    session: Session,
    identity: Identity,
    claimant: Claimant,
    *,
    fired_by: str,
    actor_kind: ActorKind = "operator",
    reason: str | None = None,
    now: datetime | None = None,
) -> FireOutcome:
    """Claim a named occurrence, by hand or for an outside scheduler: the same claim as the schedule's.

    `actor_kind` says what `fired_by` names: a person, or a caller from outside. Whoever comes second is told who holds
    it. While another occurrence of the job runs, the job's `overlap` decides;
    while the job is paused, nothing is claimed.
    """
    fired = Fired(fired_by, reason, actor_kind)
    async with transaction(session):
        known: Any = await session.fetchrow(LOCK_JOB, identity.job)
        if (refused := _refused(known)) is not None:
            return refused
        row = await _row(session, identity, now)
        holder = _holder(identity, row)
        if isinstance(holder, Pruned | OnHold | NotDue):
            # What isn't due is not even attempted: it may be due by then, and nobody has looked for a neighbour.
            return holder
        definition = known["definition"]
        if holder.state == "expected":
            if (not_now := await _not_now(session, identity, row, known, claimant, fired, now)) is not None:
                return not_now
            await prepare_ledger(session, identity.scheduled_at)
        within = timedelta(seconds=definition["decisions"]["finish_within"])
        claim = await take(session, identity, known["revision"], claimant, within, fired=fired, now=now)
        return Won(claim) if claim else _holder(identity, await _row(session, identity, now))


def _refused(known: Any) -> NotDue | Stale | Foreign | None:
    """Say why nothing of a job can be claimed, by its locked row; None where something can."""
    if known is None:
        return NotDue(known=False)
    if known["retired_at"] is not None:
        return Stale(None)
    return Foreign() if known["definition"]["coordination"] == "elsewhere" else None


async def _attempt(session: Session, job: Job, claimant: Claimant, delay: timedelta, now: datetime) -> list[Row]:
    """Record the attempt on each due instant that is this trigger's to attempt; give those that are new to it."""
    if job.coordination in CALLED:
        return []
    also_taken = job.coordination == "claim"
    attempted: list[Row] = await session.fetch(
        ATTEMPT_DUE, job.name, claimant.instance, claimant.region, delay, also_taken, now
    )
    return attempted


async def _not_now(
    session: Session,
    identity: Identity,
    row: Any,
    known: Any,
    claimant: Claimant,
    fired: Fired,
    now: datetime | None,
) -> Paused | Overlapped | None:
    """Say what keeps an expected occurrence from being claimed now; None for nothing."""
    if (paused := await _paused(session, known, claimant, now)) is not None:
        return paused
    overlapped = await _overlapped(session, identity, row, known["definition"], claimant, fired)
    # Again: what was in the way at the first look may have failed since, as the last failure that the job takes.
    return overlapped or await _paused(session, known, claimant, now)


async def _paused(session: Session, known: Any, claimant: Claimant, now: datetime | None) -> Paused | None:
    present = now or await database_now(session)
    reason = await reason_of_pause(session, known, claimant.instance, present)
    return None if reason is None else Paused(known["paused_at"] or present, reason)


async def _overlapped(
    session: Session,
    identity: Identity,
    row: Any,
    definition: dict[str, Any],
    claimant: Claimant,
    fired: Fired,
) -> Overlapped | None:
    """Do what `overlap` asks for where an occurrence is in the way; None when nothing is, or it may be.

    Only what the schedule will start by itself can wait, and it ends nothing that was due later than itself.
    """
    overlap = definition["decisions"]["overlap"]
    if overlap == "allow":
        return None
    active = await active_of(session, identity.job, timedelta(seconds=definition["decisions"]["start_within"]))
    if not active:
        return None
    in_the_way = active[0]
    is_scheduled = identity.variant == "" and row["origin"] == "schedule"
    if overlap == "skip" or not is_scheduled:
        return Overlapped(in_the_way.identity)
    waits = definition["coordination"] not in CALLED
    if overlap == "queue_one":
        return Overlapped(in_the_way.identity, waits=waits)
    if any(one.scheduled_at > identity.scheduled_at for one in active):
        return Overlapped(in_the_way.identity)
    if waits:
        await let_wait(session, [row["id"]], in_the_way, claimant)
    live = [one for one in active if one.is_scheduled and not one.is_ending]
    ended = await end_previous(session, live, identity, claimant, fired=fired)
    return Overlapped(in_the_way.identity, waits=waits, ended=ended)


async def _due_rows(session: Session, job: Job, present: datetime) -> list[Row]:
    """Read what is due: in passes while the oldest are to be recorded as missed, and then all of it.

    What runs may be the last of them, so it is decided when that is known.
    """
    rows: list[Row] = await session.fetch(DUE_OCCURRENCES, job.name, present, DUE_AT_ONCE)
    if len(rows) < DUE_AT_ONCE or present - rows[0]["due_at"] > job.decisions.catch_up_within:
        return rows
    return await session.fetch(DUE_OCCURRENCES, job.name, present, None)


async def _row(session: Session, identity: Identity, now: datetime | None) -> Row | None:
    return await session.fetchrow(OCCURRENCE_HOLDER, identity.job, identity.scheduled_at, identity.variant, now)


def _holder(identity: Identity, row: Row | None) -> Held | NotDue | Pruned | OnHold:
    # What another definition took back is on the plan no more.
    known = row is not None and (row["state"], row["reason"]) != ("skipped", "superseded")
    if row is None or not known or not row["due"]:
        return NotDue(known=known)
    if row["state"] == "expected" and row["pruned_before"] is not None:
        return Pruned(row["pruned_before"])
    if row["state"] == "expected" and row["held"] is not None:
        return OnHold(row["held"])
    return Held(identity.scheduled_at, row["state"], row["claimed_by"], row["claimed_at"], row["reason"])


def _due(row: Row) -> Due:
    return Due(row["id"], row["scheduled_at"], row["due_at"], row["covered_by"], row["waited_until"])


def _held(row: Row) -> Held:
    return Held(row["scheduled_at"], row["state"], row["claimed_by"], row["claimed_at"])
