"""The data maker: the same rows for the same seed, the numbers that were asked for, and all due when they should be."""

import asyncio
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from examples.billing.accounts import HOSTILE_ID, Choice, Made, make_accounts
from examples.billing.data import main, make_schema, next_night
from examples.billing.invoices import TaxServiceDown, invoice
from examples.billing.jobs import DUE, USED
from shared.job import GiveUp, Window
from shared.postgres import Session, UniqueViolation
from tests.integration.examples.support import DAY, NIGHT, account_call, open_session, read_source

EVERYTHING = """
select (select jsonb_agg(to_jsonb(account) order by number) from billing.account),
       (select jsonb_agg(to_jsonb(usage_event) order by account, at, units) from billing.usage_event)
"""


async def contents(connection: Session) -> Any:
    row = await connection.fetchrow(EVERYTHING)
    return row and tuple(row)


async def empty(connection: Session) -> None:
    await connection.execute("truncate billing.account restart identity cascade")


async def test_the_same_seed_makes_the_same_rows(billing: Session) -> None:
    choice = Choice(count=300, seed=11, until=NIGHT)
    first = await make_accounts(billing, choice)
    rows = await contents(billing)
    await empty(billing)
    assert await make_accounts(billing, choice, batch_size=7) == first
    assert await contents(billing) == rows


async def test_another_seed_makes_other_rows_beside_them(billing: Session) -> None:
    await make_accounts(billing, Choice(count=50, seed=1, until=NIGHT))
    await make_accounts(billing, Choice(count=50, seed=2, until=NIGHT, hostile=False))
    assert await billing.fetchval("select count(*) from billing.account") == 100


async def test_a_seed_that_is_there_already_writes_nothing(billing: Session) -> None:
    await make_accounts(billing, Choice(count=50, seed=1, until=NIGHT))
    with pytest.raises(UniqueViolation):
        await make_accounts(billing, Choice(count=60, seed=1, until=NIGHT), batch_size=10)
    assert await billing.fetchval("select count(*) from billing.account") == 50


@pytest.mark.parametrize(
    "until",
    [
        NIGHT,
        datetime(2026, 8, 31, 2, tzinfo=UTC),
        datetime(2026, 2, 28, 2, tzinfo=UTC),
        datetime(2028, 2, 29, 14, 37, tzinfo=UTC),
        datetime(2026, 3, 29, 2, tzinfo=UTC),
        datetime(2026, 11, 2, 4, 30, tzinfo=UTC),
    ],
)
async def test_all_are_due_and_all_used_something(billing: Session, until: datetime) -> None:
    await make_accounts(billing, Choice(count=400, seed=5, until=until))
    window = Window(until - DAY, until)
    assert len(await read_source(billing, DUE, window)) == 400
    assert len(await read_source(billing, USED, window)) == 400


async def test_spread_accounts_are_due_on_any_day(billing: Session) -> None:
    await make_accounts(billing, Choice(count=400, seed=5, until=NIGHT, spread=True))
    nights = [Window(NIGHT + (day - 1) * DAY, NIGHT + day * DAY) for day in range(31)]
    numbers = [len(await read_source(billing, DUE, night)) for night in nights]
    assert sum(numbers) >= 400
    assert max(numbers) < 100


async def outcome_of(connection: Session, account: str, attempt: int) -> str:
    transaction = connection.transaction()
    await transaction.start()
    try:
        await invoice(account_call(connection, account, attempt=attempt))
    except (GiveUp, TaxServiceDown) as error:
        await transaction.rollback()
        return type(error).__name__
    await transaction.commit()
    return "issued"


async def test_exactly_the_odd_ones_fail(billing: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MATINS_EXAMPLE_SLOW_SECONDS", "0.01")
    made = await make_accounts(billing, Choice(count=120, seed=8, until=NIGHT, failing=4, flaky=3, slow=2))
    accounts = await read_source(billing, DUE)
    first = {account: await outcome_of(billing, account, 1) for account in accounts}
    assert {account for account, outcome in first.items() if outcome == "GiveUp"} == set(made.failing)
    assert {account for account, outcome in first.items() if outcome == "TaxServiceDown"} == set(made.flaky)
    assert first[HOSTILE_ID] == "issued"
    assert [await outcome_of(billing, account, 3) for account in made.flaky] == ["issued"] * 3
    assert await billing.fetchval("select count(*) from billing.invoice") == 116
    wrong = await billing.fetchval(
        """select count(*) from billing.invoice
            where total <> (select sum(amount) from billing.invoice_line where invoice = invoice.id)"""
    )
    assert wrong == 0


async def test_the_numbers_are_those_that_were_asked_for(billing: Session) -> None:
    made = await make_accounts(billing, Choice(count=10, seed=1, until=NIGHT, failing=4, flaky=3, slow=2))
    assert [len(ids) for ids in (made.failing, made.flaky, made.slow)] == [4, 3, 2]
    assert len({*made.failing, *made.flaky, *made.slow, made.hostile}) == 10
    row = await billing.fetchrow(
        """select count(*) filter (where tax_id is null) as failing, count(*) filter (where flaky = 2) as flaky,
                  count(*) filter (where slow) as slow, count(*) filter (where id = $1) as hostile
             from billing.account""",
        HOSTILE_ID,
    )
    assert row is not None
    assert tuple(row) == (4, 3, 2, 1)


async def test_no_accounts_can_be_asked_for(billing: Session) -> None:
    made = await make_accounts(billing, Choice(count=0, seed=1, until=NIGHT, failing=0, flaky=0, slow=0, hostile=False))
    assert made == Made(0, 0, NIGHT, (), (), (), None)


async def test_the_schema_can_be_made_by_many_at_once(database_url: str) -> None:
    async def make() -> None:
        async with open_session(database_url) as connection:
            await make_schema(connection, roles=True)

    await asyncio.gather(*(make() for _ in range(8)))
    await make()


async def test_the_coming_night_is_at_two_and_within_a_day(billing: Session) -> None:
    night = await next_night(billing)
    now = await billing.fetchval("select clock_timestamp()")
    assert (night.hour, night.minute, night.utcoffset()) == (2, 0, timedelta())
    assert timedelta() < night - now <= DAY


async def test_the_command_makes_and_mends(database_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    async def run(*arguments: str) -> tuple[int, str, str]:
        code = await asyncio.to_thread(main, [*arguments, "--database", database_url])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    make = ("--accounts", "30", "--seed", "4", "--until", "2026-08-25T02:00+00:00", "--json")
    code, output, progress = await run(*make)
    made = json.loads(output)
    assert (code, made["count"], len(made["failing"]), made["hostile"]) == (0, 30, 3, HOSTILE_ID)
    assert progress == "30 of 30 accounts\n"
    code, output, errors = await run(*make)
    assert (code, output) == (0, "")
    assert errors.endswith("are there already.\n")
    code, output, _ = await run("mend", "--json")
    assert (code, json.loads(output)) == (0, {"mended": sorted(made["failing"])})
    code, output, _ = await run("mend")
    assert output == "0 accounts got a tax id.\n"
    code, _, errors = await run("--accounts", "3")
    assert (code, errors) == (2, "8 odd accounts are more than 3\n")


def test_a_server_that_is_not_there_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--database", "postgresql://nobody:secret@127.0.0.1:1/none"]) == 1
    errors = capsys.readouterr().err
    assert "PostgreSQL" in errors
    assert "secret" not in errors
