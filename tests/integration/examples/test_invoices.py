"""The invoice handler, called directly in a transaction: exact, once, and never for the wrong account."""

import asyncio
from datetime import date, timedelta
from decimal import Decimal

import pytest

from examples.billing.accounts import HOSTILE_ID
from examples.billing.data import make_schema, mend
from examples.billing.invoices import TaxServiceDown, invoice
from shared.job import GiveUp, NothingToDo, Window
from shared.postgres import Session
from tests.integration.examples.support import (
    DAY,
    NIGHT,
    WINDOW,
    account_call,
    add_account,
    add_usage,
    open_session,
)

PERIOD_ENDS = NIGHT.replace(hour=0)
PERIOD_STARTS = PERIOD_ENDS - 31 * DAY


async def issue(connection: Session, account: str, *, attempt: int = 1, window: Window = WINDOW) -> None:
    async with connection.transaction():
        await invoice(account_call(connection, account, attempt=attempt, window=window))


async def count(connection: Session, table: str) -> int:
    rows: int = await connection.fetchval(f"select count(*) from billing.{table}")
    return rows


async def test_an_invoice_is_exact(billing: Session) -> None:
    await add_account(billing, "only")
    await add_usage(billing, "only", PERIOD_STARTS, "999.999999")
    await add_usage(billing, "only", PERIOD_ENDS - timedelta(microseconds=1), "2.307693")
    await add_usage(billing, "only", PERIOD_STARTS - timedelta(microseconds=1), "500000")
    await add_usage(billing, "only", PERIOD_ENDS, "500000")
    await issue(billing, "only")
    head = await billing.fetchrow("select * from billing.invoice")
    assert head is not None
    assert (head["period_start"], head["period_end"]) == (date(2026, 7, 25), date(2026, 8, 25))
    assert (head["account"], head["issued_for"]) == ("only", "invoice-run:2026-08-25T02:00Z")
    assert head["total"] == Decimal("49.97")
    lines = await billing.fetch("select * from billing.invoice_line order by line")
    assert [tuple(line.values())[1:] for line in lines] == [
        (1, "Plan Team", Decimal(1), Decimal("49.90"), Decimal("49.90")),
        (2, "Further units", Decimal("2.307692"), Decimal("0.0325"), Decimal("0.07")),
    ]


@pytest.mark.parametrize(("further", "amount"), [("2", "0.06"), ("6", "0.20"), ("2.000001", "0.07")])
async def test_what_the_tables_keep_is_what_was_computed(billing: Session, further: str, amount: str) -> None:
    await add_account(billing, "only")
    await add_usage(billing, "only", PERIOD_STARTS, str(1000 + Decimal(further)))
    await issue(billing, "only")
    stored = await billing.fetchval("select amount from billing.invoice_line where line = 2")
    assert str(stored) == amount


async def test_a_second_run_finds_nothing_to_do(billing: Session) -> None:
    await add_account(billing, "only")
    await issue(billing, "only")
    with pytest.raises(NothingToDo, match="already invoiced"):
        await issue(billing, "only")
    assert [await count(billing, table) for table in ("invoice", "invoice_line", "touch")] == [1, 1, 1]


async def test_two_runs_at_once_issue_one_invoice(billing: Session, database_url: str) -> None:
    await add_account(billing, "only")
    async with open_session(database_url) as another:
        outcomes = await asyncio.gather(issue(billing, "only"), issue(another, "only"), return_exceptions=True)
    assert sorted(type(outcome).__name__ for outcome in outcomes) == ["NoneType", "NothingToDo"]
    assert await count(billing, "invoice") == 1


async def test_the_log_shows_a_second_effect_once_the_key_is_gone(billing: Session) -> None:
    await billing.execute("alter table billing.invoice drop constraint invoice_once")
    await add_account(billing, "only")
    await issue(billing, "only")
    await issue(billing, "only")
    assert [await count(billing, table) for table in ("invoice", "touch")] == [2, 2]
    assert await billing.fetchval("select count(distinct txid) from billing.touch") == 2


async def test_a_transaction_that_rolls_back_leaves_no_trace(billing: Session) -> None:
    await add_account(billing, "only")
    transaction = billing.transaction()
    await transaction.start()
    await invoice(account_call(billing, "only"))
    await transaction.rollback()
    assert [await count(billing, table) for table in ("invoice", "invoice_line", "touch")] == [0, 0, 0]


async def test_an_account_without_a_tax_id_fails_for_good_until_it_is_mended(billing: Session) -> None:
    await add_account(billing, "only", tax_id=None)
    with pytest.raises(GiveUp, match="no tax id"):
        await issue(billing, "only")
    assert await mend(billing) == ["only"]
    await issue(billing, "only")
    assert await count(billing, "invoice") == 1


async def test_a_flaky_account_fails_twice_and_then_succeeds(billing: Session) -> None:
    await add_account(billing, "only", flaky=2)
    for attempt in (1, 2):
        with pytest.raises(TaxServiceDown, match=f"attempt {attempt}"):
            await issue(billing, "only", attempt=attempt)
    await issue(billing, "only", attempt=3)
    assert await count(billing, "touch") == 1


async def test_a_slow_account_holds_its_transaction(billing: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATINS_EXAMPLE_SLOW_SECONDS", "0.2")
    await add_account(billing, "only", slow=True)
    async with billing.transaction():
        await invoice(account_call(billing, "only"))
        waited = await billing.fetchval("select clock_timestamp() - now()")
    assert waited >= timedelta(seconds=0.2)


async def test_an_account_that_is_gone_is_given_up(billing: Session) -> None:
    with pytest.raises(GiveUp, match="no such account"):
        await issue(billing, "nobody")


async def test_an_account_whose_anchor_has_moved_needs_nothing(billing: Session) -> None:
    await add_account(billing, "only", anchor_day=26)
    with pytest.raises(NothingToDo, match="no billing period closed"):
        await issue(billing, "only")


async def test_a_window_over_two_closings_gives_two_invoices(billing: Session) -> None:
    await add_account(billing, "only")
    wide = Window(NIGHT - 40 * DAY, NIGHT)
    await issue(billing, "only", window=wide)
    starts = await billing.fetch("select period_start from billing.invoice order by 1")
    assert [row["period_start"] for row in starts] == [date(2026, 6, 25), date(2026, 7, 25)]


async def test_the_hostile_id_stays_as_it_is(billing: Session) -> None:
    await add_account(billing, HOSTILE_ID)
    await issue(billing, HOSTILE_ID)
    assert await billing.fetchval("select account from billing.touch") == HOSTILE_ID


async def test_the_jobs_role_is_enough_for_the_handler(billing: Session) -> None:
    await make_schema(billing, roles=True)
    await add_account(billing, "only")
    async with billing.transaction():
        await billing.execute("set local role job_invoice")
        await invoice(account_call(billing, "only"))
    assert await count(billing, "invoice") == 1


async def test_amounts_that_the_column_cannot_hold_are_refused(billing: Session) -> None:
    await add_account(billing, "only")
    await add_usage(billing, "only", PERIOD_STARTS, "999999999999")
    with pytest.raises(Exception, match="numeric field overflow"):
        await issue(billing, "only")
    assert await count(billing, "invoice") == 0
