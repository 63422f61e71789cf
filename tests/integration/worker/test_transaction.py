import contextlib
import functools
from datetime import timedelta
from typing import Any

import anyio
import pytest

from shared.calls import AccountCall, BlockingAccountCall, ChunkCall, GiveUp, Handled, NothingToDo, RetryLater
from shared.job import Backoff, Job, PerAccount, SetBased
from shared.postgres import Session
from tests.support.ledger import DUE, job_with, ledger, running_occurrence, session_on
from worker.invoke import Invocation
from worker.occurrences import WorkOccurrence
from worker.outcome import Result
from worker.savepoints import CommitFailed
from worker.transaction import Batch, Runner

EFFECTS = "create table effect (id bigserial primary key, account text, attempt integer)"
INSERT = "insert into effect (account, attempt) values ($1, $2)"


def runner_of(job: Job) -> Runner:
    function = job.handler.handler
    assert callable(function)
    return Runner(job, Invocation(function, job.handler.timeout, anyio.CapacityLimiter(4)), "worker-1", lambda: 0.0)


def batch_of(occurrence: WorkOccurrence, *accounts: str) -> Batch:
    return Batch(occurrence, 1, accounts, DUE)


async def effects(session: Session) -> list[str]:
    return [row["account"] for row in await session.fetch("select account from effect order by account")]


async def insert(call: AccountCall) -> None:
    await call.connection.execute(INSERT, call.account, call.attempt)
    match call.account.partition("-")[0]:
        case "broken":
            message = "no tax id\x00 \ud800"
            raise ValueError(message)
        case "done":
            message = "already"
            raise NothingToDo(message)
        case "hopeless":
            raise GiveUp("never" * 1000)
        case "later":
            raise RetryLater(after=timedelta(minutes=7))
        case "sql":
            await call.connection.execute("select 1 / 0")
        case "swallowed":
            with contextlib.suppress(Exception):
                await call.connection.execute("select 1 / 0")
        case "slow":
            await call.connection.execute("select pg_sleep(30)")
        case "exit":
            raise SystemExit(3)
        case "commit":
            await call.connection.execute("commit")
        case _:
            pass


@pytest.mark.parametrize(
    ("account", "state", "error_class", "tries"),
    [
        ("good-1", "succeeded", None, 1),
        ("done-1", "succeeded", None, 1),
        ("broken-1", "pending", "ValueError", 1),
        ("hopeless-1", "failed", "GiveUp", 1),
        ("later-1", "pending", "RetryLater", 1),
        ("sql-1", "pending", "DivisionByZeroError", 1),
        ("swallowed-1", "pending", "InFailedSQLTransactionError", 1),
        ("slow-1", "pending", "timeout", 1),
        ("exit-1", "pending", "SystemExit", 1),
        ("commit-1", "pending", "RuntimeError", 1),
    ],
)
async def test_each_way_in_which_a_handler_can_end(
    database_url: str, account: str, state: str, error_class: str | None, tries: int
) -> None:
    job = job_with(PerAccount(insert, timeout=timedelta(milliseconds=300)))
    async with session_on(database_url) as session:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a", account, "z"])
        ran = await runner_of(job).run(session, batch_of(occurrence, "a", account, "z"))
        rows = await ledger(session, occurrence.id)
        assert rows[account]["state"] == state
        assert rows[account]["error_class"] == error_class
        assert rows[account]["attempts"] == tries
        assert (rows["a"]["state"], rows["z"]["state"]) == ("succeeded", "succeeded")
        expected = ["a", "z"] if account != "good-1" else ["a", "good-1", "z"]
        assert await effects(session) == expected
        assert [one.account for one in ran.again] == ([account] if state == "pending" else [])
        assert rows[account]["nothing_to_do"] is (account == "done-1")


async def test_a_try_that_waits_is_recorded_with_its_time_and_unpublished(database_url: str) -> None:
    backoff = Backoff(first=timedelta(seconds=10), factor=3, jitter=0)
    job = job_with(PerAccount(insert), backoff=backoff, max_tries=2)
    async with session_on(database_url) as session:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["broken-1"])
        first = await runner_of(job).run(session, batch_of(occurrence, "broken-1"))
        row = (await ledger(session, occurrence.id))["broken-1"]
        assert (row["published_at"], row["epoch"]) == (None, 1)
        assert first.again[0].wait == timedelta(seconds=10)
        assert row["not_before"] - first.again[0].settled_at <= timedelta(seconds=10)
        early = await runner_of(job).run(session, batch_of(occurrence, "broken-1"))
        assert early.missed == ("broken-1",)
        later = row["not_before"] + timedelta(seconds=1)
        await runner_of(job).run(session, batch_of(occurrence, "broken-1"), now=later)
        row = (await ledger(session, occurrence.id))["broken-1"]
        assert (row["state"], row["attempts"], row["error_class"]) == ("failed", 2, "ValueError")
        assert "\x00" not in row["error"]


