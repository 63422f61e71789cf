"""What a job's code leaves in a session, its next user doesn't find: another job may have it next."""

from collections.abc import Awaitable, Callable

import pytest

from shared.calls import AccountCall
from shared.job import PerAccount
from shared.postgres import Database, StatementsGone, is_transient
from tests.integration.worker.test_transaction import EFFECTS, INSERT, batch_of, effects, insert, runner_of
from tests.support.ledger import database_on, job_with, ledger, running_occurrence, session_on

HIDDEN = "do $$ begin execute 'deallocate all'; end $$"
TRAP = "create temp table effect (account text, attempt integer); grant insert on effect to public"


def leaving(statement: str) -> Callable[[AccountCall], Awaitable[None]]:
    async def leave(call: AccountCall) -> None:
        await call.connection.execute(INSERT.replace("effect", "public.effect"), call.account, call.attempt)
        await call.connection.execute(statement)

    return leave


async def run(database: Database, statement: str) -> None:
    """Run an account of a job that leaves something, in the pool's only session."""
    job = job_with(PerAccount(leaving(statement)), name="leaving")
    async with database.session() as lent:
        occurrence = await running_occurrence(lent, job, ["left"])
        await runner_of(job).run(lent, batch_of(occurrence, "left"))


@pytest.mark.parametrize(
    "statement",
    [
        TRAP,
        "select set_config('search_path', 'pg_temp', false)",
        "set default_transaction_read_only = on",
        "declare held cursor with hold for select 1",
        "select pg_advisory_lock(5)",
    ],
)
async def test_the_next_job_in_the_session_has_its_effect_where_it_belongs(database_url: str, statement: str) -> None:
    job = job_with(PerAccount(insert), name="next")
    async with session_on(database_url) as session, database_on(database_url, size=1) as database:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a"])
        await run(database, statement)
        async with database.session() as lent:
            await runner_of(job).run(lent, batch_of(occurrence, "a"))
            assert await lent.fetchval("select count(*) from pg_cursors where is_holdable") == 0
        assert await effects(session) == ["a", "left"]
        assert await session.fetchval("select pg_try_advisory_lock(5)")


async def test_a_session_whose_statements_are_gone_is_given_up_and_nobody_is_charged(database_url: str) -> None:
    job = job_with(PerAccount(insert), name="next")
    async with session_on(database_url) as session, database_on(database_url, size=1) as database:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a"])
        async with database.session() as lent:
            # The driver now has the start's statement prepared.
            await runner_of(job).run(lent, batch_of(occurrence, "nobody"))
            await lent.execute(HIDDEN)
        with pytest.raises(StatementsGone) as gone:
            async with database.session() as lent:
                await runner_of(job).run(lent, batch_of(occurrence, "a"))
        assert is_transient(gone.value)
        async with database.session() as lent:
            await runner_of(job).run(lent, batch_of(occurrence, "a"))
        row = (await ledger(session, occurrence.id))["a"]
        assert (row["state"], row["attempts"], await effects(session)) == ("succeeded", 1, ["a"])
