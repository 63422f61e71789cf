from collections.abc import AsyncIterator
from datetime import timedelta

import anyio
import pytest

from schemas.occurrence import Identity
from shared.migrate import (
    FaultyMigration,
    SchemaBehind,
    WrongEnvironment,
    check_schema,
    enter_environment,
    migrate,
    migration_script,
    migrations,
)
from shared.postgres import Session
from shared.watch_pass import Watch
from shared.watch_results import RESULTS
from tests.integration.watch.support import PASS, REPEAT
from tests.support.ledger import DUE, database_on, session_on
from tests.support.servers import execute, unique_name, with_path

DESCRIPTION = """
    select 'column', table_name, column_name, data_type, column_default, is_nullable
      from information_schema.columns where table_schema = 'matins'
    union all
    select 'constraint', conrelid::regclass::text, conname, pg_get_constraintdef(oid), null, null
      from pg_constraint where connamespace = 'matins'::regnamespace
    union all
    select 'index', tablename, indexname, indexdef, null, null from pg_indexes where schemaname = 'matins'
    union all
    select 'function', proname, prosrc, null, null, null from pg_proc where pronamespace = 'matins'::regnamespace
    order by 1, 2, 3, 4
"""


@pytest.fixture
async def empty_database_url(administrator_url: str) -> AsyncIterator[str]:
    name = unique_name()
    await execute(administrator_url, f'create database "{name}"')
    yield with_path(administrator_url, name)
    await execute(administrator_url, f'drop database "{name}" with (force)')


async def description(session: Session) -> list[tuple[object, ...]]:
    return [tuple(row) for row in await session.fetch(DESCRIPTION)]


async def test_an_older_schema_is_migrated_in_place_with_its_rows(empty_database_url: str) -> None:
    async with session_on(empty_database_url) as session:
        await migrate(session, through=1)
        await session.execute(
            """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
               values ('a', 1, '{}', 'f', $1, $1)""",
            DUE,
        )
        await session.execute(
            """insert into matins.occurrence (job, scheduled_at, revision, window_since, window_until, tzdata_version)
               values ('a', $1, 1, $1, $1, 't')""",
            DUE,
        )
        with pytest.raises(SchemaBehind, match="0002_fleet"):
            await check_schema(session)
        applied = await migrate(session)
        assert [one.version for one in applied] == [one.version for one in migrations()][1:]
        await check_schema(session)
        assert await session.fetchval("select count(*) from matins.occurrence") == 1
        assert await migrate(session) == []


async def test_what_had_ended_badly_long_before_there_was_a_watch_is_told_to_nobody(empty_database_url: str) -> None:
    async with session_on(empty_database_url) as session, database_on(empty_database_url) as database:
        await migrate(session, through=16)
        await session.execute(
            """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
               values ('a', 1, '{}', 'f', $1, $1)""",
            DUE,
        )
        await session.execute(
            """insert into matins.occurrence (job, scheduled_at, due_at, variant, state, reason, revision, window_since,
                   window_until, tzdata_version)
               select 'a', at, at, variant, 'missed', 'nobody was there', 1, at, at, 't'
                 from (values (interval '20 days', ''), (interval '50 hours', '@host'), (interval '1 hour', ''))
                      as ago (ago, variant)
                cross join lateral (select date_trunc('minute', clock_timestamp()) - ago as at) due"""
        )
        await migrate(session)
        raised = await Watch(database, "watcher", PASS, REPEAT, (RESULTS,)).watch_pass()
        assert raised is not None
        last = await session.fetchval("select max(scheduled_at) from matins.occurrence")
        assert [row["subject"] for row in raised.told] == [str(Identity("a", last))]
        known = await session.fetch("select occurrence_id from matins.alert where closed_at is not null order by id")
        assert [row["occurrence_id"] for row in known] == [1, 2]


async def test_the_script_for_an_administrator_makes_the_same_schema(
    empty_database_url: str, database_url: str
) -> None:
    async with session_on(empty_database_url) as by_hand, session_on(database_url) as migrated:
        await by_hand.execute(migration_script())
        assert await description(by_hand) == await description(migrated)
        await check_schema(by_hand)
        assert await migrate(by_hand) == []


async def test_twenty_that_migrate_at_once_all_come_through(empty_database_url: str) -> None:
    applied: list[int] = []

    async def one() -> None:
        async with session_on(empty_database_url) as session:
            applied.append(len(await migrate(session)))

    async with anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(one)
    assert len(applied) == 20
    assert sum(applied) == len(migrations())


async def test_a_database_that_is_not_ours_to_go_on_with_is_refused(database_url: str, empty_database_url: str) -> None:
    async with session_on(empty_database_url) as session:
        with pytest.raises(SchemaBehind, match="run `python -m trigger migrate`"):
            await check_schema(session)
    async with session_on(database_url) as session:
        await session.execute("update matins.migration set checksum = 'other' where version = 1")
        with pytest.raises(FaultyMigration, match="0001_occurrences"):
            await migrate(session)


async def test_a_schema_ahead_of_this_release_is_fine(database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(
            "insert into matins.migration (version, name, checksum, duration_ms) values (999, 'later', 'x', 0)"
        )
        await check_schema(session)
        assert await migrate(session) == []


async def test_a_database_keeps_its_first_environment(database_url: str) -> None:
    async with session_on(database_url) as session:
        with pytest.raises(WrongEnvironment, match="None"):
            await enter_environment(session, "production", create=False)
        await enter_environment(session, "production", create=True)
        await enter_environment(session, "production", create=False)
        with pytest.raises(WrongEnvironment, match="'development', the database to 'production'"):
            await enter_environment(session, "development", create=True)


async def test_partitions_are_made_once_by_many_and_hold_their_month(database_url: str) -> None:
    async def ensure() -> None:
        async with session_on(database_url) as session:
            for months in range(3):
                await session.execute("select matins.ensure_ledger_partition($1)", DUE + timedelta(days=31 * months))

    async with anyio.create_task_group() as group:
        for _ in range(8):
            group.start_soon(ensure)
    async with session_on(database_url) as session:
        rows = await session.fetch(
            """select inhrelid::regclass::text as name
                 from pg_inherits where inhparent = 'matins.ledger'::regclass order by 1"""
        )
        assert [row["name"] for row in rows] == [
            "matins.ledger_2026_08",
            "matins.ledger_2026_09",
            "matins.ledger_2026_10",
        ]
