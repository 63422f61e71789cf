"""Retention: dropping the months of the ledger that lie wholly before a date, while occurrences run.

First it is decided, behind the locks of all jobs, that nothing older will be claimed or run again; only then is
anything dropped. A month is detached concurrently, which no running night waits for, and what an interrupted prune has
left half taken away is found again by its name. Occurrences and the audit trail stay.
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from schemas.occurrence import Identity, format_instant
from shared import clock
from shared.postgres import InsufficientPrivilege, LockNotAvailable, Session, database_now
from shared.sql_files import statement
from shared.terminal import NotDone, Refused
from trigger.operate import Order

LOCK_JOBS = statement("trigger", "lock_jobs")
PRUNE_OBSTACLES = statement("trigger", "prune_obstacles")
PRUNABLE_PARTITIONS = statement("trigger", "prunable_partitions")
PARTITION_STATE = statement("trigger", "partition_state")
RETAIN_FROM = statement("trigger", "retain_from")
PRUNE_COUNTS = statement("trigger", "prune_counts")
PRUNE_PUBLICATIONS = statement("trigger", "prune_publications")
PRUNE_ATTEMPTS = statement("trigger", "prune_attempts")
PRUNE_INSTANCES = statement("trigger", "prune_instances")
PRUNE_DELIVERIES = statement("trigger", "prune_deliveries")
PRUNE_NOTIFICATIONS = statement("trigger", "prune_notifications")
PRUNE_ACCOUNT_LOCKS = statement("trigger", "prune_account_locks")

# In this order: a notification goes once no delivery of it is there.
_BELONGING = (PRUNE_PUBLICATIONS, PRUNE_ATTEMPTS, PRUNE_INSTANCES, PRUNE_DELIVERIES, PRUNE_NOTIFICATIONS)
SHOWN = 5
ROWS_AT_ONCE = 10_000
# Whoever wants a lock that we wait for waits behind us, so we never wait for long.
LOCK_TIMEOUT = "set lock_timeout = '2s'"
PATIENCE_SECONDS = 120.0
PAUSE_SECONDS = 0.5
_ALONE = "select pg_try_advisory_lock(hashtextextended('matins.prune', 0))"
_NAME = re.compile(r"ledger_\d{4}_\d{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Month:
    """One month of the ledger: its table, its bounds, what it holds, and the occurrences that cannot be run again."""

    name: str
    begins: datetime
    ends: datetime
    occurrences: int
    unsuccessful: int
    accounts: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """What was dropped and deleted, or would be; nothing due before `retained_from` can run any more."""

    retained_from: datetime
    months: tuple[Month, ...]
    publications: int
    attempts: int
    instances: int
    notifications: int


async def prune(session: Session, before: datetime, order: Order, *, dry_run: bool = False) -> Pruned:
    """Drop the months that end at `before` or earlier, and what belongs to them; with `dry_run` only say what.

    Raises Refused when something in them is not over or the login does not own the tables, NotDone when a lock was not
    to be had in time: what is left is done by the next prune.
    """
    if before > await database_now(session):
        problem = f"--before: {format_instant(before)} is still to come"
        raise Refused(problem)
    await session.execute(LOCK_TIMEOUT)
    if not await session.fetchval(_ALONE):
        raise NotDone("another prune is under way")
    retained_from = before.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    try:
        if dry_run:
            await _refuse_unfinished(session, retained_from)
            return await _found(session, retained_from)
        pruned = await _decide(session, retained_from, order)
        for month in pruned.months:
            await _drop(session, month.name)
        for query in _BELONGING:
            while len(await session.fetch(query, pruned.retained_from, ROWS_AT_ONCE)) == ROWS_AT_ONCE:
                pass
        await session.execute(PRUNE_ACCOUNT_LOCKS)
    except LockNotAvailable as error:
        raise NotDone("a lock was not to be had within 2 s, and nobody shall wait behind us: prune again") from error
    except InsufficientPrivilege as error:
        problem = f"this login may not drop ledgers ({error}): prune with the one that migrates"
        raise Refused(problem) from error
    return pruned


async def _decide(session: Session, retained_from: datetime, order: Order) -> Pruned:
    async with session.transaction():
        await session.execute(LOCK_JOBS)
        await _refuse_unfinished(session, retained_from)
        found = await _found(session, retained_from)
        detail = {"months": [{"name": one.name, "accounts": one.accounts, "bytes": one.bytes} for one in found.months]}
        moved: datetime = await session.fetchval(
            RETAIN_FROM, retained_from, order.instance, order.actor, order.reason, detail
        )
        # An earlier prune may have gone further, and been interrupted.
        return found if moved == retained_from else await _found(session, moved)


async def _refuse_unfinished(session: Session, retained_from: datetime) -> None:
    rows = await session.fetch(PRUNE_OBSTACLES, retained_from, SHOWN)
    if not rows:
        return
    named = [f"{Identity(row['job'], row['scheduled_at'], row['variant'])} ({row['state']})" for row in rows]
    more = rows[0]["found"] - len(rows)
    problem = (
        f"not over, or with open accounts, before {format_instant(retained_from)}: {', '.join(named)}"
        f"{f' and {more} more' if more else ''}; wait for their end, or cancel them"
    )
    raise Refused(problem)


async def _found(session: Session, retained_from: datetime) -> Pruned:
    rows = await session.fetch(PRUNABLE_PARTITIONS, retained_from)
    months = tuple(Month(*(row[name] for name in Month.__slots__)) for row in rows)
    counts: Any = await session.fetchrow(PRUNE_COUNTS, retained_from)
    return Pruned(
        retained_from,
        months,
        counts["publications"],
        counts["attempts"],
        counts["instances"],
        counts["notifications"],
    )


async def _drop(session: Session, name: str) -> None:
    """Take a month away, step by step from wherever an earlier attempt was interrupted, until it is gone."""
    if not _NAME.fullmatch(name):
        message = f"not a month of the ledger: {name!r}"
        raise ValueError(message)
    ends_at = clock.monotonic() + PATIENCE_SECONDS
    while (state := await session.fetchrow(PARTITION_STATE, name)) is not None:
        if state["detaching"]:
            step = f"alter table matins.ledger detach partition matins.{name} finalize"
        elif state["attached"]:
            step = f"alter table matins.ledger detach partition matins.{name} concurrently"
        else:
            step = f"drop table matins.{name}"
        try:
            await session.execute(step)
        except LockNotAvailable:
            if clock.monotonic() > ends_at:
                raise
            await clock.sleep(PAUSE_SECONDS)
