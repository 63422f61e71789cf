"""Whether the database's roles may do what their manifest says, no less and no more.

The login that the doctor runs as is judged by what it may really do, by whichever role it comes; triggers' and workers'
groups, and the jobs' own roles, by what was granted to each by name.
"""

from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from schemas.privileges import TRIGGER, WORKER
from shared.job import Job
from shared.postgres import InsufficientPrivilege, Session
from shared.role_names import GROUPS, RoleNames
from shared.sql_files import statement
from trigger.database_rights import PUBLIC, Right, excess, lack, told, wanted
from trigger.database_roles import MEMBERSHIPS, ROLE_FACTS, Plan, handler_logins, held_rights, plan_for
from trigger.doctor_finding import Finding, fail, ok, warn

OWN_ROLES = statement("trigger", "own_roles")
OWN_RIGHTS = statement("trigger", "own_rights")
TABLE_COLUMNS = statement("trigger", "table_columns")

POWERS = {
    "is_superuser": "is a superuser",
    "creates_roles": "may create roles",
    "creates_databases": "may create databases",
    "replicates": "may replicate",
    "bypasses_row_security": "bypasses row security",
}
MIGRATE = "run `python -m trigger migrate` as the owner of the schema"
ROLES = "docs/privileges.md says how roles and logins are made"


@dataclass(frozen=True, slots=True)
class Expected:
    """The plan of the jobs declared here, and the roles of jobs that only the database knows."""

    plan: Plan
    known: frozenset[str]

    def may_take(self, group: str) -> frozenset[str]:
        """Give the jobs' roles that a group may take."""
        mine = {role for role, member in self.plan.taken if member == group}
        return frozenset(mine | self.known if group in map(self.plan.names.of, (TRIGGER, WORKER)) else ())


def expected(names: RoleNames, declared: Mapping[str, Job], known: Iterable[Mapping[str, Any]]) -> Expected:
    """Give what the roles should be, for declared jobs and for those of the database's rows."""
    roles = {job["definition"].get("handler", {}).get(kind) for job in known for kind in ("role", "login")}
    return Expected(plan_for(names, declared), frozenset(names.of(role) for role in roles if role))


async def check_roles(session: Session, roles: Expected) -> AsyncIterator[Finding]:
    """Give the findings about the login that asks, then about every role by name."""
    troubles = [finding async for finding in _login(session, roles)]
    for finding in troubles:
        yield finding
    held, recorded = await held_rights(session), await _recorded(session, roles.plan)
    facts = {row["name"]: row for row in await session.fetch(ROLE_FACTS, [*roles.plan.all_roles, *recorded])}
    members: list[Any] = await session.fetch(MEMBERSHIPS, [*roles.plan.groups, *recorded, *roles.plan.own_logins])
    found = [
        *_missing(roles.plan, facts),
        *_powers(facts.values()),
        *_by_name(roles.plan, held, facts, recorded),
        *_members(roles, facts, members),
        *_logins(roles.plan, facts, recorded),
    ]
    for finding in found or [ok("roles", f"{', '.join(roles.plan.all_roles)} may do what they must, and no more")]:
        yield finding
    for finding in _strangers({*roles.plan.all_roles, *recorded, PUBLIC}, held):
        yield finding


async def _recorded(session: Session, plan: Plan) -> frozenset[str]:
    """Read whose login is whose; for a login that may not, which is told of it anyway, take the plan for the record."""
    try:
        return await handler_logins(session)
    except InsufficientPrivilege:
        return frozenset(plan.own_logins)


async def _login(session: Session, roles: Expected) -> AsyncIterator[Finding]:
    owned: list[Any] = await session.fetch(OWN_ROLES)
    login, names = owned[0]["name"], roles.plan.names
    if owned[0]["is_superuser"]:
        advice = f"give each service a login of its own in its group; {ROLES}"
        yield fail("login", f"{login} is a superuser, and may do everything", advice)
        return
    groups = [group for group in GROUPS if names.of(group) in {row["name"] for row in owned}]
    if not groups and any(row["owns"] for row in owned):
        advice = f"keep it for migrate and prune; look as each service's login; {ROLES}"
        yield fail("login", f"{login} owns objects of the schema, and may do everything with them", advice)
        return
    if len(groups) != 1:
        held = ", ".join(map(names.of, groups)) or "none"
        advice = f"make it a member of exactly one of {', '.join(roles.plan.groups)}"
        yield fail("login", f"{login} is a member of these groups: {held}", advice)
        return
    group, problems = names.of(groups[0]), []
    for row in owned:
        problems += [f"{row['name']} {power}" for name, power in POWERS.items() if row[name]]
        problems += [f"{row['name']} owns objects of the schema"] if row["owns"] else []
        if not (row["is_login"] or row["name"] == group or row["name"] in roles.may_take(group)):
            problems.append(f"it may take role {row['name']}, which is no job's")
    for problem in problems:
        yield fail("login", f"{login} can do more than {group}: {problem}", "take that from it")
    difference = [one async for one in _rights(session, names, group)]
    for finding in difference:
        yield replace(finding, found=f"{login} {finding.found}")
    if not (problems or difference):
        yield ok("login", f"{login} may do what {group} must, and no more")


