"""Roles and rights at deploy time: by an owner who may make roles, by one who may not, and by hand from the script."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from schemas.privileges import TRIGGER, WORKER
from shared.job import PerAccount
from shared.migrate import migrate
from shared.postgres import Session
from shared.role_names import GROUPS, role_names
from tests.support.broker import topology_of
from tests.support.ledger import job_with, session_on
from tests.support.logins import PASSWORD, with_login
from tests.support.servers import execute, unique_name, with_path
from trigger.database_rights import excess, lack, wanted
from trigger.database_roles import MEMBERSHIPS, Plan, held_rights, plan_for, prepare_roles
from trigger.deploy import sql_script


async def nothing(call: object) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True)
class Site:
    """An empty database that belongs to a login which is no superuser; and names that no other test has."""

    administrator: Session
    owner_url: str
    mark: str

    def plan(self) -> Plan:
        """Give the plan for a job with a role, and one with a login."""
        names = role_names(",".join(f"{group}={self.mark}_{group[7:]}" for group in GROUPS))
        jobs = [
            job_with(PerAccount(nothing, role=f"{self.mark}_job"), name="in-a-role"),
            job_with(PerAccount(nothing, login=f"{self.mark}_login"), name="own"),
        ]
        return plan_for(names, {job.name: job for job in jobs})


@pytest.fixture
async def site(administrator_url: str) -> AsyncIterator[Site]:
    """Have a site meanwhile, closed to everybody but its owner."""
    mark = unique_name()
    owner, url = f"{mark}_owner", with_path(administrator_url, mark)
    await execute(administrator_url, f"create role {owner} login password '{PASSWORD}'")
    await execute(administrator_url, f"create database {mark} owner {owner}")
    await execute(administrator_url, f"revoke all on database {mark} from public")
    async with session_on(url) as administrator:
        yield Site(administrator, with_login(url, owner), mark)
    await execute(administrator_url, f"drop database {mark} with (force)")
    async with session_on(administrator_url) as session:
        # From PostgreSQL 16 on, who granted a membership goes after it.
        owner_last = "select rolname from pg_roles where rolname like $1 || '%' order by rolname = $2"
        for row in await session.fetch(owner_last, mark, owner):
            await session.execute(f"drop role {row['rolname']}")


async def assert_in_order(session: Session, site: Site) -> None:
    """See that every role has its rights, and may take what it must."""
    plan = site.plan()
    rights, held = wanted(plan.names, plan.own_logins), await held_rights(session)
    assert excess(held, rights, (*plan.all_roles, "public")) == []
    assert lack(held, rights) == []
    rows = await session.fetch(MEMBERSHIPS, list(plan.groups))
    assert {(row["role"], row["member"]) for row in rows if row["may_set"] and not row["inherits"]} == set(plan.taken)
    for role in (*plan.groups, *plan.own_logins):
        assert await session.fetchval("select has_database_privilege($1, current_database(), 'connect')", role)
    owned = "select count(*) from pg_class where relnamespace = 'matins'::regnamespace and relowner = $1::regrole"
    assert await session.fetchval(owned, plan.names.of(WORKER)) == 0
    assert (
        await session.fetchval("select job from matins.handler_login where login = $1", f"{site.mark}_login") == "own"
    )


async def test_an_owner_who_may_make_roles_makes_them_and_needs_nobody(site: Site) -> None:
    await site.administrator.execute(f"alter role {site.mark}_owner createrole")
    async with session_on(site.owner_url) as owner:
        await migrate(owner)
        prepared = await prepare_roles(owner, site.plan())
        assert prepared.asked == []
        await assert_in_order(owner, site)
        assert (await prepare_roles(owner, site.plan())).done == [], "the second time nothing is left to do"


async def test_an_owner_who_may_not_says_what_an_administrator_must_run(site: Site) -> None:
    async with session_on(site.owner_url) as owner:
        await migrate(owner)
        asked = (await prepare_roles(owner, site.plan())).asked
        assert f'create role "{site.mark}_trigger" nologin noinherit' in asked
        assert f'create role "{site.mark}_login" login' in asked
        assert len(asked) == 5 + len(site.plan().taken)
        for statement in asked:
            await site.administrator.execute(statement)
        prepared = await prepare_roles(owner, site.plan())
        assert prepared.asked == []
        await assert_in_order(owner, site)


async def test_the_script_makes_all_of_it_with_mapped_names_and_no_right_to_make_roles(site: Site) -> None:
    plan = site.plan()
    script = sql_script("test", topology_of(site.mark), plan)
    roles, _, rest = script.partition("begin;")
    await site.administrator.execute(roles)
    async with session_on(site.owner_url) as owner:
        # The owner may run the whole of it, once an administrator has made the roles.
        await owner.execute(roles + "begin;" + rest)
        await assert_in_order(owner, site)
        prepared = await prepare_roles(owner, plan)
        assert (prepared.done, prepared.asked) == ([], [])
    assert f'"{plan.names.of(TRIGGER)}"' in script
    assert TRIGGER not in script.replace("matins_trigger=", "")
