"""Calls built by hand, and rows to call the handlers with."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from schemas.occurrence import Identity
from shared.calls import idempotency_key
from shared.job import AccountCall, ChunkCall, OutsideCall, SqlAccounts, Window
from shared.postgres import Session, connect

NIGHT = datetime(2026, 8, 25, 2, tzinfo=UTC)
DAY = timedelta(days=1)
WINDOW = Window(NIGHT - DAY, NIGHT)
LONG_AGO = datetime(2020, 1, 1, tzinfo=UTC)


@asynccontextmanager
async def open_session(url: str) -> AsyncIterator[Session]:
    connection = await connect(url, name="test", timeout=timedelta(seconds=30))
    try:
        yield connection
    finally:
        await connection.close()


def account_call(connection: Session, account: str, *, attempt: int = 1, window: Window = WINDOW) -> AccountCall:
    identity = Identity("invoice-run", window.until)
    key = idempotency_key(identity, account)
    return AccountCall(
        occurrence=identity, window=window, account=account, attempt=attempt, key=key, connection=connection
    )


def chunk_call(connection: Session, *accounts: str, window: Window = WINDOW) -> ChunkCall:
    return ChunkCall(
        occurrence=Identity("usage-rollup", window.until), window=window, accounts=accounts, connection=connection
    )


def outside_call(account: str, *, attempt: int = 1) -> OutsideCall:
    identity = Identity("charge", NIGHT)
    return OutsideCall(
        occurrence=identity, window=WINDOW, account=account, attempt=attempt, key=idempotency_key(identity, account)
    )


async def add_account(connection: Session, account: str, **columns: Any) -> None:
    """Add an account of plan `Team` (49.90, 1000 units included, then 0.0325 each) that closes on the 25th in UTC."""
    await connection.execute("insert into billing.plan values ('Team', 49.90, 1000, 0.0325) on conflict do nothing")
    row = {
        "id": account,
        "name": "Customer",
        "plan": "Team",
        "anchor_day": 25,
        "zone": "UTC",
        "tax_id": "TAX1",
        "created_at": LONG_AGO,
        **columns,
    }
    places = ", ".join(f"${number}" for number in range(1, len(row) + 1))
    await connection.execute(f"insert into billing.account ({', '.join(row)}) values ({places})", *row.values())


async def add_usage(connection: Session, account: str, at: datetime, units: str) -> None:
    await connection.execute("insert into billing.usage_event values ($1, $2, $3)", account, at, Decimal(units))


async def read_source(connection: Session, source: SqlAccounts, window: Window = WINDOW) -> list[str]:
    """Give the accounts of a source in the order of its cursor."""
    query = source.query.replace(":since", "$1").replace(":until", "$2")
    rows = await connection.fetch(
        f"select account from ({query}) as source order by cursor, account", window.since, window.until
    )
    return [row["account"] for row in rows]
