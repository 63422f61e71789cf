"""Publishing a job's accounts from their ledger rows, beside the fan-out, held back by the bound on what is in flight.

What must be published again goes first. First publishes follow a watermark for each occurrence: it moves over what the
broker has confirmed without a gap, so a crash repeats messages and never leaves one out. A worker meets the ledger row.
"""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, TypeAlias

from schemas.message import encode, kind_of
from schemas.occurrence import Identity
from shared.broker import Outgoing, PublishFailed
from shared.fleet import Spoken, take_lease
from shared.job import Job
from shared.logs import logger
from shared.postgres import Database
from shared.published import mark_published
from shared.sql_files import statement
from shared.telemetry import Destination, metrics, publish_span
from trigger.messages import LedgerRow, grouped, ledger_row, work_message

PUBLISHABLE_OCCURRENCES = statement("trigger", "publishable_occurrences")
IN_FLIGHT = statement("trigger", "in_flight")
AGAIN_ROWS = statement("trigger", "again_rows")
FIRST_ROWS = statement("trigger", "first_rows")
WAITING_ACCOUNTS = statement("trigger", "waiting_accounts")
MOVE_WATERMARK = statement("trigger", "move_watermark")
GIVE_BACK_LEASE = statement("trigger", "give_back_lease")

ROWS_AT_ONCE = 1000
_log = logger(__name__)

Send: TypeAlias = Callable[[Sequence[Outgoing]], Awaitable[list[PublishFailed | None]]]
Group: TypeAlias = tuple[LedgerRow, ...]


@dataclass(frozen=True, slots=True)
class Publishing:
    """What a job's publisher works with.

    `exchange` is the work exchange, and `routing_key` leads to the job's queue (by default its plain key); `holder` the
    instance that holds the lease for `lease`; `bound` the accounts that may be in flight; `grace` how long after
    `not_before` a retry's own message is waited for; `spoken` which version of messages every live worker reads.
    """

    database: Database
    job: Job
    send: Send
    exchange: str
    holder: str
    lease: timedelta
    bound: int
    grace: timedelta = timedelta(seconds=5)
    now: datetime | None = None
    routing_key: str = ""
    spoken: Spoken = field(default_factory=Spoken)


@dataclass(slots=True)
class Published:
    """What a pass did: accounts confirmed and not confirmed, and the room that is left under the bound.

    `more` asks for another pass at once, `held_back` for one as soon as the workers have made room.
    """

    accounts: int = 0
    failed: int = 0
    more: bool = False
    held_back: bool = False
    room: int = 0


async def publish_pass(work: Publishing) -> Published:
    """Publish what may be published now; at most one process does, for as long as it holds the job's lease.

    One that cannot publish gives the lease back, since another's way to the broker may be open.
    """
    done = Published()
    lease = f"publish:{work.job.name}"
    async with work.database.session() as session:
        if not await session.fetch(PUBLISHABLE_OCCURRENCES, work.job.name):
            return done
        if not await take_lease(session, lease, work.holder, work.lease, now=work.now):
            return done
        # Read again: the lease's former holder may have moved the watermark since.
        occurrences = await session.fetch(PUBLISHABLE_OCCURRENCES, work.job.name)
        in_flight = await session.fetchval(IN_FLIGHT, work.job.name, work.bound, work.now)
    done.room = work.bound - in_flight
    # A chunk that is cut to what little room there is would cost as much as a whole one.
    if done.room < min(work.job.handler.chunk_size, work.bound):
        done.held_back = True
        return done
    fresh = True
    for publish in (_publish_again, _publish_first):
        for occurrence in occurrences:
            if done.room <= 0 or done.failed:
                continue
            # A page may have waited for a slow broker for longer than the lease.
            if not (fresh or await _holds(work, lease)):
                return done
            fresh = False
            await publish(work, occurrence, done)
    done.held_back = done.room <= 0
    if done.failed:
        async with work.database.session() as session:
            await session.execute(GIVE_BACK_LEASE, lease, work.holder, work.now)
    return done


async def _holds(work: Publishing, lease: str) -> bool:
    async with work.database.session() as session:
        return await take_lease(session, lease, work.holder, work.lease, now=work.now)


