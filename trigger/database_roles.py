"""Making the database's roles and their rights follow the manifest: by migrate where it may, else by an administrator.

Roles belong to the whole cluster, and making them needs CREATEROLE, which no login of ours has to have. So each
statement is tried; what is refused is given back as text, for somebody who may. Rights on the schema's own objects are
its owner's to give: what is missing is granted, and what is too much is revoked, at every migrate.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from schemas.privileges import TRIGGER, WORKER
from shared.job import Job
from shared.job_roles import handler_login, handler_role, source_role
from shared.migrate import is_ahead, lock_migrations
from shared.postgres import DuplicateObject, InsufficientPrivilege, Session, UniqueViolation
from shared.role_names import GROUPS, RoleNames
from shared.sql_files import statement
from trigger.database_rights import PUBLIC, Right, everything_of, excess, grants, lack, quoted, revokes, wanted

HELD_RIGHTS = statement("trigger", "held_rights")
ROLE_FACTS = statement("trigger", "role_facts")
MEMBERSHIPS = statement("trigger", "memberships")
HANDLER_LOGINS = statement("trigger", "handler_logins")
CANNOT_CONNECT = statement("trigger", "cannot_connect")
RECORD_LOGINS = statement("trigger", "record_logins")


@dataclass(frozen=True, slots=True)
class Plan:
    """The roles that a deployment needs: groups, the jobs' own, and which of these each group may take.

    `logins` are pairs of a login and the job of `jobs` that it is for.
    """

    names: RoleNames
    job_roles: tuple[str, ...]
    taken: tuple[tuple[str, str], ...]
    logins: tuple[tuple[str, str], ...] = ()
    jobs: tuple[str, ...] = ()

    @property
    def groups(self) -> tuple[str, ...]:
        """The services' roles, of which their logins are members."""
        return tuple(self.names.of(group) for group in GROUPS)

    @property
    def own_logins(self) -> tuple[str, ...]:
        """The logins that jobs have for themselves, each once."""
        return tuple(dict.fromkeys(login for login, _ in self.logins))

    @property
    def all_roles(self) -> tuple[str, ...]:
        """Every role, each once."""
        return tuple(dict.fromkeys((*self.groups, *self.job_roles, *self.own_logins)))


@dataclass(slots=True)
class Prepared:
    """What was done, and what somebody with more rights must do: statements, without a semicolon."""

    done: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)


def plan_for(names: RoleNames, jobs: Mapping[str, Job]) -> Plan:
    """Give the roles that these jobs need."""
    by_worker = {names.of(role) for job in jobs.values() if (role := handler_role(job))}
    by_trigger = {names.of(role) for job in jobs.values() if (role := source_role(job))}
    taken = [(role, names.of(WORKER)) for role in sorted(by_worker)]
    taken += [(role, names.of(TRIGGER)) for role in sorted(by_trigger)]
    logins = [(names.of(login), name) for name, job in sorted(jobs.items()) if (login := handler_login(job))]
    own = {login for login, _ in logins}
    return Plan(names, tuple(sorted((by_worker | by_trigger) - own)), tuple(taken), tuple(logins), tuple(sorted(jobs)))


def creation(plan: Plan) -> dict[str, str]:
    """Give, by role, the statement that makes it. No group hands on what the jobs' roles may."""
    made = {group: f"create role {quoted(group)} nologin noinherit" for group in plan.groups}
    made |= {role: f"create role {quoted(role)} nologin" for role in plan.job_roles}
    # Without a password nobody can log in: that is for an administrator to set.
    return made | {login: f"create role {quoted(login)} login" for login in plan.own_logins}


def membership(role: str, member: str) -> str:
    """Write the grant by which `member` may take `role`, without having its rights otherwise; for any server."""
    grant = f"grant {quoted(role)} to {quoted(member)}"
    return (
        "do $$ begin if current_setting('server_version_num')::integer >= 160000\n"
        f"  then execute {_literal(f'{grant} with inherit false, set true')};\n"
        f"  else execute {_literal(grant)}; end if; end $$"
    )


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


async def prepare_roles(session: Session, plan: Plan) -> Prepared:
    """Make roles, memberships and rights follow the plan and the manifest, as far as this login may."""
    prepared = Prepared()
    async with session.transaction():
        await lock_migrations(session)
        existing = await _make_roles(session, plan, prepared)
        await _make_members(session, plan, existing, prepared)
        await _follow_manifest(session, plan, existing, prepared)
    return prepared


