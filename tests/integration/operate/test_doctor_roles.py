"""The doctor names each role that may do more than its manifest, or less."""

import re
from collections.abc import AsyncIterator, Mapping

import pytest

from shared.job import Job, PerAccount
from shared.postgres import Session
from shared.role_names import role_names
from tests.support.ledger import job_with, session_on
from tests.support.logins import PASSWORD, with_login
from tests.support.servers import unique_name
from trigger.database_rights import quoted
from trigger.database_roles import plan_for, prepare_roles
from trigger.doctor_finding import Finding
from trigger.doctor_roles import check_roles, expected


async def nothing(call: object) -> None:
    """Do nothing."""


class Place:
    """A database with roles of its own, and a login in each service's group."""

    def __init__(self, session: Session, url: str) -> None:
        self.session, self.url = session, url
        self.mark = unique_name()
        self.names = role_names(
            ",".join(f"matins_{kind}={self.mark}_{kind}" for kind in ("trigger", "worker", "reader"))
        )
        self.job_role = f"{self.mark}_job"
        self.jobs: Mapping[str, Job] = {"invoice-run": job_with(PerAccount(nothing, role=self.job_role))}

    def role(self, kind: str) -> str:
        """Give a role of the test's own."""
        return f"{self.mark}_{kind}"

    async def found(self, kind: str = "trigger") -> list[Finding]:
        """Examine as the login of a kind."""
        async with session_on(with_login(self.url, self.role(f"{kind}_login"))) as session:
            roles = expected(self.names, self.jobs, ())
            return [finding async for finding in check_roles(session, roles)]

    async def troubles(self, kind: str = "trigger") -> list[str]:
        """Give what is not well."""
        return [f"{one.check}: {one.found}" for one in await self.found(kind) if one.level != "ok"]


@pytest.fixture
async def place(database_url: str) -> AsyncIterator[Place]:
    """A migrated database whose roles are as they should be."""
    async with session_on(database_url) as session:
        made = Place(session, database_url)
        assert (await prepare_roles(session, plan_for(made.names, made.jobs))).asked == []
        logins = {kind: made.role(f"{kind}_login") for kind in ("trigger", "worker", "reader")}
        for kind, login in logins.items():
            await session.execute(f"create role {login} login password '{PASSWORD}' in role {made.role(kind)}")
        yield made
        everyone = ", ".join([*logins.values(), *map(made.names.of, made.names.mapped), made.job_role])
        await session.execute(f"drop owned by {everyone}; drop role {everyone}")


async def test_roles_in_order_have_no_troubles(place: Place) -> None:
    for kind in ("trigger", "worker", "reader"):
        assert await place.troubles(kind) == []
    assert [one.check for one in await place.found("worker")] == ["login", "roles"]