async def _publish_again(work: Publishing, occurrence: Any, done: Published) -> None:
    """Publish one page of what was marked as unpublished, and mark what was confirmed."""
    limit = min(done.room, ROWS_AT_ONCE)
    async with work.database.session() as session:
        found = await session.fetch(
            AGAIN_ROWS, occurrence["id"], occurrence["scheduled_at"], work.grace, limit, work.now
        )
    if not found:
        return
    groups = list(grouped(map(ledger_row, found), work.job.handler.chunk_size))
    published_at = found[0]["now"]
    outcomes = await _send(work, occurrence, groups, published_at)
    confirmed = [row for group, failure in zip(groups, outcomes, strict=True) if failure is None for row in group]
    accounts, epochs = [row.account for row in confirmed], [row.epoch for row in confirmed]
    async with work.database.session() as session:
        key = (occurrence["id"], occurrence["scheduled_at"])
        await mark_published(session, key, accounts, epochs, published_at)
    _count(done, len(found), len(confirmed), full=len(found) == limit)


async def _publish_first(work: Publishing, occurrence: Any, done: Published) -> None:
    """Publish one page behind the watermark, and move it over what was confirmed without a gap."""
    watermark = occurrence["through"]
    if watermark >= occurrence["accounts_read"] or await _waits(work, occurrence):
        return
    chunk = work.job.handler.chunk_size
    limit = min(done.room, max(ROWS_AT_ONCE // chunk, 1) * chunk)
    async with work.database.session() as session:
        found = await session.fetch(
            FIRST_ROWS, occurrence["id"], occurrence["scheduled_at"], watermark, limit, work.now
        )
    groups = list(grouped(map(ledger_row, found), chunk))
    published_at = found[0]["now"] if found else None
    outcomes = await _send(work, occurrence, groups, published_at) if published_at else []
    confirmed = 0
    for group, failure in zip(groups, outcomes, strict=True):
        if failure is not None:
            break
        watermark, confirmed = group[-1].position, confirmed + len(group)
    if confirmed == len(found) < limit:
        # All that is left up to there was settled, or is published again by itself.
        watermark = max(watermark, occurrence["accounts_read"])
    if watermark > occurrence["through"]:
        async with work.database.session() as session:
            moved_at = published_at or work.now or await session.fetchval("select clock_timestamp()")
            await session.execute(MOVE_WATERMARK, occurrence["id"], watermark, moved_at)
    _count(done, len(found), confirmed, full=len(found) == limit)


async def _waits(work: Publishing, occurrence: Any) -> bool:
    """Tell whether as many accounts as may be in flight wait for the occurrences before: more would only wait too."""
    if work.job.decisions.overlap_by != "account":
        return False
    async with work.database.session() as session:
        key = (occurrence["id"], occurrence["scheduled_at"])
        return bool(await session.fetchval(WAITING_ACCOUNTS, *key, occurrence["through"], work.bound) >= work.bound)


def _count(done: Published, found: int, confirmed: int, *, full: bool) -> None:
    done.accounts += confirmed
    done.failed += found - confirmed
    done.room -= confirmed
    done.more = (done.more or full) and not done.failed


async def _send(
    work: Publishing, occurrence: Any, groups: Sequence[Group], published_at: datetime
) -> list[PublishFailed | None]:
    job = work.job
    identity = str(Identity(job.name, occurrence["scheduled_at"], occurrence["variant"]))
    destination = Destination(work.exchange, job.queue)
    parent = occurrence["trace_context"]
    with publish_span(job.name, destination, messages=len(groups), parent=parent, occurrence=identity) as span:
        headers = {"traceparent": span.context} if span.context else {}
        outgoing, version = [], work.spoken.oldest
        for group in groups:
            message = work_message(
                group,
                job=job.name,
                occurrence_id=occurrence["id"],
                scheduled_at=occurrence["scheduled_at"],
                epoch=occurrence["epoch"],
                published_at=published_at,
            )
            key, message_id = work.routing_key or job.queue, str(uuid.uuid4())
            body = encode(message, version)
            outgoing.append(Outgoing(work.exchange, key, body, message_id, identity, kind_of(version), headers))
        outcomes = await work.send(outgoing)
        failures = [failure for failure in outcomes if failure is not None]
        if failures:
            span.fail(type(failures[0]).__name__, failures[0].reason)
    if failures:
        metrics.publish_failures.add(len(failures), job=job.name)
        _log.warning(
            "publish failed", job=job.name, occurrence=identity, messages=len(failures), reason=failures[0].reason
        )
    return outcomes