async def _rights(session: Session, names: RoleNames, group: str) -> AsyncIterator[Finding]:
    columns = {row["name"]: row["columns"] for row in await session.fetch(TABLE_COLUMNS)}
    rights = frozenset(_by_column(columns, (one for one in wanted(names) if one.grantee == group)))
    held = [Right(group, *row) for row in await session.fetch(OWN_RIGHTS)]
    if more := excess(held, rights, [group]):
        yield fail("login", f"can do more than {group}: {told(more)}", MIGRATE)
    if less := lack(held, rights):
        yield fail("login", f"can do less than {group}: not {told(less)}", MIGRATE)


def _by_column(columns: Mapping[str, list[str]], rights: Iterable[Right]) -> Iterator[Right]:
    """Write a right on all of a table as one on each column, where the verb has columns."""
    for one in rights:
        if one.kind == "table" and not one.column and one.verb in {"select", "insert", "update"}:
            yield from (replace(one, column=column) for column in columns.get(one.name, ()))
        else:
            yield one


def _missing(plan: Plan, facts: Mapping[str, Any]) -> Iterator[Finding]:
    for role in plan.all_roles:
        if role not in facts:
            advice = "migrate with a login that may create roles, or apply what `migrate --sql` prints of it"
            yield fail("roles", f"role {role} does not exist", advice)


def _powers(facts: Iterable[Any]) -> Iterator[Finding]:
    for row in facts:
        for name, power in POWERS.items():
            if row[name]:
                yield fail("roles", f"{row['name']} {power}", f"alter role {row['name']} so that it does not")


def _by_name(plan: Plan, held: list[Right], facts: Mapping[str, Any], recorded: frozenset[str]) -> Iterator[Finding]:
    rights = wanted(plan.names, recorded)
    more = excess(held, rights, {*plan.all_roles, *recorded, PUBLIC})
    less = [one for one in lack(held, rights) if one.grantee in facts]
    for grantee in dict.fromkeys(one.grantee for one in more):
        theirs = told(one for one in more if one.grantee == grantee)
        yield fail("roles", f"{grantee} can do more than its manifest: {theirs}", MIGRATE)
    for grantee in dict.fromkeys(one.grantee for one in less):
        theirs = told(one for one in less if one.grantee == grantee)
        yield fail("roles", f"{grantee} can do less than its manifest: not {theirs}", MIGRATE)


def _members(roles: Expected, facts: Mapping[str, Any], members: list[Any]) -> Iterator[Finding]:
    held = {(row["role"], row["member"]): row for row in members}
    for role, member in roles.plan.taken:
        row = held.get((role, member))
        if role in facts and member in facts and (row is None or not row["may_set"]):
            yield fail("roles", f"{member} cannot take {role}", f"grant {role} to {member}")
        elif row is not None and row["inherits"]:
            told_of = f"{member} has the rights of {role} without taking it"
            yield fail(
                "roles", told_of, f"alter role {member} noinherit; from PostgreSQL 16 on, grant with inherit false"
            )
    for (role, member), row in held.items():
        if role not in roles.may_take(member):
            yield fail("roles", f"{member} may take role {role}, which is no job's", f"revoke {role} from {member}")
        elif row["hands_on"]:
            yield fail(
                "roles", f"{member} may hand role {role} on", f"revoke admin option for {role} from {member} cascade"
            )


def _logins(plan: Plan, facts: Mapping[str, Any], recorded: frozenset[str]) -> Iterator[Finding]:
    for login, job in plan.logins:
        if login not in recorded:
            yield fail("roles", f"login {login} is not recorded as that of job {job}", MIGRATE)
        elif login in facts and not facts[login]["can_login"]:
            yield fail(
                "roles", f"{login}, the login of job {job}, cannot log in", f"alter role {login} login password …"
            )


def _strangers(known: set[str], held: list[Right]) -> Iterator[Finding]:
    for grantee in sorted({one.grantee for one in held} - known):
        theirs = told(one for one in held if one.grantee == grantee)
        yield warn(
            "roles", f"{grantee}, which no manifest names, may {theirs}", f"revoke it, unless it is meant; {ROLES}"
        )
