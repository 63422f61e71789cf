"""What becomes of what is due: the pure decisions applied, in the transaction that holds the job row's lock.

What is read behind that lock cannot change before the commit; so an occurrence that is in the way is seen, and two that
would start at once see one another.
"""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity
from shared.calls import Window
from shared.job import Job
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.telemetry import claim_span, metrics
from trigger.attempting import CALLED, uncalled
from trigger.catch_up import CaughtUp, Due, catch_up, must_pause
from trigger.claim_outcome import Claim, Claimant, Ended, Fired, Nothing, Overlapped, Won
from trigger.failures import reason_of_pause
from trigger.overlap import Active, Decided, without_overlap

ACTIVE_OCCURRENCE = statement("trigger", "active_occurrence")
CLAIM = statement("trigger", "claim")
COALESCE_OCCURRENCES = statement("trigger", "coalesce_occurrences")
SETTLE_WITHOUT_CLAIM = statement("trigger", "settle_without_claim")
CANCEL_PREVIOUS = statement("trigger", "cancel_previous")
LET_WAIT = statement("trigger", "let_wait")

DUE_AT_ONCE = 10_000


async def decide(
    session: Session,
    job: Job,
    known: Any,
    claimant: Claimant,
    due: Sequence[Due],
    last_claimed_at: datetime | None,
    *,
    present: datetime,
    now: datetime | None,
) -> Won | Overlapped | Nothing:
    """Decide all of `due`, in its order, and claim at most one; the caller holds the job's row, `known`, locked.

    `last_claimed_at` is when the latest instant that was claimed was claimed. `present` is what was read of the clock
    behind the lock, and `now` what a test gives for it.
    """
    decisions = job.decisions
    caught_up = _caught_up(job, due, present)
    if len(due) == DUE_AT_ONCE and (caught_up.missed or caught_up.late or caught_up.covered or caught_up.beyond):
        # More are due than were read: what runs is decided when the last of them is known.
        await _record(session, job, replace(caught_up, turns=(), coalesced=()), claimant)
        return Nothing(more=True)
    active = await active_of(session, job.name, decisions.start_within) if caught_up.turns else []
    decided = without_overlap(caught_up, decisions, active)
    if decided.run is not None and must_pause(caught_up.turns, decisions, present, last_claimed_at):
        decided = Decided()
    if decided.run is not None and await reason_of_pause(session, known, claimant.instance, present) is not None:
        # What was in the way at the first look may have failed since, as the last failure that the job takes.
        return Nothing(more=True)
    claim = None
    if decided.run is not None:
        identity = Identity(job.name, decided.run.scheduled_at)
        # By its own reading of the clock: what was active may have closed since the transaction's first.
        claim = await take(session, identity, known["revision"], claimant, decisions.finish_within, now=now)
    await _record(session, job, caught_up, claimant)
    overlapped = await _apply(session, job.name, decided, active, claimant)
    return Won(claim) if claim is not None else overlapped or Nothing()


def _caught_up(job: Job, due: Sequence[Due], present: datetime) -> CaughtUp:
    if job.coordination == "elsewhere":
        # Each has run there or has not: a later one covers nothing.
        due = [replace(one, covered_by=None) for one in due]
    caught_up = catch_up(due, job.decisions, present)
    return uncalled(caught_up) if job.coordination in CALLED else caught_up


async def active_of(session: Session, job: str, start_within: timedelta) -> list[Active]:
    """Give the occurrences of a job that are active, the one that was opened last first."""
    return [
        Active(
            row["id"],
            row["scheduled_at"],
            str(Identity(job, row["scheduled_at"], row["variant"])),
            row["opened_at"],
            is_late=row["claimed_at"] - row["due_at"] > start_within,
            is_ending=row["ending"] is not None,
            is_scheduled=row["is_scheduled"],
        )
        for row in await session.fetch(ACTIVE_OCCURRENCE, job)
    ]