async def test_of_two_copies_at_once_one_runs_and_the_other_finds_the_row_busy(database_url: str) -> None:
    job = job_with(PerAccount(insert))
    async with session_on(database_url) as first, session_on(database_url) as second:
        await first.execute(EFFECTS)
        occurrence = await running_occurrence(first, job, ["a"])
        async with first.transaction():
            await first.fetch("select * from matins.ledger where account = 'a' for update")
            ran = await runner_of(job).run(second, batch_of(occurrence, "a"))
        assert ran.missed == ("a",)
        assert await effects(first) == []


async def test_a_deferred_constraint_fails_its_own_account_alone(database_url: str) -> None:
    async def refer(call: AccountCall) -> None:
        parent = 2 if call.account == "b" else 1
        await call.connection.execute("insert into child values ($1, $2)", call.account, parent)

    job = job_with(PerAccount(refer, chunk_size=10))
    async with session_on(database_url) as session:
        await session.execute(
            "create table parent (id integer primary key); insert into parent values (1); create table child "
            "(account text, parent integer references parent deferrable initially deferred)"
        )
        occurrence = await running_occurrence(session, job, ["a", "b", "c"])
        await runner_of(job).run(session, batch_of(occurrence, "a", "b", "c"))
        rows = await ledger(session, occurrence.id)
        assert {account: row["state"] for account, row in rows.items()} == {
            "a": "succeeded",
            "b": "pending",
            "c": "succeeded",
        }
        assert rows["b"]["error_class"] == "ForeignKeyViolationError"


async def test_the_role_is_taken_for_the_handler_and_given_back_before_the_settle(database_url: str, role: str) -> None:
    users: list[str] = []

    async def look(call: AccountCall) -> None:
        users.append(await call.connection.fetchval("select current_user"))
        if call.account == "b":
            await call.connection.fetchval("select count(*) from matins.ledger")

    job = job_with(PerAccount(look, role=role))
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, job, ["a", "b", "c"])
        await runner_of(job).run(session, batch_of(occurrence, "a", "b", "c"))
        rows = await ledger(session, occurrence.id)
        assert users == [role] * 3
        assert rows["b"]["error_class"] == "InsufficientPrivilegeError"
        assert [rows["a"]["state"], rows["c"]["state"]] == ["succeeded", "succeeded"]
        assert await session.fetchval("select current_user = session_user")


async def test_a_plain_function_runs_in_a_thread_and_loses_the_connection_with_its_timeout(database_url: str) -> None:
    refused: list[str] = []
    over = anyio.Event()

    def blocking(call: BlockingAccountCall) -> None:
        call.connection.execute(INSERT, call.account, call.attempt)
        if call.account == "slow":
            try:
                call.connection.execute("select pg_sleep(30)")
            except BaseException as error:
                refused.append(type(error).__name__)
                anyio.from_thread.run_sync(over.set)
                raise

    job = job_with(PerAccount(blocking, timeout=timedelta(milliseconds=300)))
    async with session_on(database_url) as session:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a", "slow", "z"])
        await runner_of(job).run(session, batch_of(occurrence, "a", "slow", "z"))
        rows = await ledger(session, occurrence.id)
        assert rows["slow"]["error_class"] == "timeout"
        assert await effects(session) == ["a", "z"]
        await over.wait()
        assert len(refused) == 1


async def run_set(call: ChunkCall) -> Handled:
    await call.connection.execute(
        "insert into effect (account) select account from unnest($1::text[]) account where account not like 'omitted%'",
        list(call.accounts),
    )
    if any(account.startswith("poison") for account in call.accounts):
        message = "poison in the chunk"
        raise ValueError(message)
    named = {account: "no plan" for account in call.accounts if account.startswith("named")}
    return Handled(
        done=[one for one in call.accounts if not one.startswith(("omitted", "named"))],
        failed=named,
    )


async def test_one_poison_account_in_a_chunk_of_a_hundred_fails_alone(database_url: str) -> None:
    job = job_with(SetBased(run_set, chunk_size=100))
    accounts = [f"a{number:02}" for number in range(99)] + ["poison"]
    async with session_on(database_url) as session:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, accounts)
        ran = await runner_of(job).run(session, batch_of(occurrence, *accounts))
        rows = await ledger(session, occurrence.id)
        assert sum(row["state"] == "succeeded" for row in rows.values()) == 99
        assert (rows["poison"]["state"], rows["poison"]["attempts"]) == ("pending", 1)
        assert len(await effects(session)) == 99
        assert [one.account for one in ran.again] == ["poison"]


