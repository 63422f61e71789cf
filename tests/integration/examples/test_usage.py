"""The set-based roll-up: exact sums by period, an outcome for every account, and no deadlock."""

import asyncio
from datetime import date, timedelta
from decimal import Decimal

from examples.billing.accounts import HOSTILE_ID, Choice, make_accounts
from examples.billing.data import make_schema
from examples.billing.jobs import USED
from examples.billing.usage import roll_up
from shared.job import Handled, Window
from shared.postgres import Session
from tests.integration.examples.support import (
    DAY,
    NIGHT,
    WINDOW,
    add_account,
    add_usage,
    chunk_call,
    open_session,
    read_source,
)

MIDNIGHT = NIGHT.replace(hour=0)


async def run(connection: Session, *accounts: str, window: Window = WINDOW) -> Handled:
    async with connection.transaction():
        return await roll_up(chunk_call(connection, *accounts, window=window))


async def totals(connection: Session) -> dict[tuple[str, date], Decimal]:
    rows = await connection.fetch("select account, period_start, units from billing.usage_total")
    return {(row["account"], row["period_start"]): row["units"] for row in rows}


async def test_every_account_has_an_outcome(billing: Session) -> None:
    await add_account(billing, HOSTILE_ID)
    await add_usage(billing, HOSTILE_ID, WINDOW.until, "1.5")
    await add_account(billing, "unused")
    await add_account(billing, "untaxed", tax_id=None)
    await add_usage(billing, "untaxed", WINDOW.until, "1")
    handled = await run(billing, HOSTILE_ID, "unused", "untaxed", "nobody")
    assert handled.done == [HOSTILE_ID]
    assert handled.nothing_to_do == ["unused"]
    assert handled.failed == {"untaxed": "no tax id", "nobody": "no such account"}
    touches = await billing.fetch("select account, occurrence from billing.touch")
    assert [tuple(touch) for touch in touches] == [(HOSTILE_ID, "usage-rollup:2026-08-25T02:00Z")]


async def test_usage_goes_to_the_period_in_which_it_was_used(billing: Session) -> None:
    await add_account(billing, "only")
    for at, units in [(WINDOW.since, "1"), (MIDNIGHT - timedelta(seconds=1), "2"), (MIDNIGHT, "4"), (NIGHT, "8.5")]:
        await add_usage(billing, "only", at, units)
    await run(billing, "only")
    assert await totals(billing) == {
        ("only", date(2026, 7, 25)): Decimal(2),
        ("only", date(2026, 8, 25)): Decimal("12.5"),
    }


async def test_nights_add_up_and_a_second_effect_would_show(billing: Session) -> None:
    await add_account(billing, "only")
    await add_usage(billing, "only", NIGHT, "1")
    await add_usage(billing, "only", NIGHT + DAY, "10")
    await run(billing, "only")
    await run(billing, "only", window=Window(NIGHT, NIGHT + DAY))
    assert await totals(billing) == {("only", date(2026, 8, 25)): Decimal(11)}
    await run(billing, "only")
    assert await totals(billing) == {("only", date(2026, 8, 25)): Decimal(12)}


async def test_the_chunks_of_a_night_lose_nothing(billing: Session) -> None:
    await make_accounts(billing, Choice(count=250, seed=3, until=NIGHT, failing=0, flaky=0, slow=0))
    accounts = await read_source(billing, USED)
    assert len(accounts) == 250
    for first in range(0, 250, 100):
        await run(billing, *accounts[first : first + 100])
    used = await billing.fetchval(
        "select sum(units) from billing.usage_event where at > $1 and at <= $2", WINDOW.since, WINDOW.until
    )
    assert await billing.fetchval("select sum(units) from billing.usage_total") == used
    assert await billing.fetchval("select count(*) from billing.touch") == 250


async def test_chunks_with_the_same_accounts_in_other_orders_do_not_deadlock(
    billing: Session, database_url: str
) -> None:
    await make_accounts(billing, Choice(count=200, seed=3, until=NIGHT, failing=0, flaky=0, slow=0))
    accounts = await read_source(billing, USED)
    async with open_session(database_url) as another:
        for _ in range(5):
            await asyncio.gather(run(billing, *accounts), run(another, *reversed(accounts)))
    assert await billing.fetchval("select count(*) from billing.touch") == 2000


async def test_the_jobs_role_is_enough_for_the_handler(billing: Session) -> None:
    await make_schema(billing, roles=True)
    await add_account(billing, "only")
    await add_usage(billing, "only", NIGHT, "1")
    async with billing.transaction():
        await billing.execute("set local role job_usage")
        assert await read_source(billing, USED) == ["only"]
        assert (await roll_up(chunk_call(billing, "only"))).done == ["only"]