async def running_of(session: Session, job: str) -> Identity | None:
    """Give the active occurrence of a job that was opened last, or None; behind the job row's lock."""
    row = await session.fetchrow(ACTIVE_OCCURRENCE, job)
    return None if row is None else Identity(job, row["scheduled_at"], row["variant"])


async def end_previous(
    session: Session, ended: Sequence[Active], starts: Identity, claimant: Claimant, *, fired: Fired | None = None
) -> tuple[Ended, ...]:
    """End the dispatch of what is in the way of `starts`; give those that this call has ended."""
    if not ended:
        return ()
    reason = f"cancel_previous: {starts} is due"
    ids = [one.id for one in ended]
    by = (fired and fired.by, str(starts), fired and fired.kind)
    rows = await session.fetch(CANCEL_PREVIOUS, ids, reason, claimant.instance, *by)
    return tuple(Ended(row["id"], row["scheduled_at"]) for row in rows)


async def let_wait(session: Session, occurrences: Sequence[int], in_the_way: Active, claimant: Claimant) -> None:
    """Record what due instants wait for, by their rows' ids."""
    await session.execute(LET_WAIT, list(occurrences), in_the_way.id, claimant.instance, in_the_way.identity)


async def _apply(
    session: Session, job: str, decided: Decided, active: Sequence[Active], claimant: Claimant
) -> Overlapped | None:
    """Write what becomes of those that may have run, and of what was in their way."""
    into = decided.run or decided.waits
    if decided.coalesced and into is not None:
        ids = [one.id for one in decided.coalesced]
        await session.execute(COALESCE_OCCURRENCES, ids, [into.id] * len(ids), claimant.instance)
    if decided.waits is not None:
        waiting = [one.id for one in (decided.waits, *decided.also_wait)]
        await let_wait(session, waiting, active[0], claimant)
        starts = Identity(job, decided.waits.scheduled_at)
        ended = await end_previous(session, decided.ended, starts, claimant)
        return Overlapped(active[0].identity, waits=True, ended=ended)
    if decided.overlapping:
        await settle(session, decided.overlapping, "skipped", "overlap", claimant, active[0].identity)
        return Overlapped(active[0].identity)
    return None


async def _record(session: Session, job: Job, caught_up: CaughtUp, claimant: Claimant) -> None:
    """Write what becomes of the instants that may not run."""
    if caught_up.covered:
        ids, targets = [one.id for one in caught_up.covered], [one.covered_by for one in caught_up.covered]
        await session.execute(COALESCE_OCCURRENCES, ids, targets, claimant.instance)
    unheard = "no check-in within heard_within"
    reason = unheard if job.coordination == "elsewhere" else "not claimed within catch_up_within"
    await settle(session, caught_up.missed, "missed", reason, claimant)
    await settle(session, caught_up.late, "skipped", "catch_up", claimant)
    await settle(session, caught_up.beyond, "skipped", "catch_up_at_most", claimant)


async def settle(
    session: Session,
    due: Sequence[Due],
    state: str,
    reason: str,
    claimant: Claimant,
    because_of: str | None = None,
) -> None:
    """Record that due instants are not run: `skipped` or `missed`, and why."""
    if due:
        ids = [one.id for one in due]
        await session.execute(SETTLE_WITHOUT_CLAIM, ids, state, reason, claimant.instance, because_of)


async def take(
    session: Session,
    identity: Identity,
    revision: int,
    claimant: Claimant,
    finish_within: timedelta,
    *,
    fired: Fired | None = None,
    now: datetime | None = None,
) -> Claim | None:
    """Claim an occurrence; None when it is not to be had."""
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
            fired and fired.by,
            fired and fired.reason,
            now,
            fired and fired.kind,
            claimant.host,
        )
        span.set(outcome="lost" if row is None else "won")
    if row is None:
        return None
    claim = claim_of(row)
    metrics.claim_wins.add(1, job=identity.job)
    if row["origin"] == "schedule":
        metrics.lag.record(claim.lag.total_seconds(), job=identity.job)
    return claim


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
        row["due_at"],
        row["trace_context"],
    )
