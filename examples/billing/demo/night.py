"""Letting the night fall, holding a process in the middle of its work, and looking at how far the work has got."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from typing import Any

from examples.billing.demo.place import Place, session_on
from examples.billing.jobs import DUE, jobs
from shared.postgres import Session
from shared.schedule import Cron
from shared.timing import Timing
from trigger.plan import plan_through

JUST_BEFORE = timedelta(minutes=1)
ENSURE_PARTITION = "select matins.ensure_ledger_partition($1)"
LAST_NIGHT = """
select (date_trunc('day', clock_timestamp() at time zone 'UTC' - interval '2 hours') + interval '2 hours')
       at time zone 'UTC'
"""
KNOWN_SINCE = "update matins.job set known_since = $1, planned_through = $1"
ALIVE_SINCE = "update matins.instance set started_at = $1 where kind = 'trigger'"
OCCURRENCE = "select id from matins.occurrence where job = $1 and scheduled_at = $2 and variant = ''"
AWAITED = "select count(*) from pg_stat_activity where $1 = any (pg_blocking_pids(pid))"
IN_PROGRESS = """
insert into matins.ledger (occurrence_id, scheduled_at, account, position)
select $1, $2, id, 0 from billing.account order by number offset $3 limit 1
"""
ASLEEP = """
select split_part(application_name, ' ', 3) from pg_stat_activity
 where datname = current_database() and application_name like 'matins worker %' and state = 'active'
   and query like '%pg_sleep%'
 order by query_start desc limit 1
"""
PROGRESS = """
select o.job, o.state, o.accounts_read, o.closed_at is not null as closed,
       (select count(*) from matins.ledger l where l.occurrence_id = o.id and l.finished_at is not null) as ended
  from matins.occurrence o
 where o.scheduled_at = $1 and o.variant = ''
"""
TAKEN_OVER = """
select i.id, (a.detail ->> 'accounts_read')::integer as accounts_read, (a.detail ->> 'epoch')::integer as epoch
  from matins.audit a join matins.instance i on i.id = a.instance
 where a.kind = 'takeover' and a.occurrence_id = $1 and a.detail ->> 'from' = $2
"""


async def last_night(session: Session) -> datetime:
    """Give the last 02:00 UTC by the database's clock."""
    night: datetime = await session.fetchval(LAST_NIGHT)
    return night


async def let_night_fall(session: Session, night: datetime) -> None:
    """Have jobs and triggers known since just before the night, and plan it; what is due is claimed at the commit.

    A new definition makes nothing of its past due, and nobody who watches a demo wants to wait for the night.
    """
    before = night - JUST_BEFORE
    await session.execute(KNOWN_SINCE, before)
    await session.execute(ALIVE_SINCE, before)
    schedule = Cron(f"0 {night.hour} * * *")
    for job in jobs:
        await plan_through(session, Timing(job.name, schedule), 1, before, night)


async def occurrence_id(session: Session, job: str, night: datetime) -> int:
    """Give the id of the night's occurrence of a job."""
    found: int = await session.fetchval(OCCURRENCE, job, night)
    return found


class FanOutHold:
    """Holds a fan-out at a page in the middle: the page's transaction waits for one of the demo's."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._pid = session.get_server_pid()

    async def reached(self, observer: Session) -> bool:
        """Tell whether somebody waits."""
        return bool(await observer.fetchval(AWAITED, self._pid))


@asynccontextmanager
async def held_fan_out(place: Place, occurrence: int, night: datetime, accounts: int) -> AsyncIterator[FanOutHold]:
    """Hold it meanwhile, by a row of the demo's own that is never committed: an account of the page in the middle."""
    page = DUE.page_size
    offset = min(accounts - 1, page + page // 2) if accounts > page else accounts // 2
    async with session_on(place.database_url) as session:
        transaction = session.transaction()
        await transaction.start()
        await session.execute(IN_PROGRESS, occurrence, night, offset)
        try:
            yield FanOutHold(session)
        finally:
            await transaction.rollback()


async def worker_inside_a_call(session: Session) -> str | None:
    """Give the beginning of the id of a worker that is in the middle of a slow account's call."""
    found: str | None = await session.fetchval(ASLEEP)
    return found


async def progress(session: Session, night: datetime) -> dict[str, Any]:
    """Give state, accounts read and accounts ended of each job's occurrence."""
    return {row["job"]: row for row in await session.fetch(PROGRESS, night)}
