"""Ordering a backfill, and cancelling it: each one transaction behind the job row's lock.

The order writes every row that it is to run before any of them runs. Live triggers then claim them like any other, a
few at a time (`trigger.backfill_pass`), so nothing is lost with whoever gave the order. How far a backfill has got is
read from the occurrences themselves; it keeps no count of its own.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import format_instant
from shared.postgres import Row, Session, transaction
from shared.schedule_protocol import Schedule
from shared.sql_files import statement
from shared.terminal import Refused
from shared.timing import Timing
from shared.zones import tzdata_version
from trigger.backfill_choice import Chosen, Mode, Past, choose
from trigger.locked_job import locked_job
from trigger.operate import Order
from trigger.plan import LOCK_JOB, plan_through, prepare_ledger

BACKFILL_CANDIDATES = statement("trigger", "backfill_candidates")
BACKFILL_BOUNDS = statement("trigger", "backfill_bounds")
INSERT_BACKFILL = statement("trigger", "insert_backfill")
INSERT_BACKFILLED = statement("trigger", "insert_backfilled")
EXPECT_BACKFILLED = statement("trigger", "expect_backfilled")
CHOOSE_BACKFILLED = statement("trigger", "choose_backfilled")
END_BACKFILL = statement("trigger", "end_backfill")
FIND_BACKFILL = statement("trigger", "find_backfill")

MOST_INSTANTS = 10_000
_BEFORE = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Range:
    """What is asked for: the instants from `since` to `until`, both included, and what of them is run.

    At most `max_active` of them run at once, the earliest first, or with `reverse` the latest.
    """

    since: datetime
    until: datetime
    mode: Mode = "missing"
    reverse: bool = False
    max_active: int = 1


@dataclass(frozen=True, slots=True)
class Backfill:
    """What becomes of each instant of the range, in order; `id` is None after a dry run.

    `remarks` say what of the order is without effect.
    """

    id: int | None
    chosen: tuple[Chosen, ...]
    remarks: tuple[str, ...] = ()

    @property
    def started(self) -> tuple[Chosen, ...]:
        """Those that are run, or run again."""
        return tuple(one for one in self.chosen if one.action != "leave")


async def backfill(
    session: Session, job: str, asked: Range, order: Order, *, dry_run: bool = False, now: datetime | None = None
) -> Backfill:
    """Record a backfill and the rows that it runs; with `dry_run` only say what it would do.

    Raises Refused for an unknown or retired job, one of which each worker runs its own occurrence, a range that lies in
    the future or is too long, a second backfill of a job while the first goes on, and when nothing is there to run.
    """
    async with transaction(session):
        known = await locked_job(session, job)
        bounds: Any = await session.fetchrow(BACKFILL_BOUNDS, job, now)
        _refuse(job, known, asked, bounds)
        timing = Timing.from_definition(job, known["definition"])
        schedule = timing.schedule
        if not dry_run and bounds["planned_through"] < bounds["now"]:
            await plan_through(
                session, timing, known["revision"], bounds["planned_through"], bounds["now"], by=order.instance
            )
        rows = await session.fetch(BACKFILL_CANDIDATES, job, asked.since, asked.until, MOST_INSTANTS + 1)
        chosen = [choose(past, asked.mode) for past in _pasts(rows, schedule, asked, bounds)]
        if len(chosen) > MOST_INSTANTS:
            raise Refused(f"--from and --until: more than {MOST_INSTANTS} instants of {job} lie between them")
        remarks = _remarks(job, known, asked)
        if dry_run:
            return Backfill(None, tuple(chosen), remarks)
        if all(one.action == "leave" for one in chosen):
            raise Refused(_nothing(job, chosen))
        return Backfill(await _record(session, known, schedule, asked, chosen, order), tuple(chosen), remarks)


async def cancel_backfill(session: Session, backfill_id: int, order: Order, *, now: datetime | None = None) -> str:
    """End a backfill: what waits is not run; what runs goes on to its end. Give its job.

    Raises Refused for one that there is not, or that has ended.
    """
    found: Any = await session.fetchrow(FIND_BACKFILL, backfill_id)
    if found is None:
        raise Refused(f"there is no backfill {backfill_id}: `backfills` lists them")
    async with transaction(session):
        await session.fetchrow(LOCK_JOB, found["job"])
        found = await session.fetchrow(FIND_BACKFILL, backfill_id)
        if found["state"] != "active":
            by = f" by {found['ended_by']}" if found["ended_by"] else ""
            at = format_instant(found["ended_at"].replace(microsecond=0))
            raise Refused(f"backfill {backfill_id} of {found['job']} is {found['state']} since {at}{by}")
        await session.fetchval(END_BACKFILL, found["job"], "cancelled", order.actor, order.reason, order.instance, now)
    return str(found["job"])


def _refuse(job: str, known: Row, asked: Range, bounds: Row) -> None:
    if known["retired_at"] is not None:
        raise Refused(f"{job} is retired: nothing of it runs any more")
    if known["definition"].get("coordination") == "every":
        raise Refused(f"{job} is run by each worker for itself: there is nothing to make up for")
    if known["definition"].get("coordination") == "elsewhere":
        raise Refused(f"{job} runs elsewhere: what was not run is to be made up for there")
    if asked.since > asked.until:
        raise Refused(f"--until: {format_instant(asked.until)} lies before --from, {format_instant(asked.since)}")
    if asked.until > bounds["now"]:
        raise Refused(f"--until: {format_instant(asked.until)} is still to come")
    if bounds["active"] is not None:
        raise Refused(f"backfill {bounds['active']} of {job} goes on: wait for its end, or `cancel-backfill` it")


def _pasts(rows: Sequence[Row], schedule: Schedule, asked: Range, bounds: Row) -> list[Past]:
    """Give every instant of the range in order: those with a row, and those from before the job was known.

    Within the time for which rows are complete an instant without one was not due by the definition of its time.
    """
    retained_from = bounds["retained_from"]

    def is_pruned(instant: datetime) -> bool:
        return retained_from is not None and instant < retained_from

    found = {
        row["scheduled_at"]: Past(
            row["scheduled_at"],
            row["id"],
            row["state"],
            row["reason"],
            row["generation"],
            is_pruned(row["scheduled_at"]),
        )
        for row in rows
    }
    for instant in schedule.instants(asked.since - _BEFORE, asked.until):
        if len(found) > MOST_INSTANTS:
            break
        if instant in found or bounds["known_since"] < instant <= bounds["planned_through"]:
            continue
        # What nobody was there to plan is planned by the order itself, and is then the schedule's.
        waits = instant > bounds["planned_through"]
        found[instant] = Past(instant, state="expected" if waits else None, pruned=is_pruned(instant))
    return [found[instant] for instant in sorted(found)]


async def _record(
    session: Session, known: Row, schedule: Schedule, asked: Range, chosen: Sequence[Chosen], order: Order
) -> int:
    job, revision = known["name"], known["revision"]
    actions: dict[str, int] = Counter(one.action for one in chosen)
    backfill_id: int = await session.fetchval(
        INSERT_BACKFILL,
        job,
        asked.since,
        asked.until,
        asked.mode,
        asked.reverse,
        asked.max_active,
        order.actor,
        order.reason,
        order.instance,
        {"mode": asked.mode, "actions": actions},
    )
    await prepare_ledger(session, *(one.past.scheduled_at for one in chosen if one.action == "run"))
    new = [one.past.scheduled_at for one in chosen if one.action == "run" and one.past.id is None]
    since = [schedule.previous_before(instant) or instant for instant in new]
    inserted = await session.fetch(INSERT_BACKFILLED, job, revision, new, since, tzdata_version())
    former = [one.past.id for one in chosen if one.action == "run" and one.past.id is not None]
    told = f"backfill {backfill_id}: {order.reason}"
    await session.execute(EXPECT_BACKFILLED, former, revision, order.instance, order.actor, told)
    again = [one.past for one in chosen if one.action == "rerun"]
    ids = [*(row["id"] for row in inserted), *former, *(past.id for past in again)]
    generations = [*(1 for _ in inserted), *(1 for _ in former), *(past.generation + 1 for past in again)]
    await session.execute(CHOOSE_BACKFILLED, backfill_id, ids, generations)
    return backfill_id


def _remarks(job: str, known: Row, asked: Range) -> tuple[str, ...]:
    overlap = known["definition"]["decisions"]["overlap"]
    if asked.max_active == 1 or overlap == "allow":
        return ()
    return (f'--max-active {asked.max_active} is without effect: with overlap="{overlap}" {job} runs one at a time',)


def _nothing(job: str, chosen: Iterable[Chosen]) -> str:
    why = Counter(one.why for one in chosen)
    told = "; ".join(f"{count} {reason}" for reason, count in why.most_common(5)) or "the schedule has no instant there"
    return f"nothing of {job} is there to run: {told}"
