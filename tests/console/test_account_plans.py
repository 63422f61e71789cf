"""What the pages of an occurrence ask for is found by indexes, and each step of it reads a bounded number of rows."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from benchmarks.history import make_history
from shared.postgres import Session, database_now
from shared.zones import tzdata_version
from tests.support.ledger import session_on
from trigger.alerts import LIST_ALERTS
from trigger.attempts import LIST_ATTEMPTS
from trigger.console.account import ACCOUNT_ELSEWHERE
from trigger.console.account_pages import (
    ACCOUNTS_BY_KEY,
    BEYOND_ALL,
    KEEP_TO_ORDER,
    LOOK,
    OPEN_ACCOUNTS,
    UNSUCCESSFUL_ACCOUNTS,
)
from trigger.console.accounts import ACCOUNT
from trigger.console.occurrence import (
    MOST_EVENTS,
    MOST_NEIGHBOURS,
    NEIGHBOURS,
    OCCURRENCE_EVENTS,
    OCCURRENCE_JOB,
)
from trigger.console.occurrence_life import KINDS
from trigger.reach import FIND_OCCURRENCE, NEAREST_INSTANTS

IN_ORDER: Final = (UNSUCCESSFUL_ACCOUNTS, ACCOUNTS_BY_KEY, OPEN_ACCOUNTS)
OCCURRENCES: Final = 4
ROWS: Final = 50_000
HIGHEST: Final = 2**63 - 1
LARGE: Final = ("ledger", "occurrence", "audit", "attempt")
LEDGER: Final = """
insert into matins.ledger (occurrence_id, scheduled_at, account, position, state, attempts, published_at, started_at,
                           finished_at, error_class, error)
select o.id, o.scheduled_at, 'account-' || lpad((n * 7919 % $1)::text, 6, '0'), n, fate.state, 1, o.scheduled_at,
       o.scheduled_at, case when fate.state not in ('pending', 'running') then o.scheduled_at end,
       case when fate.state in ('failed', 'dead') then 'TaxServiceDown' end,
       case when fate.state in ('failed', 'dead') then repeat('it does not answer ', 20) end
  from (select id, scheduled_at from matins.occurrence where job = 'job-1' and closed_at is not null
         order by scheduled_at desc limit $2) o
 cross join generate_series(1, $1::bigint) n
 cross join lateral (
       select case when n % 50 = 1 then 'failed' when n % 1000 = 2 then 'dead' when n % 1000 = 3 then 'cancelled'
                   when n > $1 - 40 then 'pending' else 'succeeded' end as state) fate"""
TRAIL: Final = """
insert into matins.audit (kind, job, occurrence_id, instance)
select kind, job, id, 'made' from matins.occurrence cross join unnest(array['claim', 'sealed', 'closed']) kind"""
ATTEMPTS: Final = """
insert into matins.attempt (job, scheduled_at, variant, instance)
select job, scheduled_at, variant, 'made-' || n from matins.occurrence cross join generate_series(1, 3) n"""


def cases(occurrence: Any) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Give each statement with arguments for which it would have most to read."""
    key = (occurrence["id"], occurrence["scheduled_at"])
    named = (occurrence["job"], occurrence["scheduled_at"], "")
    for back in (False, True):
        for low, behind, before in (
            ("", "", BEYOND_ALL),
            ("", "account-02", BEYOND_ALL),
            ("account-03", "", "account-04"),
            ("zz", "", BEYOND_ALL),
        ):
            for state in ("failed", "dead", "cancelled"):
                yield UNSUCCESSFUL_ACCOUNTS, (*key, state, low, behind, before, back, 51)
            for states in (["succeeded"], ["running"], ["pending", "running", "succeeded"]):
                yield ACCOUNTS_BY_KEY, (*key, states, low, behind, before, back, LOOK, 51)
        for states in (["pending"], ["running"]):
            yield OPEN_ACCOUNTS, (*key, states, -1, HIGHEST, back, LOOK, 51)
    yield ACCOUNT, (*key, "account-000001")
    yield ACCOUNT_ELSEWHERE, (*named, "account-000001", 10)
    for every in (False, True):
        yield NEIGHBOURS, (*named, every, MOST_NEIGHBOURS)
    yield OCCURRENCE_EVENTS, (occurrence["id"], None, MOST_EVENTS)
    yield OCCURRENCE_EVENTS, (occurrence["id"], list(KINDS), MOST_EVENTS)
    yield OCCURRENCE_JOB, ("job-1", 1)
    yield FIND_OCCURRENCE, named
    yield NEAREST_INSTANTS, named[:2]
    yield LIST_ATTEMPTS, named
    yield LIST_ALERTS, (False, None, None, None, ["failed"], occurrence["id"], 1000, 0)


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


async def unbounded(session: Session, query: str, arguments: tuple[Any, ...]) -> list[str]:
    """Run a statement, and name its steps that have read a table through, or more rows than a look may."""
    async with session.transaction():
        if query in IN_ORDER:
            await session.execute(KEEP_TO_ORDER)
        explained = await session.fetchval("explain (analyze, timing off, format json) " + query, *arguments)
    found = []
    for node in nodes(json.loads(explained)[0]["Plan"]):
        table = str(node.get("Relation Name", ""))
        read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        through = "Seq Scan" in node["Node Type"] and table.startswith(LARGE) and read > 0
        if through or read > LOOK + 1:
            index = node.get("Index Name", table)
            found.append(f"{query.splitlines()[0]} {arguments}: {node['Node Type']} of {index} reads {read} rows")
    return found


@pytest.mark.timeout(300)
async def test_no_step_reads_more_than_it_may_whatever_is_asked_for(database_url: str) -> None:
    async with session_on(database_url) as session:
        now = await database_now(session)
        await make_history(session, jobs=60, hours_ago=100, hours_ahead=2, now=now, zones=tzdata_version())
        for at in await session.fetch(
            "select distinct date_trunc('month', scheduled_at) as month from matins.occurrence"
        ):
            await session.execute("select matins.ensure_ledger_partition($1)", at["month"])
        await session.execute(LEDGER, ROWS, OCCURRENCES, timeout=120)
        for statement in (TRAIL, ATTEMPTS):
            await session.execute(statement, timeout=120)
        assert await session.fetchval("select count(*) from matins.ledger") == ROWS * OCCURRENCES
        occurrence = await session.fetchrow(
            """select id, job, scheduled_at from matins.occurrence where job = 'job-1' and closed_at is not null
                order by scheduled_at desc offset 1 limit 1"""
        )
        found: list[str] = []
        for analysed in (False, True):
            if analysed:
                await session.execute("analyze", timeout=120)
            for mode in ("force_generic_plan", "force_custom_plan"):
                await session.execute(f"set plan_cache_mode = {mode}")
                for query, arguments in cases(occurrence):
                    found += [f"{mode}, {analysed}: {one}" for one in await unbounded(session, query, arguments)]
        assert found == [], "\n".join(found)
