"""An account source can read what its job's role may, and do nothing else, under a least-privileged trigger."""

from collections.abc import AsyncIterator

import pytest

from shared.job import Job, SqlAccounts
from shared.postgres import Database, Session
from tests.integration.trigger.support import claimed, fanned_out, job_at
from tests.support.ledger import database_on, ledger, occurrence_row
from tests.support.logins import NAMES, as_login, grant_rights, group_of, make_logins
from tests.support.servers import unique_name
from trigger.database_roles import plan_for, prepare_roles
from trigger.fan_out import FanOutEnd
from trigger.source_roles import SourceRoles


@pytest.fixture
async def own_role(session: Session) -> AsyncIterator[str]:
    """A job's role that may read the table `account`; the trigger's group may not, and may take the role."""
    role = unique_name()
    await make_logins(session)
    await grant_rights(session, {})
    job = job_at(accounts=SqlAccounts("select 1", role=role))
    assert (await prepare_roles(session, plan_for(NAMES, {job.name: job}))).asked == []
    await session.execute(
        f"create table account (id text); insert into account values ('a'), ('b'); create sequence numbers;"
        f"create table other (id text); create schema own authorization {role};"
        f"revoke all on account, other from {group_of('trigger')}; grant select on account to {role};"
        f"grant usage on sequence numbers to {role}; grant insert on account to {role}"
    )
    yield role
    await session.execute(f"drop owned by {role}; drop role {role}")


async def ended(database_url: str, session: Session, job: Job) -> tuple[FanOutEnd, str, list[str]]:
    """Fan out as the trigger's login; give the end, what was recorded of a failure, and the accounts."""
    claim = await claimed(session, job)
    async with database_on(as_login(database_url, "trigger"), size=2) as database:
        end = await fanned_out(database, job, claim)
        assert await role_of_pool(database) == "none", "no role stays with a pooled connection"
    row = await occurrence_row(session, claim.id)
    return end, str(row["fan_out_error"]), sorted(await ledger(session, claim.id))


async def role_of_pool(database: Database) -> str:
    async with database.session() as pooled:
        return str(await pooled.fetchval("select current_setting('role')"))


async def test_it_reads_what_its_role_may_and_the_trigger_may_not(
    database_url: str, session: Session, own_role: str
) -> None:
    query = "select id as account from account"
    job = job_at(name="in-its-role", accounts=SqlAccounts(query, role=own_role, page_size=1))
    assert await ended(database_url, session, job) == (FanOutEnd.SEALED, "None", ["a", "b"])
    as_trigger = job_at(name="as-trigger", accounts=SqlAccounts(query))
    end, problem, accounts = await ended(database_url, session, as_trigger)
    assert (end, accounts) == (FanOutEnd.FAILED, [])
    assert "permission denied for table account" in problem


REFUSED = {
    "select id as account from other": "permission denied for table other",
    "select account from matins.ledger": "permission denied for schema matins",
    "select nextval('numbers')::text as account": "read-only transaction",
    "with added as (insert into account values ('x') returning id) select id as account from added": "",
    "select set_config('transaction_read_only', 'off', true) as account": "must be set before any query",
    "select id as account from account) as page; delete from account; select * from (select id as account": "",
    "select set_config('role', 'none', true) as account": "has left its role",
    "select set_config('role', 'none', false) as account": "has left its role",
    "commit": "gives no column `account`",
    "select pg_read_file('/etc/hostname') as account": "permission denied for function",
}


@pytest.mark.parametrize("query", REFUSED)
async def test_nothing_else_is_in_its_reach(database_url: str, session: Session, own_role: str, query: str) -> None:
    job = job_at(accounts=SqlAccounts(query, role=own_role))
    end, problem, accounts = await ended(database_url, session, job)
    assert (end, accounts) == (FanOutEnd.FAILED, [])
    assert REFUSED[query] in problem
    assert await session.fetchval("select count(*) from account") == 2


async def test_a_setting_that_a_source_leaves_behind_is_not_the_next_ones(
    database_url: str, session: Session, own_role: str
) -> None:
    query = "select id as account from account where set_config('search_path', 'own, public', false) is not null"
    job = job_at(accounts=SqlAccounts(query, role=own_role))
    claim = await claimed(session, job)
    async with database_on(as_login(database_url, "trigger"), size=1) as database:
        assert await fanned_out(database, job, claim) is FanOutEnd.SEALED
        async with database.session() as pooled:
            assert await pooled.fetchval("show search_path") == '"$user", public'


async def test_a_role_that_the_trigger_cannot_take_is_named_before_a_night(
    database_url: str, session: Session, own_role: str
) -> None:
    await session.execute(f"revoke {own_role} from {group_of('trigger')}")
    job = job_at(accounts=SqlAccounts("select id as account from account", role=own_role))
    roles = SourceRoles({job.name: job}, NAMES)
    async with database_on(as_login(database_url, "trigger"), size=1) as database, database.session() as looking:
        await roles.look(looking)
        assert roles.problem == f"role {own_role} cannot be taken: it is not granted (named by {job.name})"
        end, problem, _ = await ended(database_url, session, job)
        assert end is FanOutEnd.FAILED
        assert f'permission denied to set role "{own_role}"' in problem
        await session.execute(f"grant {own_role} to {group_of('trigger')}")
        await roles.look(looking)
        assert roles.problem is None