async def test_an_account_that_a_set_based_handler_leaves_out_is_charged_only_when_it_stands_alone(
    database_url: str,
) -> None:
    job = job_with(SetBased(run_set))
    async with session_on(database_url) as session:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a", "named-1", "omitted"])
        ran = await runner_of(job).run(session, batch_of(occurrence, "a", "named-1", "omitted"))
        rows = await ledger(session, occurrence.id)
        assert (rows["omitted"]["state"], rows["omitted"]["attempts"]) == ("pending", 0)
        assert (rows["named-1"]["attempts"], rows["named-1"]["error"]) == (1, "no plan")
        assert {one.account: one.isolated for one in ran.again} == {"named-1": False, "omitted": False}
        await runner_of(job).run(session, batch_of(occurrence, "omitted"))
        row = (await ledger(session, occurrence.id))["omitted"]
        assert (row["attempts"], row["error_class"]) == (1, "not_reported")


async def test_what_is_left_of_the_time_budget_is_published_again_alone_and_uncharged(database_url: str) -> None:
    job = job_with(PerAccount(insert, chunk_size=3))
    hasty = Runner(job, runner_of(job).invocation, "worker-1", budget_seconds=-1.0)
    async with session_on(database_url) as session:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a", "b", "c"])
        ran = await hasty.run(session, batch_of(occurrence, "a", "b", "c"))
        assert [outcome.result for outcome in ran.outcomes.values()] == [
            Result.SUCCEEDED,
            Result.UNTRIED,
            Result.UNTRIED,
        ]
        assert [(one.account, one.isolated) for one in ran.again] == [("b", False), ("c", False)]


async def test_a_handler_that_ends_the_transaction_behind_our_back_is_noticed(database_url: str) -> None:
    async with session_on(database_url) as session:

        async def hidden(call: AccountCall) -> None:
            await call.connection.execute(INSERT, call.account, call.attempt)
            await session.execute("commit; begin")

        job = job_with(PerAccount(hidden))
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a"])
        with pytest.raises(CommitFailed, match="ended the transaction"):
            await runner_of(job).run(session, batch_of(occurrence, "a"))
    async with session_on(database_url) as session:
        failed = await runner_of(job).record_failure(session, batch_of(occurrence, "a"), CommitFailed("ended"))
        assert failed.outcomes["a"].result is Result.RETRY
        assert (await ledger(session, occurrence.id))["a"]["error_class"] == "CommitFailed"


async def test_a_worker_frozen_in_its_transaction_loses_it_and_changes_nothing(database_url: str) -> None:
    entered, go_on = anyio.Event(), anyio.Event()

    async def frozen(call: AccountCall) -> None:
        await call.connection.execute(INSERT, call.account, call.attempt)
        entered.set()
        await go_on.wait()

    job = job_with(PerAccount(frozen))
    async with session_on(database_url) as first, session_on(database_url) as second:
        await first.execute(EFFECTS)
        occurrence = await running_occurrence(first, job, ["a"])
        lost: list[Any] = []

        async def run_frozen() -> None:
            try:
                await runner_of(job).run(first, batch_of(occurrence, "a"))
            except Exception as error:  # noqa: BLE001 - what it is, is the assertion
                lost.append(error)

        async with anyio.create_task_group() as group:
            group.start_soon(run_frozen)
            await entered.wait()
            await second.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity where state like 'idle in tr%'"
            )
            done = job_with(PerAccount(insert))
            while (await runner_of(done).run(second, batch_of(occurrence, "a"))).missed:
                pass
            go_on.set()
        assert len(lost) == 1
        assert await effects(second) == ["a"]
        assert (await ledger(second, occurrence.id))["a"]["state"] == "succeeded"


class Invoicing:
    async def __call__(self, call: AccountCall) -> None:
        await insert(call)


def undeclared(inner: Any) -> Any:
    def outer(call: Any) -> Any:
        return inner(call)

    return outer


@pytest.mark.parametrize(
    ("handler", "state", "error_class"),
    [
        (Invoicing(), "succeeded", None),
        (functools.partial(insert), "succeeded", None),
        (undeclared(insert), "pending", "TypeError"),
    ],
    ids=["an object", "a partial", "a decorator that hides it"],
)
async def test_work_that_has_not_begun_is_never_taken_for_done(
    database_url: str, handler: Any, state: str, error_class: str | None
) -> None:
    job = job_with(PerAccount(handler))
    async with session_on(database_url) as session:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a"])
        await runner_of(job).run(session, batch_of(occurrence, "a"))
        row = (await ledger(session, occurrence.id))["a"]
        assert (row["state"], row["error_class"]) == (state, error_class)
        assert await effects(session) == (["a"] if state == "succeeded" else [])
