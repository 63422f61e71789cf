"""Dropping old months while nights run: what goes, what stays, and what may never run again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import anyio
import pytest

from schemas.occurrence import Identity
from shared.migrate import enter_environment
from shared.postgres import Session
from shared.terminal import NotDone, Refused
from tests.integration.operate.night import ORDER, closed_night, events, expected_occurrence, nightly
from tests.support.fleet import until
from tests.support.ledger import DUE, ledger, occurrence_row, running_occurrence, session_on
from trigger.claim import claim_due, claim_one
from trigger.claim_outcome import Claimant, Nothing, Pruned
from trigger.operate import Choice, rerun
from trigger.prune import prune
from trigger.show import list_accounts, show_occurrence

OLD = datetime(2025, 6, 25, 2, 0, tzinfo=UTC)
BEFORE = datetime(2025, 7, 20, tzinfo=UTC)
JULY = datetime(2025, 7, 1, tzinfo=UTC)
ME = Claimant("one", "north", timedelta(seconds=30))


@asynccontextmanager
async def environment(url: str) -> AsyncIterator[Session]:
    async with session_on(url) as session:
        await enter_environment(session, "test", create=True)
        yield session


async def months(session: Session) -> set[str]:
    rows = await session.fetch(
        """select inhrelid::regclass::text as name from pg_inherits
             join pg_class c on c.oid = inhrelid where c.relkind = 'r'"""
    )
    return {row["name"] for row in rows}


async def test_a_month_goes_while_a_night_runs_and_nobody_waits_for_it(database_url: str) -> None:
    async with environment(database_url) as session, session_on(database_url) as pruning:
        old, closed = await closed_night(session, scheduled_at=OLD)
        night = await running_occurrence(session, nightly("other-run"), ["a", "b"])
        async with session_on(database_url) as handler, anyio.create_task_group() as group:
            holding = handler.transaction()
            await holding.start()
            await handler.execute(
                "update matins.ledger set worker = 'me' where account = 'a' and occurrence_id = $1", night.id
            )
            done: list[Any] = []

            async def run() -> None:
                done.append(await prune(pruning, BEFORE, ORDER))

            group.start_soon(run)
            await until(lambda: session.fetchval("select 1 from pg_inherits where inhdetachpending"))
            await session.execute("set lock_timeout = '500ms'")
            await session.execute(
                "update matins.ledger set worker = 'you' where account = 'b' and occurrence_id = $1", night.id
            )
            assert set(await ledger(session, night.id)) == {"a", "b"}
            await running_occurrence(session, nightly("third-run"), ["c"])
            assert not done, "the month goes once nobody can be reading it"
            await holding.commit()
        (pruned,) = done
        assert pruned.retained_from == JULY
        assert [(one.name, one.accounts, one.occurrences, one.unsuccessful) for one in pruned.months] == [
            ("ledger_2025_06", 5, 1, 1)
        ]
        assert pruned.months[0].bytes > 0
        assert (pruned.publications, pruned.attempts) == (1, 0)
        assert await months(session) == {"matins.ledger_2026_08"}
        assert await session.fetchval("select to_regclass('matins.ledger_2025_06')") is None
        row = await occurrence_row(session, old.id)
        assert (row["state"], row["total"]) == (closed.state, 5), "occurrences stay"
        audited: Any = await session.fetchrow("select * from matins.audit where kind = 'prune'")
        assert (audited["actor"], audited["reason"]) == ("ann", "the tax service is back")
        assert audited["detail"]["months"][0]["accounts"] == 5
        again = await prune(pruning, BEFORE, ORDER)
        assert (again.months, again.publications) == ((), 0)


async def test_the_messages_of_alerts_that_were_over_go_and_the_alerts_stay(database_url: str) -> None:
    async with environment(database_url) as session:
        await session.execute("insert into matins.channel (name, spread_through) values ('team', $1)", OLD)
        for closed_at, told_at in ((OLD, OLD), (None, OLD), (JULY, OLD), (OLD, JULY)):
            await session.execute(
                """with alert as (
                       insert into matins.alert (kind, subject, told, opened_at, opened_by, closed_at, close_reason)
                       values ('failed', gen_random_uuid()::text, 't', $3, 'test', $1, $4) returning id)
                   , told as (
                       insert into matins.notification (alert_id, event, body, created_at)
                       select id, 'opened', '{}', $2 from alert returning id)
                   insert into matins.delivery (channel, thread, place, notification_id, event, created_at, not_before)
                   select 'team', id::text, id, id, 'opened', $2, $2 from told""",
                closed_at,
                told_at,
                OLD,
                closed_at and "it is over",
            )
        assert (await prune(session, BEFORE, ORDER, dry_run=True)).notifications == 1
        assert (await prune(session, BEFORE, ORDER)).notifications == 1
        for table, left in (("notification", 3), ("delivery", 3), ("alert", 4)):
            assert await session.fetchval(f"select count(*) from matins.{table}") == left


async def test_a_dry_run_changes_nothing(database_url: str) -> None:
    async with environment(database_url) as session:
        old, _ = await closed_night(session, scheduled_at=OLD)
        assert [one.name for one in (await prune(session, BEFORE, ORDER, dry_run=True)).months] == ["ledger_2025_06"]
        assert len(await ledger(session, old.id)) == 5
        assert await session.fetchval("select retained_from from matins.environment") is None
        assert (await rerun(session, old.identity, Choice(), ORDER)).accounts == 3


async def test_what_is_not_over_is_named_and_nothing_is_dropped(database_url: str) -> None:
    async with environment(database_url) as session:
        await closed_night(session, scheduled_at=OLD)
        await running_occurrence(session, nightly("other-run"), ["a"], scheduled_at=OLD)
        for dry_run in (True, False):
            with pytest.raises(
                Refused, match=r"before 2025-07-01T00:00Z: other-run:2025-06-25T02:00Z \(running\); wait"
            ):
                await prune(session, BEFORE, ORDER, dry_run=dry_run)
        assert await months(session) == {"matins.ledger_2025_06"}
        assert await session.fetchval("select retained_from from matins.environment") is None


async def test_what_is_pruned_says_so_and_runs_no_more(database_url: str) -> None:
    async with environment(database_url) as session:
        old, _ = await closed_night(session, scheduled_at=OLD)
        waits = await expected_occurrence(session, nightly(), OLD - timedelta(days=1))
        await prune(session, BEFORE, ORDER)
        assert (await show_occurrence(session, old.identity))["pruned_before"] == JULY
        with pytest.raises(Refused, match="were pruned: only those of what was due from 2025-07-01T00:00Z on are kept"):
            await list_accounts(session, old.identity, ["failed"], None, 10)
        with pytest.raises(Refused, match="were pruned: nothing due before 2025-07-01T00:00Z runs"):
            await rerun(session, old.identity, Choice(), ORDER)
        fired = await claim_one(session, Identity("invoice-run", OLD - timedelta(days=1)), ME, fired_by="ann")
        assert fired == Pruned(JULY)
        await session.execute("update matins.job set planned_through = clock_timestamp() + interval '1 day'")
        assert await claim_due(session, nightly(), 1, ME) == Nothing()
        row = await occurrence_row(session, waits)
        assert (row["state"], row["reason"]) == ("missed", "older than what is retained")
        assert [kind for kind, _, _ in await events(session, waits)] == ["missed"]


async def test_an_interrupted_prune_is_finished_by_the_next(database_url: str) -> None:
    async with environment(database_url) as session:
        await closed_night(session, scheduled_at=OLD)
        await closed_night(session, nightly("other-run"), scheduled_at=OLD - timedelta(days=31))
        await session.execute("alter table matins.ledger detach partition matins.ledger_2025_05")
        assert [one.name for one in (await prune(session, BEFORE, ORDER)).months] == [
            "ledger_2025_05",
            "ledger_2025_06",
        ]
        assert await session.fetchval("select to_regclass('matins.ledger_2025_05')") is None


async def test_the_future_a_second_prune_and_another_login_are_refused(database_url: str, role: str) -> None:
    async with environment(database_url) as session, session_on(database_url) as other:
        with pytest.raises(Refused, match="is still to come"):
            await prune(session, datetime.now(UTC) + timedelta(days=1), ORDER)
        await prune(other, BEFORE, ORDER)
        with pytest.raises(NotDone, match="another prune is under way"):
            await prune(session, BEFORE, ORDER)
    async with environment(database_url) as session:
        await closed_night(session, scheduled_at=OLD)
        await session.execute(f'grant usage on schema matins to "{role}"')
        await session.execute(f'grant select, insert, update, delete on all tables in schema matins to "{role}"')
        await session.execute(f'set role "{role}"')
        with pytest.raises(Refused, match=r"may not drop ledgers .* prune with the one that migrates"):
            await prune(session, BEFORE, ORDER)
        await session.execute("reset role")
        assert await months(session) == {"matins.ledger_2025_06"}
        assert DUE > BEFORE
        await session.execute(f'drop owned by "{role}"')


async def test_the_locks_of_accounts_that_no_ledger_names_go_unless_somebody_holds_them(database_url: str) -> None:
    async with environment(database_url) as session, session_on(database_url) as holder:
        await running_occurrence(session, nightly("other-run"), ["kept"])
        await session.execute(
            """insert into matins.account_lock (job, account)
               values ('other-run', 'kept'), ('other-run', 'gone'), ('other-run', 'held'), ('former', 'kept')"""
        )
        async with holder.transaction():
            await holder.fetch("select from matins.account_lock where account = 'held' for update")
            await prune(session, BEFORE, ORDER)
        left = "select job || ' ' || account as lock from matins.account_lock order by 1"
        assert [row["lock"] for row in await session.fetch(left)] == ["other-run held", "other-run kept"]
        await prune(session, BEFORE, ORDER)
        assert [row["lock"] for row in await session.fetch(left)] == ["other-run kept"]
