"""What a handler's role is worth: a guard against mistakes. SQL can leave it, and is then the worker's own login."""

from collections.abc import AsyncIterator

import pytest

from shared.calls import AccountCall
from shared.job import PerAccount
from shared.postgres import Session
from tests.integration.worker.test_handler_login import batch_of, runner_of
from tests.support.ledger import database_on, job_with, ledger, running_occurrence, session_on
from tests.support.logins import NAMES, as_login, grant_rights, make_logins
from tests.support.refusals import refused
from tests.support.servers import unique_name
from trigger.database_roles import plan_for, prepare_roles


@pytest.fixture
async def own_role(database_url: str) -> AsyncIterator[str]:
    """A job's role, which the worker's group may take."""
    role = unique_name()
    async with session_on(database_url) as session:
        await make_logins(session)
        await grant_rights(session, {})
        job = job_with(PerAccount(escape, role=role))
        assert (await prepare_roles(session, plan_for(NAMES, {job.name: job}))).asked == []
        await session.execute("create table seen (account text, role text); grant insert on seen to public")
        yield role
        await session.execute(f"drop owned by {role}; drop role {role}")


async def escape(call: AccountCall) -> None:
    kind = call.account.partition("-")[0]
    if kind == "reset":
        await call.connection.execute("reset role")
    if kind == "commit":
        await call.connection.execute("commit")
    if kind in {"hidden", "session"}:
        await call.connection.execute("select set_config('role', 'none', $1)", kind == "hidden")
        await call.connection.execute("update matins.ledger set error = 'touched' where account = 'z'")
    await call.connection.execute("insert into seen values ($1, current_user)", call.account)


async def seen(session: Session) -> dict[str, str]:
    return {row["account"]: row["role"] for row in await session.fetch("select account, role from seen")}


async def test_leaving_the_role_openly_is_refused_and_hidden_is_the_workers_own_login(
    database_url: str, own_role: str
) -> None:
    job = job_with(PerAccount(escape, role=own_role, chunk_size=10), max_tries=1)
    accounts = ("a", "commit-1", "hidden-1", "n", "reset-1", "session-1", "z")
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, job, accounts)
        async with database_on(as_login(database_url, "worker"), size=1) as database:
            async with database.session() as lent:
                await runner_of(job).run(lent, batch_of(occurrence, *accounts))
            async with database.session() as lent:
                assert await lent.fetchval("select current_setting('role')") == "none"
        rows = await ledger(session, occurrence.id)
        users = await seen(session)
    states = {account: rows[account]["state"] for account in accounts}
    good = dict.fromkeys(("a", "hidden-1", "n", "session-1", "z"), "succeeded")
    assert states == good | dict.fromkeys(("commit-1", "reset-1"), "failed")
    assert "is not for a handler" in rows["reset-1"]["error"]
    worker = as_login("//x", "worker").removeprefix("//").partition(":")[0]
    # The guard's end: what the worker's login may, the hidden escape may. The next account is in its role again.
    assert users == {"a": own_role, "hidden-1": worker, "n": own_role, "session-1": worker, "z": own_role}


async def test_out_of_its_role_a_handler_still_is_no_owner(database_url: str, own_role: str) -> None:
    async with session_on(as_login(database_url, "worker")) as session:
        statements = [
            "drop table matins.ledger",
            "delete from matins.audit",
            "update matins.audit set actor = 'nobody'",
            "update matins.ledger set account = 'other'",
            "update matins.ledger set key_salt = 'new'",
            "delete from matins.ledger",
            "create function matins.mine() returns void language sql as ''",
            "alter table matins.ledger disable trigger all",
            f"alter role {own_role} superuser",
        ]
        assert [one for one in statements if not await refused(session, one)] == []
