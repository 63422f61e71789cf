"""Whether a job may fire: pause, resume, retire and its way back, each one transaction behind the job row's lock.

So of an order and of triggers that claim at the same moment, one comes first, and the other goes by what it has left.
What runs already goes on to its end: a pause decides about what falls due, not about work in hand.
"""

from dataclasses import astuple, dataclass, replace
from datetime import datetime
from typing import Final, Literal

from schemas.occurrence import Identity
from shared.postgres import Row, Session, database_now, transaction
from shared.sql_files import statement
from shared.terminal import Refused
from shared.timing import Timing
from trigger.backfill import END_BACKFILL
from trigger.locked_job import locked_job
from trigger.operate import Order
from trigger.plan import plan_through
from trigger.standing import Standing, as_record, at, standing_of, told_pause, told_retirement

WRITE_STANDING = statement("trigger", "write_standing")
SKIP_EXPECTED = statement("trigger", "skip_expected")
EXPECT_RETIRED = statement("trigger", "expect_retired")
STILL_RUNNING = statement("trigger", "still_running")

Meanwhile = Literal["skip", "hold"]

FATES: Final = {
    "skip": "what falls due is skipped, and never runs by itself",
    "hold": "what falls due waits; at `resume` the job's catch_up decides, as after a downtime",
}
# The refusal of a job that was never retired has the other words.
_DONE = {"not retired": "no longer retired"}
_UNHELD = {"every": "is run by each worker for itself", "elsewhere": "runs elsewhere"}


@dataclass(frozen=True, slots=True)
class Changed:
    """A job's standing now, what still runs of it, and how many waiting instants were `skipped` or `expected` again."""

    standing: Standing
    running: tuple[str, ...]
    skipped: int = 0
    expected: int = 0


async def pause(
    session: Session, job: str, order: Order, meanwhile: Meanwhile = "skip", *, now: datetime | None = None
) -> Changed:
    """Have nothing of the job's schedule fire; what falls due is skipped, or held until `resume`.

    A paused job may be paused again to change its fate. Raises Refused for an unknown job, one that is retired, one
    that is paused so already, or to hold one of which each worker runs its own occurrence, or that runs elsewhere.
    """
    async with transaction(session):
        before, known = await _locked(session, job)
        if before.retired_at is not None:
            raise Refused(f"{job} is retired since {at(before.retired_at)}: nothing of it fires anyway")
        if meanwhile == "hold" and (why := _UNHELD.get(known["definition"].get("coordination", ""))):
            raise Refused(f"--meanwhile: {job} {why}, so that nothing of it can wait; only skip")
        if before.paused_at is not None and before.meanwhile == meanwhile:
            raise Refused(f"{job} is paused already: {told_pause(before)}")
        present = now or await database_now(session)
        after = replace(
            before,
            paused_at=before.paused_at or present,
            paused_by=order.actor,
            pause_reason=order.reason,
            meanwhile=meanwhile,
        )
        await _write(session, job, "pause", before, after, order)
        return Changed(after, await _running(session, job))


async def resume(session: Session, job: str, order: Order, *, now: datetime | None = None) -> Changed:
    """Let the schedule fire again, from now on; what a pause has held is decided by `catch_up`, as after a downtime.

    What fell due during a pause that skips, and that no trigger was there to record, is recorded first. Raises Refused
    for an unknown job, one that is retired, or one that is not paused.
    """
    async with transaction(session):
        before, known = await _locked(session, job)
        if before.retired_at is not None:
            raise Refused(f"{job} is retired since {at(before.retired_at)}: `unretire` it first")
        if before.paused_at is None:
            raise Refused(f"{job} is not paused")
        present = now or await database_now(session)
        skipped = 0
        if before.meanwhile == "skip":
            skipped = await _skip_until(session, known, "paused", present, order, told_pause(before))
        after = replace(before, paused_at=None, paused_by=None, pause_reason=None, resumed_at=present)
        await _write(session, job, "resume", before, after, order)
        return Changed(after, await _running(session, job), skipped=skipped)


