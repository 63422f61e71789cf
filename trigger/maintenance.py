"""Planning maintenance: alerts of its time are recorded, and told to nobody before its end; each act is a statement."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.postgres import Session, database_now
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.alert_standing import at
from trigger.ends import Until, end_of
from trigger.operate import Order
from trigger.reach import require_job

ADD_MAINTENANCE = statement("trigger", "add_maintenance")
END_MAINTENANCE = statement("trigger", "end_maintenance")

LONGEST_MAINTENANCE = timedelta(days=7)
FARTHEST_BEGIN = timedelta(days=90)


@dataclass(frozen=True, slots=True)
class Planned:
    """A planned maintenance of one job, or of all with None; `added` is False where the same was planned already."""

    id: int
    job: str | None
    since: datetime
    until: datetime
    added: bool


async def add_maintenance(
    session: Session,
    job: str | None,
    since: datetime | None,
    until: Until,
    order: Order,
    *,
    now: datetime | None = None,
) -> Planned:
    """Plan a maintenance of a job, or with None of all, that begins at `since` (None: now), from where `until` counts.

    Raises Refused for an unknown job, for one that begins in the past or more than FARTHEST_BEGIN ahead, that ends
    before it begins, or that lasts longer than LONGEST_MAINTENANCE.
    """
    if job is not None:
        await require_job(session, job)
    present = now or await database_now(session)
    begin = since or present
    if begin < present:
        raise Refused(f"--since: {at(begin)} is in the past: leave it out for one that begins now")
    if begin - present > FARTHEST_BEGIN:
        raise Refused(f"--since: {at(begin)} is more than {FARTHEST_BEGIN.days} days ahead: plan it when it is nearer")
    end = end_of(until, begin, LONGEST_MAINTENANCE, "a maintenance")
    row: Any = await session.fetchrow(ADD_MAINTENANCE, job, begin, end, order.actor, order.reason, order.instance)
    return Planned(row["id"], job, begin, end, row["added"])


def told_plan(planned: Planned) -> str:
    """Say what is planned."""
    already = "" if planned.added else " already"
    times = f"from {at(planned.since)} until {at(planned.until)}"
    return f"maintenance {planned.id} of {planned.job or 'all jobs'} is planned{already}: {times}"


async def end_maintenance(session: Session, number: int, order: Order, *, now: datetime | None = None) -> str:
    """End one that is in force now, or withdraw one that is to come; say what became of it. One that is over stays.

    Raises Refused when there is none.
    """
    row: Any = await session.fetchrow(END_MAINTENANCE, number, order.actor, order.reason, order.instance, now)
    if row is None:
        raise Refused(f"there is no maintenance {number}; `maintenance list --all` lists them")
    of = row["job"] or "all jobs"
    match row["became"]:
        case "ended":
            return f"maintenance {number} of {of} is over: alerts are told again"
        case "withdrawn":
            return f"maintenance {number} of {of} is withdrawn: it had not begun"
        case _:
            return f"maintenance {number} of {of} was over already, at {at(row['until'])}"