async def _make_roles(session: Session, plan: Plan, prepared: Prepared) -> frozenset[str]:
    existing = set()
    made = creation(plan)
    inherits = {row["name"]: row["inherits"] for row in await session.fetch(ROLE_FACTS, list(made))}
    for role, text in made.items():
        if role in inherits or await _tried(session, text, prepared):
            existing.add(role)
        if inherits.get(role) and role in plan.groups:
            await _tried(session, f"alter role {quoted(role)} noinherit", prepared)
    return frozenset(existing)


async def _make_members(session: Session, plan: Plan, existing: frozenset[str], prepared: Prepared) -> None:
    rows: list[Any] = await session.fetch(MEMBERSHIPS, list(plan.groups))
    held = {(row["role"], row["member"]) for row in rows if row["may_set"] and not row["inherits"]}
    for role, member in plan.taken:
        if (role, member) in held:
            continue
        if {role, member} <= existing:
            await _tried(session, membership(role, member), prepared)
        else:
            prepared.asked.append(membership(role, member))


async def _follow_manifest(session: Session, plan: Plan, existing: frozenset[str], prepared: Prepared) -> None:
    before = await handler_logins(session)
    await session.execute(
        RECORD_LOGINS, [login for login, _ in plan.logins], [job for _, job in plan.logins], list(plan.jobs)
    )
    logins = await handler_logins(session)
    existing |= {row["name"] for row in await session.fetch(ROLE_FACTS, list(logins))}
    rights = frozenset(one for one in wanted(plan.names, logins) if one.grantee in existing)
    # What a later release has granted, its services use, also while an earlier one is deployed again.
    theirs = [] if await is_ahead(session) else {*plan.groups, *before, *logins, PUBLIC}
    for text in revokes(excess(await held_rights(session), rights, theirs)):
        await _tried(session, text, prepared)
    for text in grants(lack(await held_rights(session), rights)):
        await _tried(session, text, prepared)
    for row in await session.fetch(CANNOT_CONNECT, list(existing)):
        if row["role"] not in plan.job_roles:
            await _tried(
                session, f"grant connect on database {quoted(row['database'])} to {quoted(row['role'])}", prepared
            )


async def handler_logins(session: Session) -> frozenset[str]:
    """Read the logins that jobs have for themselves."""
    return frozenset(row["login"] for row in await session.fetch(HANDLER_LOGINS))


async def held_rights(session: Session) -> list[Right]:
    """Read every right on the schema's objects that is held by another than the object's owner."""
    return [Right(*row) for row in await session.fetch(HELD_RIGHTS)]


async def _tried(session: Session, text: str, prepared: Prepared) -> bool:
    """Run a statement; one that is refused is asked for."""
    try:
        async with session.transaction():
            await session.execute(text)
    except InsufficientPrivilege:
        prepared.asked.append(text)
        return False
    except (DuplicateObject, UniqueViolation):
        # Another environment on this cluster has made the role meanwhile.
        return True
    prepared.done.append(text)
    return True


def roles_script(plan: Plan) -> str:
    """Give the statements that make what is missing of the roles; of a cluster that has them all, they ask no right."""
    parts = ["-- The roles. Without CREATEROLE, these statements pass once somebody else has made them."]
    for role, text in creation(plan).items():
        parts.append(f"do $$ begin if to_regrole({_literal(quoted(role))}) is null then\n    {text};\nend if; end $$;")
    for role, member in plan.taken:
        held = f"roleid = {_literal(quoted(role))}::regrole and member = {_literal(quoted(member))}::regrole"
        inner = membership(role, member).removeprefix("do $$ begin ").removesuffix(" end $$")
        parts.append(
            f"do $$ begin if not exists (select from pg_auth_members where {held}) then\n{inner}\nend if; end $$;"
        )
    return "\n".join(parts) + "\n"


def rights_script(plan: Plan) -> str:
    """Give the statements after which the groups' rights are those of the manifest, whatever they were."""
    parts = ["-- What each role may do, and nothing else."]
    connecting = ", ".join(map(quoted, (*plan.groups, *plan.own_logins)))
    parts.append(
        f"do $$ begin execute format('grant connect on database %I to {connecting}', current_database()); end $$;"
    )
    parts += [f"{text};" for text in _revoke_all((*plan.groups, *plan.own_logins))]
    parts += [f"{text};" for text in grants(wanted(plan.names, plan.own_logins))]
    for pair in plan.logins:
        values = ", ".join(map(_literal, pair))
        parts.append(f"insert into matins.handler_login (login, job) values ({values}) on conflict do nothing;")  # noqa: S608 - literals, quoted
    return "\n".join(parts) + "\n"


def _revoke_all(groups: Iterable[str]) -> list[str]:
    return [text for group in groups for text in everything_of(group)]
