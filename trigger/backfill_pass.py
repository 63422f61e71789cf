"""Going on with backfills: a live trigger starts the next occurrence whenever fewer run than the order allows.

Each step is decided behind the job row's lock, one occurrence at a time, so any number of triggers may do it, and one
that dies leaves nothing but a claim that another takes over. The schedule goes first: while one of its instants is due,
no other is started, unless occurrences of the job may overlap.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity
from shared.close import close
from shared.logs import logger
from shared.postgres import Row, Session, database_now, transaction
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.backfill import END_BACKFILL
from trigger.claim_outcome import Claimant, Fired, Nothing, Won
from trigger.decide import running_of, take
from trigger.failures import reason_of_pause
from trigger.operate import Choice, Order, open_again
from trigger.plan import LOCK_JOB, is_current

BACKFILLING_JOBS = statement("trigger", "backfilling_jobs")
ACTIVE_BACKFILL = statement("trigger", "active_backfill")
NEXT_BACKFILLED = statement("trigger", "next_backfilled")
LEAVE_OUT = statement("trigger", "leave_out")
_log = logger(__name__)


async def backfilling_jobs(session: Session, jobs: Sequence[str]) -> list[str]:
    """Give the names of the jobs whose backfill may go on; takes no lock."""
    return [row["job"] for row in await session.fetch(BACKFILLING_JOBS, list(jobs))]


async def advance_backfill(
    session: Session, job: str, revision: int, claimant: Claimant, *, now: datetime | None = None
) -> Won | Nothing:
    """Start the next occurrence of a job's backfill, or end the backfill; `more` asks for another step at once."""
    rerun_id = None
    async with transaction(session):
        known = await session.fetchrow(LOCK_JOB, job)
        if not await _may_go_on(session, known, revision, claimant, now):
            return Nothing()
        backfill = await session.fetchrow(ACTIVE_BACKFILL, job, now)
        if backfill is None or backfill["held"]:
            return Nothing()
        if not backfill["waiting"] and not backfill["running"]:
            await session.fetchval(END_BACKFILL, job, "done", None, None, claimant.instance, now)
            _log.info("backfill done", job=job, backfill=backfill["id"])
            return Nothing()
        has_room = backfill["waiting"] and await _has_room(session, known, backfill)
        # Again: what was in the way at the first look may have failed since, as the last failure that the job takes.
        if not has_room or not await _may_go_on(session, known, revision, claimant, now):
            return Nothing()
        chosen: Any = await session.fetchrow(NEXT_BACKFILLED, backfill["id"], backfill["reverse"])
        if chosen["pruned"]:
            await _leave_out(session, known, backfill, chosen, claimant, "older than what is retained")
        elif chosen["state"] == "expected":
            return await _claim(session, known, backfill, chosen, claimant, now)
        else:
            rerun_id = await _rerun(session, known, backfill, chosen, claimant, now)
    if rerun_id is not None:
        await close(session, rerun_id, by=claimant.instance, now=now)
    return Nothing(more=True)


async def _may_go_on(session: Session, known: Any, revision: int, claimant: Claimant, now: datetime | None) -> bool:
    if not is_current(known, revision):
        return False
    present = now or await database_now(session)
    return await reason_of_pause(session, known, claimant.instance, present) is None


async def _has_room(session: Session, known: Any, backfill: Row) -> bool:
    """Tell whether one more may run: by the order's bound and by the overlap policy; the schedule goes first."""
    if backfill["running"] >= backfill["max_active"]:
        return False
    definition = known["definition"]
    if definition["decisions"]["overlap"] == "allow":
        return True
    # What waits for an outside call may wait for long, or in vain.
    waits_for_schedule = backfill["schedule_is_due"] and definition["coordination"] != "external"
    return not waits_for_schedule and await running_of(session, known["name"]) is None


async def _claim(
    session: Session, known: Any, backfill: Row, chosen: Row, claimant: Claimant, now: datetime | None
) -> Won | Nothing:
    claim = await take(
        session,
        Identity(known["name"], chosen["scheduled_at"]),
        known["revision"],
        claimant,
        timedelta(seconds=known["definition"]["decisions"]["finish_within"]),
        fired=Fired(backfill["actor"], _told(backfill)),
        now=now,
    )
    return Nothing() if claim is None else Won(claim)


async def _rerun(
    session: Session, known: Any, backfill: Row, chosen: Row, claimant: Claimant, now: datetime | None
) -> int | None:
    """Run an occurrence again, and give its id; None where that is refused, which is noted."""
    identity = Identity(known["name"], chosen["scheduled_at"])
    order = Order(backfill["actor"], _told(backfill), claimant.instance)
    try:
        async with session.transaction():
            return (await open_again(session, identity, known, Choice(), order, now=now)).occurrence_id
    except Refused as refused:
        await _leave_out(session, known, backfill, chosen, claimant, str(refused))
        return None


async def _leave_out(session: Session, known: Any, backfill: Row, chosen: Row, claimant: Claimant, why: str) -> None:
    await session.execute(LEAVE_OUT, backfill["id"], chosen["id"], why, claimant.instance)
    identity = Identity(known["name"], chosen["scheduled_at"])
    _log.warning("backfill leaves an occurrence out", occurrence=str(identity), backfill=backfill["id"], reason=why)


def _told(backfill: Row) -> str:
    return f"backfill {backfill['id']}: {backfill['reason']}"
