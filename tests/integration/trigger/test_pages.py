import pytest

from shared.job import SqlAccounts
from shared.postgres import Database, Session
from tests.integration.trigger.support import DAY, DUE, claimed, fanned_out, fill, job_at
from tests.support.ledger import ledger, occurrence_row
from trigger.fan_out import FanOutEnd
from trigger.page_query import FaultySource
from trigger.pages import open_pager


async def accounts_of(database: Database, session: Session, source: SqlAccounts, name: str = "nightly") -> list[str]:
    """Fan out, and give the accounts in the order of their positions."""
    job = job_at(name=name, accounts=source)
    claim = await claimed(session, job)
    end = await fanned_out(database, job, claim)
    row = await occurrence_row(session, claim.id)
    assert end is FanOutEnd.SEALED, row["fan_out_error"]
    rows = await ledger(session, claim.id)
    return sorted(rows, key=lambda account: rows[account]["position"])


async def refusal(database: Database, session: Session, source: SqlAccounts) -> str:
    """Give what is recorded of a source that cannot be read."""
    job = job_at(accounts=source)
    claim = await claimed(session, job)
    assert await fanned_out(database, job, claim) is FanOutEnd.FAILED
    return str((await occurrence_row(session, claim.id))["fan_out_error"])


@pytest.mark.parametrize("page_size", [1, 2, 4, 7, 100])
async def test_equal_cursors_lose_nobody_at_the_end_of_a_page(
    database: Database, session: Session, page_size: int
) -> None:
    await fill(session, 60)
    source = SqlAccounts("select id as account, place / 4 as cursor from account", page_size=page_size)
    found = await accounts_of(database, session, source)
    assert found == [f"account-{number:05d}" for number in range(1, 61)]


@pytest.mark.parametrize("collation", ["C", "en-x-icu", "sv-x-icu", "und-x-icu"])
async def test_a_cursor_of_text_pages_in_its_own_collation(
    database: Database, session: Session, collation: str
) -> None:
    names = [
        "Zoe",
        "adam",
        "Adam",
        "zoe",
        "Émile",
        "emile",
        "Ärger",
        "arger",
        "_x",
        "-y",
        "ß",
        "ss",
        "10",
        "9",
        "a b",
        "a-b",
    ]
    await session.execute(f'create table person (id text primary key, name text collate "{collation}")')
    await session.executemany("insert into person values ($1, $2)", [(f"id-{name}", name) for name in names])
    source = SqlAccounts("select id as account, name as cursor from person", page_size=1)
    expected = [row["id"] for row in await session.fetch("select id from person order by name, id")]
    assert await accounts_of(database, session, source) == expected


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        ("timestamptz", "timestamptz '2026-08-01' + n * interval '1.000001 s'"),
        ("numeric", "n::numeric / 7"),
        ("double precision", "n::double precision / 7"),
        ("date", "date '2026-08-01' + n"),
        ("uuid", "md5(n::text)::uuid"),
        ("bpchar(7)", "lpad(n::text, 7, '0')"),
        ("mood", "(enum_range(null::mood))[n % 3 + 1]"),
        ("interval", "n * interval '1 hour 3 s'"),
    ],
)
async def test_a_cursor_may_be_of_any_type_that_sorts(
    database: Database, session: Session, kind: str, value: str
) -> None:
    await session.execute("create type mood as enum ('sad', 'calm', 'glad')")
    await session.execute(f"create table account (id text, rank {kind})")
    await session.execute(f"insert into account select 'account-' || n, {value} from generate_series(1, 30) n")
    expected = [row["id"] for row in await session.fetch("select id from account order by rank, id")]
    source = SqlAccounts("select id as account, rank as cursor from account", page_size=7)
    assert await accounts_of(database, session, source) == expected


async def test_2501_accounts_come_in_pages(database: Database, session: Session) -> None:
    await fill(session, 2501)
    found = await accounts_of(database, session, SqlAccounts("select id as account from account", page_size=500))
    assert len(found) == len(set(found)) == 2501


async def test_what_changes_behind_the_cursor_waits_and_what_vanishes_keeps_its_row(
    database: Database, session: Session
) -> None:
    await fill(session, 20)
    job = job_at(accounts=SqlAccounts("select id as account from account", page_size=10))
    claim = await claimed(session, job)
    async with open_pager(database, job, claim) as pager:
        first = await pager.read(None)
        await session.execute("insert into account values ('account-00000'), ('account-00015b')")
        await session.execute("delete from account where id in ('account-00003', 'account-00018')")
        second = await pager.read(first.cursor)
        third = await pager.read(second.cursor)
    assert "account-00003" in first.accounts
    assert second.accounts[5] == "account-00015b"
    assert "account-00018" not in second.accounts
    assert (third.accounts, third.last) == ((), True)


