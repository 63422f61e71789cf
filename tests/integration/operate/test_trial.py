import itertools
from typing import Any

import pytest

from shared.calls import AccountCall, BlockingAccountCall, ChunkCall, GiveUp, Handled, NothingToDo, OutsideCall
from shared.job import (
    Decisions,
    EachWorker,
    EveryWorker,
    Handler,
    Job,
    Outside,
    PerAccount,
    SetBased,
    WorkerCall,
    hours,
    minutes,
)
from shared.settings import Settings, load_settings
from tests.support.ledger import DUE, job_with, session_on
from worker.evidence import mark_of
from worker.outcome import Result
from worker.trial import Trial, due_window, latest_due, try_account

TABLES = "create table effect (account text, day timestamptz); create table total (account text primary key, n integer)"


def settings_of(database_url: str) -> Settings:
    return load_settings({"MATINS_DATABASE_URL": database_url}, need=frozenset({"database_url"}))


async def tried(database_url: str, handler: Any, *, dry_run: bool = True, twice: bool = False) -> Trial:
    job = job_with(handler)
    settings = settings_of(database_url)
    return await try_account(settings, job, job.handler.handler, "a", DUE, dry_run=dry_run, twice=twice)  # type: ignore[arg-type] # these jobs are declared with their functions


async def careless(call: AccountCall) -> None:
    await call.connection.execute("insert into effect values ($1, $2)", call.account, call.window.until)


async def careful(call: AccountCall) -> None:
    done = await call.connection.execute(
        "insert into effect select $1, $2 where not exists (select from effect where account = $1 and day = $2)",
        call.account,
        call.window.until,
    )
    if done == "INSERT 0 0":
        raise NothingToDo


def plain(call: BlockingAccountCall) -> None:
    call.connection.execute("insert into total values ($1, 1) on conflict do nothing", call.account)


async def chunked(call: ChunkCall) -> Handled:
    await call.connection.execute(
        "insert into total select unnest($1::text[]), 1 on conflict (account) do update set n = total.n + 1",
        list(call.accounts),
    )
    return Handled(call.accounts)


async def giving_up(call: AccountCall) -> None:
    await careless(call)
    raise GiveUp("no address")


@pytest.mark.parametrize("dry_run", [True, False])
async def test_an_effect_is_kept_unless_it_is_a_dry_run(database_url: str, *, dry_run: bool) -> None:
    async with session_on(database_url) as session:
        await session.execute(TABLES)
        trial = await tried(database_url, PerAccount(careless), dry_run=dry_run)
        assert (trial.good, trial.kept, len(trial.runs)) == (True, not dry_run, 1)
        assert trial.runs[0].wrote == {"public.effect": {"inserted": 1}}
        assert await session.fetchval("select count(*) from effect") == (0 if dry_run else 1)


@pytest.mark.parametrize(
    ("handler", "differs", "second"),
    [
        (PerAccount(careless), "public.effect: 1 inserted", Result.SUCCEEDED),
        (PerAccount(careful), "", Result.NOTHING_TO_DO),
        (PerAccount(plain), "", Result.SUCCEEDED),
        (SetBased(chunked), "public.total: 1 updated", Result.SUCCEEDED),
    ],
)
async def test_a_second_run_says_what_it_changed_and_keeps_nothing_then(
    database_url: str, handler: Handler, differs: str, second: Result
) -> None:
    async with session_on(database_url) as session:
        await session.execute(TABLES)
        trial = await tried(database_url, handler, dry_run=False, twice=True)
        assert (trial.differs, trial.runs[1].outcome.result) == (differs, second)
        assert (trial.good, trial.kept) == (not differs, not differs)
        kept = await session.fetchval("select (select count(*) from effect) + (select count(*) from total)")
        assert kept == (0 if differs else 1)


async def test_a_failure_is_told_and_keeps_nothing(database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(TABLES)
        trial = await tried(database_url, PerAccount(giving_up), dry_run=False, twice=True)
        assert (trial.good, trial.kept, len(trial.runs)) == (False, False, 1)
        outcome = trial.runs[0].outcome
        assert (outcome.result, outcome.error_class, outcome.error) == (Result.FAILED, "GiveUp", "no address")
        assert await session.fetchval("select count(*) from effect") == 0


async def test_the_account_runs_in_the_role_of_its_job(database_url: str, role: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(TABLES)
    trial = await tried(database_url, PerAccount(careless, role=role))
    assert trial.runs[0].outcome.error_class == "InsufficientPrivilegeError"
    assert not trial.good


async def test_an_outside_call_gets_the_same_key_twice_and_its_values_are_compared(database_url: str) -> None:
    keys: list[str] = []
    numbers = itertools.count()

    async def remembers(call: OutsideCall) -> str:
        keys.append(call.key)
        return call.key

    async def forgets(_call: OutsideCall) -> int:
        return next(numbers)

    good = await tried(database_url, Outside(remembers, key_valid_for=hours(1)), dry_run=False, twice=True)
    assert (good.good, good.kept, keys) == (True, None, [good.key, good.key])
    bad = await tried(database_url, Outside(forgets, key_valid_for=hours(1)), dry_run=False, twice=True)
    assert (bad.good, [one.value for one in bad.runs]) == (False, [0, 1])
    assert "another value" in bad.differs


def test_the_window_is_that_of_the_latest_due_instant() -> None:
    job: Job = job_with(PerAccount(careless))
    identity, window = due_window(job, DUE)
    assert (identity.scheduled_at, window.until) == (DUE, DUE)
    assert (window.until - window.since).days == 1
    assert latest_due(job).hour == 2


async def accumulate(call: WorkerCall) -> None:
    await call.connection.execute("insert into effect values ($1, $2)", call.worker, call.window.until)


async def tidy(call: WorkerCall) -> None:
    await call.connection.execute("delete from effect where day < $1", call.window.since)


async def test_what_every_worker_runs_is_recorded_once_its_second_run_has_changed_nothing(database_url: str) -> None:
    skipping = Decisions(
        catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(5)
    )
    recorded = "select mark, actor from matins.trial where job = 'invoice-run'"
    async with session_on(database_url) as session:
        await session.execute(TABLES)
        for function, twice, keeps in ((accumulate, True, 0), (tidy, False, 0), (tidy, True, 1), (tidy, True, 1)):
            handler = EveryWorker(function)
            job = job_with(handler, accounts=EachWorker(), coordination="every", decisions=skipping)
            trial = await try_account(
                settings_of(database_url), job, function, "worker", DUE, dry_run=True, twice=twice, actor="ann"
            )
            rows = await session.fetch(recorded)
            assert (trial.recorded, [row["actor"] for row in rows]) == (twice and bool(keeps), ["ann"] * keeps)
        assert await session.fetchval("select mark from matins.trial") == mark_of(tidy)
