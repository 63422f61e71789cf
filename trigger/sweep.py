"""Taking over what dead processes left: accounts of silent workers, messages that were lost, ends that nobody wrote.

One sweeper for each job, under a lease. A published row is lost only on evidence: a later message of its queue has been
started, or the queue was empty. On age alone, an outage of an hour would have every message sent dozens of times.
"""

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from shared.broker import QueueDepth
from shared.closing import close_and_tell
from shared.fleet import take_lease
from shared.logs import logger
from shared.postgres import Database, Session, database_now
from shared.sql_files import statement
from shared.telemetry import metrics
from trigger.claim_outcome import Ended

ACTIVE_OCCURRENCES = statement("trigger", "active_occurrences")
SWEEP_EXPIRED = statement("trigger", "sweep_expired")
LOST_BEFORE = statement("trigger", "lost_before")
SWEEP_LOST = statement("trigger", "sweep_lost")
CANCEL_PENDING = statement("trigger", "cancel_pending")
STOP_OVERDUE = statement("trigger", "stop_overdue")
NOTE_EMPTY_QUEUE = statement("trigger", "note_empty_queue")
UNDECLARED_JOBS = statement("trigger", "undeclared_jobs")
FAIL_LEFT = statement("trigger", "fail_left")
STOP_SILENT_INSTANCES = statement("trigger", "stop_silent_instances")

ROWS_AT_ONCE = 1000
PAGES_AT_ONCE = 20
SILENCE = timedelta(minutes=1)
_log = logger(__name__)

Depth: TypeAlias = Callable[[], Awaitable[QueueDepth | None]]


async def _always() -> bool:
    return True


@dataclass(frozen=True, slots=True)
class Sweeping:
    """What a job's sweeper works with.

    `queue` is the routing key of its messages, None where it isn't known, and `depth` looks into it. A message is never
    lost before `resend_after`, nor on evidence less than `margin` later than its row was read: a message may be on its
    way to the broker for so long.
    """

    database: Database
    job: str
    queue: str | None
    depth: Depth
    holder: str
    lease: timedelta
    resend_after: timedelta
    margin: timedelta = timedelta(seconds=5)
    now: datetime | None = None
    drained: Callable[[], Awaitable[bool]] = _always


@dataclass(slots=True)
class Swept:
    """What a pass did: accounts given to others, published again and cancelled, and occurrences closed.

    `more` asks for another pass at once.
    """

    expired: int = 0
    lost: int = 0
    cancelled: int = 0
    closed: int = 0
    more: bool = False


async def sweep_pass(work: Sweeping) -> Swept:
    """Look once at everything that is active of a job; at most one process does, while it holds the job's lease."""
    done = Swept()
    async with work.database.session() as session:
        if not await session.fetch(ACTIVE_OCCURRENCES, work.job):
            return done
        if not await take_lease(session, f"sweep:{work.job}", work.holder, work.lease, now=work.now):
            return done
        await session.execute(STOP_OVERDUE, work.job, work.holder, work.now)
        # Of jobs with a queue nothing is a worker's own.
        left = await session.fetch(FAIL_LEFT, work.job, SILENCE, work.now) if work.queue is None else []
        active = await session.fetch(ACTIVE_OCCURRENCES, work.job)
    await note_emptiness(work)
    for occurrence in active:
        done.expired += await _pages(work, occurrence, done, SWEEP_EXPIRED, occurrence["through"], work.now)
        if occurrence["ending"] is None:
            done.lost += await _sweep_lost(work, occurrence, done) if await work.drained() else 0
        else:
            done.cancelled += await _pages(work, occurrence, done, CANCEL_PENDING, work.now)
        async with work.database.session() as session:
            if await close_and_tell(session, occurrence["id"], by=work.holder) is not None:
                done.closed += 1
    done.expired += len(left)
    if done.expired or done.lost:
        _log.warning("swept", job=work.job, expired=done.expired, lost=done.lost)
    return done


async def cancel_ended(session: Session, ended: Collection[Ended], *, by: str, now: datetime | None = None) -> None:
    """Cancel what was not started of occurrences whose dispatch was just ended, and close what is over by that.

    `by` is the id of this process. A bounded number of accounts: what is left, and what executes now, is the sweep's.
    """
    for one in ended:
        for _ in range(PAGES_AT_ONCE):
            if len(await session.fetch(CANCEL_PENDING, one.id, one.scheduled_at, ROWS_AT_ONCE, now)) < ROWS_AT_ONCE:
                break
        await close_and_tell(session, one.id, by=by)


async def undeclared_jobs(session: Session, declared: Collection[str]) -> list[tuple[str, str | None]]:
    """Give the other jobs that still have something active, each with its queue's routing key, if that is known."""
    return [(row["name"], row["queue"]) for row in await session.fetch(UNDECLARED_JOBS, list(declared))]


async def note_emptiness(work: Sweeping) -> None:
    """Record that the job's queue was empty, as of a time before the broker was asked."""
    if work.queue is None:
        return
    async with work.database.session() as session:
        moment = work.now or await database_now(session)
    depth = await work.depth()
    if depth is not None and depth.messages == 0:
        async with work.database.session() as session:
            await session.execute(NOTE_EMPTY_QUEUE, work.queue, moment)


async def stop_silent(database: Database, *, now: datetime | None = None) -> int:
    """Say of processes that have been silent for a minute that they have ended; give their number."""
    async with database.session() as session:
        return len(await session.fetch(STOP_SILENT_INSTANCES, SILENCE, now))


async def _sweep_lost(work: Sweeping, occurrence: Any, done: Swept) -> int:
    """Sweep in pages that each begin behind the last row of the one before: a locked row holds nothing up."""
    async with work.database.session() as session:
        lost_before = await session.fetchval(LOST_BEFORE, work.queue, work.resend_after, work.margin, work.now)
    if lost_before is None:
        return 0
    key, through = (occurrence["id"], occurrence["scheduled_at"]), occurrence["through"]
    lost, behind = 0, ""
    for _ in range(PAGES_AT_ONCE):
        async with work.database.session() as session:
            page: Any = await session.fetchrow(SWEEP_LOST, *key, ROWS_AT_ONCE, through, lost_before, behind)
        lost += page["lost"]
        if page["looked_at"] < ROWS_AT_ONCE:
            break
        behind = page["last"]
    else:
        done.more = done.more or lost > 0
    if lost:
        metrics.resends.add(lost, job=work.job)
    return lost


async def _pages(work: Sweeping, occurrence: Any, done: Swept, query: str, *arguments: Any) -> int:
    """Run a statement of at most a page of rows again until a page is not full, for a bounded number of times."""
    rows = 0
    for _ in range(PAGES_AT_ONCE):
        async with work.database.session() as session:
            page = await session.fetch(query, occurrence["id"], occurrence["scheduled_at"], ROWS_AT_ONCE, *arguments)
        rows += len(page)
        if len(page) < ROWS_AT_ONCE:
            break
    else:
        done.more = True
    return rows
