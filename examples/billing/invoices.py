"""Issuing invoices: one call for each account, in the transaction that also settles its ledger row."""

from typing import Any

from examples.billing.amounts import Plan, invoice_lines, total
from examples.billing.settings import slow_seconds
from shared.job import AccountCall, GiveUp, NothingToDo
from shared.sql_files import statement

CLOSED_PERIODS = statement("examples.billing", "closed_periods")
ISSUE_INVOICE = statement("examples.billing", "issue_invoice")


class TaxServiceDown(Exception):
    """Stands for any trouble that passes by itself: the account is tried again."""


async def invoice(call: AccountCall) -> None:
    """Issue an invoice for each period of the account that closed in the window.

    Raises NothingToDo if all were issued before or none closed, GiveUp if the account is gone or lacks a tax id, and
    TaxServiceDown in the first tries of a flaky account.
    """
    periods = await call.connection.fetch(CLOSED_PERIODS, call.account, call.window.since, call.window.until)
    if not periods:
        raise GiveUp("no such account")
    account = periods[0]
    if account["tax_id"] is None:
        raise GiveUp("no tax id")
    if account["slow"]:
        await call.connection.execute("select pg_sleep($1)", slow_seconds())
    if call.attempt <= account["flaky"]:
        raise TaxServiceDown(f"the tax service did not answer, attempt {call.attempt}")
    closed = [period for period in periods if period["period_end"] is not None]
    if sum([await _issue(call, period) for period in closed]) == 0:
        raise NothingToDo("already invoiced" if closed else "no billing period closed")


async def _issue(call: AccountCall, period: Any) -> int:
    plan = Plan(period["plan"], period["price"], period["included_units"], period["unit_price"])
    lines = invoice_lines(plan, period["used_units"])
    issued: int = await call.connection.fetchval(
        ISSUE_INVOICE,
        call.account,
        period["period_start"],
        period["period_end"],
        total(lines),
        str(call.occurrence),
        [line.description for line in lines],
        [line.quantity for line in lines],
        [line.unit_price for line in lines],
        [line.amount for line in lines],
    )
    return issued
