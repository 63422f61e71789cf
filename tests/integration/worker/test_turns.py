"""Accounts that wait for the occurrences before: one is never run twice at once, and none before its turn."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import timedelta
from random import Random
from typing import Any

import anyio
import pytest

from shared.calls import AccountCall, ChunkCall, Handled, OutsideCall
from shared.definition import definition_of
from shared.job import Job, Outside, PerAccount, SetBased, hours
from shared.postgres import Session
from tests.support.ledger import DECISIONS, DUE, database_on, job_with, ledger, running_occurrence, session_on
from worker.invoke import Invocation
from worker.occurrences import WorkOccurrence
from worker.outcome import Result
from worker.outside import OutsideRunner, Started
from worker.transaction import Batch, Runner
from worker.turns import Ran

BESIDE = replace(DECISIONS, overlap="allow", overlap_by="account")
DAY = timedelta(days=1)
ACCOUNTS = ["a", "b", "c"]


async def per_account(call: AccountCall) -> None:
    await call.connection.execute("insert into effect values ($1, $2)", call.account, str(call.occurrence))


async def chunk(call: ChunkCall) -> Handled:
    for account in call.accounts:
        await call.connection.execute("insert into effect values ($1, $2)", account, str(call.occurrence))
    return Handled(list(call.accounts))


async def outside(_call: OutsideCall) -> None:
    return None


HANDLERS = {"per account": PerAccount(per_account, chunk_size=3), "set based": SetBased(chunk)}


def job_of(handler: Any) -> Job:
    return replace(job_with(handler), decisions=BESIDE)


def runner_of(job: Job) -> Runner:
    function = job.handler.handler
    assert callable(function)
    return Runner(job, Invocation(function, job.handler.timeout, anyio.CapacityLimiter(4)), "worker-1", lambda: 0.0)


def outside_runner(job: Job, instance: str = "worker-1") -> OutsideRunner:
    invocation = Invocation(outside, job.handler.timeout, anyio.CapacityLimiter(4))
    return OutsideRunner(job, invocation, instance, timedelta(seconds=30), 3, lambda: 0.0)


async def nights(session: Session, job: Job, *offsets: int, accounts: Sequence[str] = ACCOUNTS) -> list[WorkOccurrence]:
    """Record occurrences of the same accounts, so many days from the first."""
    await session.execute("create table if not exists effect (account text, occurrence text)")
    await session.execute(
        "insert into matins.account_lock (job, account) select $1, unnest($2::text[])", job.name, accounts
    )
    return [await running_occurrence(session, job, accounts, scheduled_at=DUE + day * DAY) for day in offsets]


async def run(session: Session, job: Job, occurrence: WorkOccurrence, *accounts: str) -> Ran:
    return await runner_of(job).run(session, Batch(occurrence, 1, accounts or tuple(ACCOUNTS), DUE))


def ends(ran: Ran) -> dict[str, str]:
    return {account: outcome.result.value for account, outcome in sorted(ran.outcomes.items())}


@pytest.fixture
async def other(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        yield opened


@pytest.mark.parametrize("mode", HANDLERS)
class TestInTransactions:
    async def test_who_is_done_starts_at_once_and_who_is_open_waits_uncharged(
        self, session: Session, mode: str
    ) -> None:
        job = job_of(HANDLERS[mode])
        before, after = await nights(session, job, 0, 1)
        assert ends(await run(session, job, before, "a", "c")) == {"a": "succeeded", "c": "succeeded"}
        ran = await run(session, job, after)
        assert ends(ran) == {"a": "succeeded", "b": "blocked", "c": "succeeded"}
        [again] = ran.again
        assert (again.account, again.isolated) == ("b", False)
        assert timedelta(seconds=1) <= again.wait <= timedelta(seconds=30)
        row = (await ledger(session, after.id))["b"]
        assert (row["state"], row["attempts"], row["starts"], row["published_at"]) == ("pending", 0, 0, None)
        assert row["not_before"] is not None
        await run(session, job, before, "b")
        await session.execute("update matins.ledger set not_before = null")
        assert ends(await run(session, job, after, "b")) == {"b": "succeeded"}
        assert await session.fetchval("select count(*) from effect") == 6

    async def test_what_still_reads_its_accounts_may_come_to_any(self, session: Session, mode: str) -> None:
        job = job_of(HANDLERS[mode])
        before, after = await nights(session, job, 0, 1)
        await session.execute(
            "update matins.occurrence set state = 'claimed', sealed_at = null, lease_until = $2 where id = $1",
            before.id,
            DUE,
        )
        await session.execute("delete from matins.ledger where occurrence_id = $1", before.id)
        assert set(ends(await run(session, job, after)).values()) == {"blocked"}
        await session.execute(
            "update matins.occurrence set ending = 'cancel', ending_reason = 'x' where id = $1", before.id
        )
        await session.execute("update matins.ledger set not_before = null")
        assert set(ends(await run(session, job, after)).values()) == {"succeeded"}

    async def test_two_occurrences_never_run_an_account_at_once_in_whichever_order(
        self, session: Session, other: Session, mode: str
    ) -> None:
        job = job_of(HANDLERS[mode])
        before, after = await nights(session, job, 0, 1)
        await session.execute(
            "update matins.ledger set state = 'succeeded', finished_at = now(), attempts = 1, epoch = 1"
        )
        await session.execute("update matins.ledger set state = 'pending', finished_at = null where account = 'a'")
        await session.execute(
            "update matins.ledger set state = 'succeeded', finished_at = now() where occurrence_id = $1", before.id
        )
        began, go_on = anyio.Event(), anyio.Event()

        async def slow(call: Any) -> Any:
            began.set()
            await go_on.wait()
            return Handled(list(call.accounts)) if isinstance(call, ChunkCall) else None

        handler: Any = job.handler
        held = replace(job, handler=replace(handler, handler=slow))
        async with anyio.create_task_group() as group:
            group.start_soon(run, session, held, after, "a")
            await began.wait()
            # Somebody runs the earlier one again meanwhile: it must wait for the later one's account.
            await other.execute(
                "update matins.ledger set state = 'pending', finished_at = null where occurrence_id = $1", before.id
            )
            assert ends(await run(other, job, before, "a")) == {"a": "blocked"}
            go_on.set()
        await other.execute("update matins.ledger set not_before = null")
        assert ends(await run(other, job, before, "a")) == {"a": "succeeded"}

    async def test_jobs_whose_accounts_do_not_wait_pay_nothing(self, session: Session, mode: str) -> None:
        job = replace(job_of(HANDLERS[mode]), decisions=replace(BESIDE, overlap_by="job"))
        before, after = await nights(session, job, 0, 1)
        assert set(ends(await run(session, job, after)).values()) == {"succeeded"}
        assert set(ends(await run(session, job, before)).values()) == {"succeeded"}
        assert await session.fetchval("select count(*) from matins.account_lock where xmax <> 0") == 0


async def test_of_twenty_sessions_that_hammer_three_occurrences_one_runs_an_account(
    database_url: str,
) -> None:
    beside: list[str] = []

    async def alone(call: AccountCall) -> None:
        if not await call.connection.fetchval("select pg_try_advisory_xact_lock(hashtext($1))", call.account):
            beside.append(f"{call.account} of {call.occurrence}")
        await call.connection.execute("insert into effect values ($1, $2)", call.account, str(call.occurrence))

    job = job_of(PerAccount(alone, chunk_size=3))
    accounts = [f"a{number:02d}" for number in range(20)]
    random = Random(22)  # noqa: S311 - a seed makes the run
    async with database_on(database_url, size=21) as database:
        async with database.session() as session:
            found = await nights(session, job, 0, 1, 2, accounts=accounts)

        async def hammer() -> None:
            for _ in range(25):
                async with database.session() as own:
                    await run(own, job, random.choice(found), *random.sample(accounts, random.randint(1, 3)))
                    # Some are run again, of whichever occurrence, and nobody waits for long.
                    await own.execute(
                        """update matins.ledger l set state = 'pending', finished_at = null, epoch = epoch + 1
                            where (occurrence_id, account) in (
                                  select occurrence_id, account from matins.ledger
                                   where state = 'succeeded' and random() < 0.3 for update skip locked)"""
                    )
                    await own.execute(
                        """update matins.ledger set not_before = null where (occurrence_id, account) in (
                               select occurrence_id, account from matins.ledger
                                where not_before is not null and random() < 0.2 for update skip locked)"""
                    )

        async with anyio.create_task_group() as group:
            for _ in range(20):
                group.start_soon(hammer)
        async with database.session() as session:
            assert beside == []
            assert await session.fetchval("select count(*) from effect") > 20


class TestOutside:
    async def test_who_is_executed_or_open_before_waits_and_a_dead_workers_account_is_given_back(
        self, session: Session
    ) -> None:
        job = job_of(Outside(outside, key_valid_for=hours(1)))
        before, after = await nights(session, job, 0, 1)
        runner = outside_runner(job)

        async def start(occurrence: WorkOccurrence, account: str) -> Started | Ran | None:
            return await runner.start(session, occurrence, account, 1, DUE)

        first = await start(before, "a")
        assert isinstance(first, Started)
        waits = await start(after, "a")
        assert isinstance(waits, Ran)
        assert (waits.outcomes["a"].result, len(waits.again)) == (Result.BLOCKED, 1)
        row = (await ledger(session, after.id))["a"]
        assert (row["state"], row["attempts"], row["starts"], row["lease_until"]) == ("pending", 0, 0, None)
        # The sweep gives the row of a silent worker back, and with it the account: nothing else holds it.
        await session.execute(
            """update matins.ledger set state = 'failed', error_class = 'x', lease_until = null, epoch = epoch + 1,
                      finished_at = now() where occurrence_id = $1 and account = 'a'""",
            before.id,
        )
        await session.execute("update matins.ledger set not_before = null")
        assert isinstance(await start(after, "a"), Started)

    async def test_of_two_occurrences_that_start_an_account_at_once_one_does(self, database_url: str) -> None:
        job = job_of(Outside(outside, key_valid_for=hours(1)))
        async with database_on(database_url, size=9) as database:
            async with database.session() as session:
                found = await nights(session, job, 0, 1)
            for _ in range(40):
                started: list[object] = []

                async def attempt(occurrence: WorkOccurrence, started: list[object] = started) -> None:
                    async with database.session() as own:
                        started.append(await outside_runner(job).start(own, occurrence, "a", 1, DUE))

                async with anyio.create_task_group() as group:
                    for occurrence in found * 4:
                        group.start_soon(attempt, occurrence)
                assert sum(isinstance(one, Started) for one in started) <= 1
                async with database.session() as session:
                    running = await session.fetchval("select count(*) from matins.ledger where state = 'running'")
                    assert running <= 1
                    await session.execute(
                        "update matins.ledger set state = 'pending', lease_until = null, not_before = null, starts = 0"
                    )


async def test_the_lock_of_an_earlier_releases_fan_out_is_made_at_the_start(session: Session) -> None:
    job = job_of(HANDLERS["per account"])
    [only] = await nights(session, job, 0)
    await session.execute("delete from matins.account_lock")
    assert definition_of(job)["decisions"]["overlap_by"] == "account"
    assert set(ends(await run(session, job, only)).values()) == {"succeeded"}
    rows = await session.fetch("select account from matins.account_lock where job = $1 order by 1", job.name)
    assert [row["account"] for row in rows] == ACCOUNTS