async def test_the_window_is_the_occurrences(database: Database, session: Session) -> None:
    await session.execute("create table account (id text, due timestamptz)")
    for name, due in (("before", DUE - DAY), ("inside", DUE - DAY / 2), ("end", DUE), ("after", DUE + DAY)):
        await session.execute("insert into account values ($1, $2)", name, due)
    source = SqlAccounts("select id as account from account where due > :since and due <= :until -- the window")
    assert await accounts_of(database, session, source) == ["end", "inside"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select 1 as id", "gives no column `account`, but id"),
        ("select 17 as account", "of type int4; write account::text"),
        ("select gen_random_uuid() as account", "of type uuid; write account::text"),
        ("select 'x'::char(9) as account", "of type bpchar; write account::text"),
        ("select 'x' as account, null::integer as cursor", "column `cursor` is null for account 'x'"),
        ("select 'x'::text as account where :today", "uses :today; it may use :since and :until"),
        ("select 'x'::text as account, '{}'::json as cursor", "could not identify an ordering operator"),
        ("select nonsense", 'column "nonsense" does not exist'),
        ("select 'x'::text as account, random() as cursor from pg_sleep(0) where 1 / 0 = 1", "division by zero"),
        ("insert into account values ('x') returning id as account", "syntax error"),
    ],
)
async def test_what_is_wrong_with_a_query_is_recorded(
    database: Database, session: Session, query: str, said: str
) -> None:
    await session.execute("create table account (id text)")
    assert said in await refusal(database, session, SqlAccounts(query))


async def test_a_source_reads_only_what_its_role_may_and_writes_nothing(database: Database, session: Session) -> None:
    await fill(session, 3)
    role = f"reader_{(await session.fetchval('select current_database()'))}"
    await session.execute(f'create role "{role}"')
    await session.execute(
        """create function written() returns integer language sql as
           $$ insert into account values ('new') returning 1 $$"""
    )
    try:
        source = SqlAccounts("select id as account from account", role=role)
        assert "permission denied for table account" in await refusal(database, session, source)
        await session.execute(f'grant select on account to "{role}"')
        job = job_at(name="granted", accounts=source)
        claim = await claimed(session, job)
        assert await fanned_out(database, job, claim) is FanOutEnd.SEALED
        writing = job_at(name="writing", accounts=SqlAccounts("select written()::text as account"))
        claim = await claimed(session, writing)
        assert await fanned_out(database, writing, claim) is FanOutEnd.FAILED
        error = (await occurrence_row(session, claim.id))["fan_out_error"]
        assert "read-only transaction" in error
        assert await session.fetchval("select count(*) from account") == 3
    finally:
        await session.execute(f'drop owned by "{role}"')
        await session.execute(f'drop role "{role}"')


async def test_accounts_that_a_collation_holds_for_equal_are_refused(database: Database, session: Session) -> None:
    await session.execute(
        "create collation careless (provider = icu, locale = 'und-u-ks-level1', deterministic = false)"
    )
    await session.execute("create table account (id text collate careless)")
    await session.execute("insert into account values ('a'), ('A'), ('b')")
    said = await refusal(database, session, SqlAccounts("select id as account from account", page_size=1))
    assert "two accounts may be equal" in said
    source = SqlAccounts('select id collate "C" as account from account', page_size=1)
    assert await accounts_of(database, session, source, name="careful") == ["A", "a", "b"]


async def test_a_token_of_another_source_is_refused(database: Database, session: Session) -> None:
    await fill(session, 3)
    job = job_at()
    claim = await claimed(session, job)
    async with open_pager(database, job, claim) as pager:
        for token in ("17", "not json", '["2026", "account-00001"]'):
            with pytest.raises(FaultySource, match="is another source's"):
                await pager.read(token)


async def test_a_cursor_that_does_not_move_is_an_error(database: Database, session: Session) -> None:
    """A type whose order does not agree with its text would be read for ever."""
    await session.execute("create type place as (number integer)")
    await session.execute("create function shown(place) returns text language sql as $$ select '(1)' $$")
    await session.execute("create cast (place as text) with function shown(place)")
    await session.execute("create table account (id text, place place)")
    await session.execute("insert into account values ('a', '(1)'), ('a', '(2)'), ('a', '(3)')")
    source = SqlAccounts("select id as account, place as cursor from account", page_size=1)
    assert "the cursor does not move" in await refusal(database, session, source)
