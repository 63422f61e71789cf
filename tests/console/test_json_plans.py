"""What the JSON reads beside the pages' own statements is read by an index, however long the past is."""

from datetime import timedelta
from typing import Any

import pytest

from benchmarks.history import make_history
from shared.postgres import database_now
from shared.zones import tzdata_version
from tests.console.test_audit_plans import LARGE, decode, read_rows
from tests.support.ledger import session_on
from trigger.show import LIST_OCCURRENCES
from trigger.status import STATUS_JOBS

JOBS, HOURS = 40, 2000
MOST_READ = 10_000


@pytest.mark.timeout(120)
async def test_lists_and_jobs_read_no_table_through(database_url: str) -> None:
    assert "occurrence" in LARGE
    async with session_on(database_url) as session:
        await session.set_type_codec("json", encoder=str, decoder=decode, schema="pg_catalog")
        now = await database_now(session)
        await make_history(session, jobs=JOBS, hours_ago=HOURS, hours_ahead=49, now=now, zones=tzdata_version())
        await session.execute("analyze")
        assert await session.fetchval("select count(*) from matins.occurrence") > JOBS * HOURS
        asked: tuple[tuple[str, tuple[Any, ...]], ...] = (
            (LIST_OCCURRENCES, (None, None, None, 50)),
            (LIST_OCCURRENCES, (None, ["succeeded", "failed"], None, 50)),
            (LIST_OCCURRENCES, (None, None, now - timedelta(days=2), 50)),
            (LIST_OCCURRENCES, ("job-3", None, None, 1000)),
            (STATUS_JOBS, (None,)),
            (STATUS_JOBS, ("job-3",)),
        )
        for query, arguments in asked:
            for mode in ("force_custom_plan", "force_generic_plan"):
                await session.execute(f"set plan_cache_mode = {mode}")
                plan, rows = await read_rows(session, query, *arguments)
                assert rows <= MOST_READ, (arguments, mode, plan)