async def retire(session: Session, job: str, order: Order, *, now: datetime | None = None) -> Changed:
    """End a job for good: what waits is skipped, nothing of it fires or alarms any more, and nothing is deleted.

    Raises Refused for an unknown job, and one that is retired already.
    """
    async with transaction(session):
        before, _ = await _locked(session, job)
        if before.retired_at is not None:
            raise Refused(f"{job} is retired already: {told_retirement(before)}")
        present = now or await database_now(session)
        after = replace(before, retired_at=present, retired_by=order.actor, retire_reason=order.reason)
        why = f"{order.actor}: {order.reason}"
        await session.fetchval(END_BACKFILL, job, "cancelled", order.actor, why, order.instance, now)
        skipped = await session.fetchval(SKIP_EXPECTED, job, "retired", None, order.instance, order.actor, why)
        await _write(session, job, "retire", before, after, order)
        return Changed(after, await _running(session, job), skipped=skipped)


async def unretire(session: Session, job: str, order: Order, *, now: datetime | None = None) -> Changed:
    """Bring a retired job back, from now on: what was due meanwhile is recorded as skipped, what comes is expected.

    A process that declares the job plans and claims it again at its next look. Raises Refused for an unknown job, and
    one that is not retired.
    """
    async with transaction(session):
        before, known = await _locked(session, job)
        if before.retired_at is None:
            raise Refused(f"{job} is not retired")
        present = now or await database_now(session)
        skipped = await _skip_until(session, known, "retired", present, order, told_retirement(before))
        expected = await session.fetchval(EXPECT_RETIRED, job, known["revision"], present, order.instance, order.actor)
        after = replace(before, resumed_at=present, retired_at=None, retired_by=None, retire_reason=None)
        await _write(session, job, "unretire", before, after, order)
        return Changed(after, await _running(session, job), skipped, expected)


def told_change(job: str, now_it_is: str, changed: Changed) -> list[str]:
    """Say how a job stands now (`paused`, `resumed`, `retired` or `not retired`), a line each."""
    fate = f": {FATES[changed.standing.meanwhile]}" if now_it_is == "paused" else ""
    lines = [f"{job} is {_DONE.get(now_it_is, now_it_is)}{fate}"]
    if changed.skipped:
        lines.append(f"{changed.skipped} instants that waited are recorded as skipped")
    if changed.expected:
        lines.append(f"{changed.expected} instants to come are expected again")
    lines += [f"{one} runs, and goes on to its end; `cancel` it if it must not" for one in changed.running]
    if now_it_is != "paused" and changed.standing.paused_at is not None and changed.standing.retired_at is None:
        lines.append(f"{job} is still paused: `resume` it")
    return lines


async def _write(session: Session, job: str, kind: str, before: Standing, after: Standing, order: Order) -> None:
    """Write a standing, and who decided it; the caller holds the job row's lock."""
    detail = {"before": as_record(before), "after": as_record(after)}
    await session.execute(WRITE_STANDING, job, *astuple(after), kind, order.instance, order.actor, order.reason, detail)


async def _locked(session: Session, job: str) -> tuple[Standing, Row]:
    known = await locked_job(session, job)
    return standing_of(known), known


async def _skip_until(session: Session, known: Row, reason: str, until: datetime, order: Order, why: str) -> int:
    """Record every instant that was due until now and is undecided, also those that nobody was there to plan."""
    job, revision = known["name"], known["revision"]
    # What every worker runs for itself has no instants that wait.
    if known["planned_through"] < until and known["definition"]["coordination"] != "every":
        timing = Timing.from_definition(job, known["definition"])
        await plan_through(session, timing, revision, known["planned_through"], until, by=order.instance)
    return int(await session.fetchval(SKIP_EXPECTED, job, reason, until, order.instance, order.actor, why))


async def _running(session: Session, job: str) -> tuple[str, ...]:
    rows = await session.fetch(STILL_RUNNING, job)
    return tuple(str(Identity(job, row["scheduled_at"], row["variant"])) for row in rows)
