"""The page of a job seeks by indexes: it never reads through the ledger, the occurrences, the attempts or the trail."""

import re
from datetime import datetime, timedelta
from typing import Any

import pytest

from benchmarks.history import make_history
from shared.postgres import Session, database_now, is_transient
from shared.settings import load_settings
from shared.zones import tzdata_version
from tests.support.ledger import database_on, session_on
from trigger.console import job
from trigger.console.keeping import Keeping
from trigger.console.place import Asked, Place

READ_THROUGH = re.compile(r"Seq Scan on ((?:ledger|occurrence|attempt|audit)\w*)")
JOBS, HOURS, ACCOUNTS = 20, 500, 200_000


async def large_past(session: Session) -> datetime:
    """Record many occurrences, of which five that run have many accounts, with attempts and a trail; give the hour."""
    present: datetime = await database_now(session)
    now = present.replace(minute=0, second=0, microsecond=0)
    await make_history(session, jobs=JOBS, hours_ago=HOURS, hours_ahead=49, now=now, zones=tzdata_version())
    await session.execute("select matins.ensure_ledger_partition(at) from unnest($1::timestamptz[]) as at", [now])
    await session.execute("select matins.ensure_ledger_partition($1)", now - timedelta(hours=5))
    await session.execute(
        """update matins.occurrence
              set state = 'running', closed_at = null, report = null, total = null, succeeded = null, failed = null,
                  dead = null, cancelled = null, accounts_read = $2
            where job in ('job-1', 'job-2', 'job-3', 'job-4', 'job-5') and scheduled_at = $1""",
        now,
        ACCOUNTS // 5,
    )
    await session.execute(
        """insert into matins.ledger (occurrence_id, scheduled_at, account, position, state, finished_at)
           select o.id, o.scheduled_at, 'a' || n, n, case when n % 10 = 0 then 'pending' else 'succeeded' end,
                  case when n % 10 <> 0 then now() end
             from matins.occurrence o cross join generate_series(1, $1::integer) n
            where o.state = 'running'""",
        ACCOUNTS // 5,
    )
    await session.execute(
        """insert into matins.attempt (job, scheduled_at, instance, won)
           select job, scheduled_at, 'trigger-' || n, n = 1 from matins.occurrence, generate_series(1, 3) n
            where claimed_at is not null"""
    )
    await session.execute(
        """insert into matins.audit (kind, job, occurrence_id, instance)
           select 'claim', job, id, 'trigger-1' from matins.occurrence, generate_series(1, 3)"""
    )
    await session.execute("analyze")
    return now


@pytest.mark.timeout(300)
async def test_no_statement_of_the_page_reads_through_what_is_large(database_url: str) -> None:
    settings = load_settings({"MATINS_ENVIRONMENT": "test", "MATINS_DATABASE_URL": database_url}, need=frozenset())
    statements: dict[str, tuple[Any, ...]] = {}
    async with session_on(database_url) as session, database_on(database_url, size=1) as database:
        now = await large_past(session)
        place = Place(settings, database, Keeping(is_transient), "c0ffee00", "test")

        def note(asked: Any) -> None:
            statements[asked.query] = asked.args

        async def examine(connection: Session) -> None:
            connection.add_query_logger(note)

        database.examine_new(examine)
        for query in ({}, {"before": (now - timedelta(hours=100)).isoformat(), "runs": "120"}):
            assert (await job.read(Asked(place, {"job": "job-1"}, query)))["cells"]
        plans = await _plans(session, statements)
        # The partition of a month that has hardly begun, or is hardly over, has no row.
        large = {row["relname"] for row in await session.fetch("select relname from pg_class where reltuples > 0")}
    assert sum("occurrence" in plan for plan in plans.values()) > 6
    read_through = {query: large & set(READ_THROUGH.findall(plan)) for query, plan in plans.items()}
    assert {query: tables for query, tables in read_through.items() if tables} == {}


async def _plans(session: Session, statements: dict[str, tuple[Any, ...]]) -> dict[str, str]:
    """Give the plan of each that reads, as it is for these values and as it is for any."""
    found = {}
    for mode in ("force_custom_plan", "force_generic_plan"):
        await session.execute(f"set plan_cache_mode = {mode}")
        for query, arguments in statements.items():
            if re.match(r"\s*(--|select|with)", query):
                rows = await session.fetch("explain (costs off) " + query, *arguments)
                found[f"{mode} {query}"] = "\n".join(row[0] for row in rows)
    return found