MORE = {
    "grant delete on matins.audit to {worker}": ("worker", "delete on matins.audit"),
    "grant update on matins.ledger to {trigger_login}": ("trigger", "update (account, occurrence_id, position"),
    "grant select on matins.job to public": ("worker", "public can do more than its manifest: select on matins.job"),
    "grant create on schema matins to {trigger}": ("trigger", "create on schema matins"),
    "grant {trigger} to {worker_login}": ("worker", "is a member of these groups: {trigger}, {worker}"),
    "grant pg_read_all_data to {worker_login}": ("worker", "it may take role pg_read_all_data, which is no job's"),
    "alter role {trigger_login} createrole": ("trigger", "{trigger_login} may create roles"),
    "alter role {worker_login} bypassrls": ("worker", "{worker_login} bypasses row security"),
    "alter role {job} createdb": ("trigger", "{job} may create databases"),
    "alter table matins.lease owner to {trigger}": ("trigger", "{trigger} owns objects of the schema"),
    "grant truncate on matins.ledger to {worker}": ("trigger", "{worker} can do more than its manifest: truncate"),
    "grant update on matins.ledger to {job}": ("trigger", "{job} can do more than its manifest: update"),
    "grant select on matins.ledger to {worker} with grant option": (
        "trigger",
        "{worker} can do more than its manifest: grant option for select on matins.ledger",
    ),
    "grant {job} to {worker} with admin option": ("trigger", "{worker} may hand role {job} on"),
    "grant {reader} to {worker}": ("trigger", "{worker} may take role {reader}, which is no job's"),
    "alter role {worker} superuser": ("trigger", "{worker} is a superuser"),
    "alter role {worker_login} superuser": ("worker", "{worker_login} is a superuser, and may do everything"),
    "grant execute on function matins.ensure_ledger_partition(timestamptz) to {worker}": (
        "worker",
        "execute on function matins.ensure_ledger_partition",
    ),
}
LESS = {
    "revoke insert on matins.audit from {worker}": ("trigger", "{worker} can do less than its manifest: not insert"),
    "revoke usage on schema matins from {trigger}": ("trigger", "not usage on schema matins"),
    "revoke {worker} from {worker_login}": ("worker", "is a member of these groups: none"),
    "revoke {job} from {worker}": ("trigger", "{worker} cannot take {job}"),
    "revoke update (epoch) on matins.ledger from {worker}": ("worker", "not update (epoch) on matins.ledger"),
}


@pytest.mark.parametrize("statement", [*MORE, *LESS])
async def test_more_or_less_than_the_manifest_is_named(place: Place, statement: str) -> None:
    kinds = ("trigger", "worker", "reader", "job", "trigger_login", "worker_login")
    named = {kind: place.role(kind) for kind in kinds}
    kind, expected_text = (MORE | LESS)[statement]
    await place.session.execute(statement.format_map(named))
    troubles = await place.troubles(kind)
    assert any(expected_text.format_map(named) in one for one in troubles), troubles


async def test_an_owner_of_the_schema_is_told_to_keep_to_migrate(place: Place) -> None:
    await place.session.execute(
        f"revoke {place.role('worker')} from {place.role('worker_login')};"
        f"alter table matins.lease owner to {place.role('worker_login')}"
    )
    (finding,) = [one for one in await place.found("worker") if one.check == "login"]
    assert (finding.level, "owns objects of the schema" in finding.found) == ("fail", True)
    assert "make it a member" not in finding.advice


async def test_who_may_not_read_the_record_of_logins_is_told_nothing_wrong_of_them(place: Place) -> None:
    own = job_with(PerAccount(nothing, login=f"{place.mark}_own"), name="own")
    place.jobs = {**place.jobs, "own": own}
    await prepare_roles(place.session, plan_for(place.names, place.jobs))
    await place.session.execute(f"revoke {place.role('worker')} from {place.role('worker_login')}")
    assert [one for one in await place.troubles("worker") if not one.startswith("login: ")] == []
    await place.session.execute(f"drop owned by {place.mark}_own; drop role {place.mark}_own")


async def test_of_many_columns_the_first_are_named(place: Place) -> None:
    await place.session.execute(f"grant update on matins.ledger to {place.role('reader_login')}")
    (told_of,) = [one for one in await place.troubles("reader") if one.startswith("login: ")]
    assert re.search(r"update \((\w+, ){4}\w+ and \d+ more\) on matins.ledger", told_of), told_of


async def test_a_role_that_is_missing_is_named(place: Place) -> None:
    place.jobs = {"other": job_with(PerAccount(nothing, role=f"{place.mark}_late"))}
    assert f"roles: role {place.mark}_late does not exist" in await place.troubles()


async def test_an_unnamed_role_with_rights_is_a_warning(place: Place, role: str) -> None:
    await place.session.execute(f"grant select on matins.ledger to {quoted(role)}")
    (finding,) = [one for one in await place.found() if one.level != "ok"]
    assert (finding.level, f"{role}, which no manifest names, may select on" in finding.found) == ("warn", True)
    await place.session.execute(f"drop owned by {quoted(role)}")
