"""The manifest of rights is enough for every statement, no more than the statements need, and is what the server holds.

A new statement, table or column shows here first: see schemas/privileges.py.
"""

import re
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from schemas.privileges import ALL, READER, TABLES, TRIGGER, WORKER
from shared.postgres import DatabaseError, Session
from shared.role_names import GROUPS
from tests.support.ledger import DUE, session_on
from tests.support.logins import NAMES, grant_rights, make_logins
from tests.support.refusals import forbidden, refused, relations
from trigger.database_rights import Right, excess, grants, lack, quoted, revokes, wanted
from trigger.database_roles import held_rights

ROOT = Path(__file__).resolve().parents[2]
LOADED = re.compile(r'statement\("([\w.]+)", "(\w+)"\)')
# What only the owner's commands run.
OWNERS = ("deploy", "database_roles", "prune", "prune_audit", "forget", "queues")
# What a reader's commands run.
READERS = (
    "alerts",
    "maintenances",
    "show",
    "status",
    "attempts",
    "audit_trail",
    "verify_audit",
    "unchained_audit",
    "stats",
    "reach",
    "await_end",
    "backfills",
    "notifications",
    "doctor_database",
    "doctor_roles",
)
# What people and programs that sign in to the console need: a console that only shows, with a reader's login, does not.
SIGNING_IN = ("sessions", "signing_in")
# Run by both processes, but for these.
TRIGGERS_ALONE = {("shared", "take_lease"), ("shared", "release_leases")}
WORKERS_ALONE = {("shared", "advance_queue")}
# What only a job's own login runs.
HANDLERS_ALONE = {("worker", "start_as_login"), ("worker", "start_in_turn"), ("worker", "settle_as_login")}
# What the doctor reads of the roles, as migrate does.
ROLES = {("trigger", name) for name in ("handler_logins", "held_rights", "memberships", "role_facts")}
INLINE = (
    "select name, topology from matins.environment",
    "select version, checksum from matins.migration order by version",
)

Named = tuple[str, str]


def loaded(package: str, only: tuple[str, ...] = (), but: tuple[str, ...] = ()) -> set[Named]:
    """Give the statements that the modules of a package load."""
    return {
        (match[1], match[2])
        for path in ROOT.glob(f"{package}/*.py")
        if (not only or path.stem in only) and path.stem not in but
        for match in LOADED.finditer(path.read_text(encoding="utf-8"))
    }


STATEMENTS = {
    TRIGGER: (loaded("trigger", but=OWNERS) | loaded("trigger/console") | loaded("shared") | ROLES) - WORKERS_ALONE,
    WORKER: (loaded("worker") | loaded("shared")) - TRIGGERS_ALONE - HANDLERS_ALONE,
    READER: loaded("trigger", only=READERS)
    | loaded("trigger/console", but=SIGNING_IN)
    | loaded("shared", only=("differences",))
    | ROLES,
}


def texts(role: str) -> Iterator[tuple[str, str]]:
    """Give name and text of every statement that a role runs."""
    for package, name in sorted(STATEMENTS[role]):
        file = ROOT / package.replace(".", "/") / "sql" / f"{name}.sql"
        yield f"{package}/{name}", file.read_text(encoding="utf-8")
    yield from (("inline", text) for text in INLINE)


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """An administrator's session of a database with the manifest's rights."""
    async with session_on(database_url) as administrator:
        await administrator.execute("select matins.ensure_ledger_partition($1)", DUE)
        await make_logins(administrator)
        await grant_rights(administrator, {})
        yield administrator


async def prepare_all(session: Session, role: str) -> dict[str, str]:
    """Prepare every statement that a role runs; give the statements that explain them, by name."""
    explained = {}
    for number, (name, text) in enumerate(texts(role)):
        parameters = (await session.prepare(text)).get_parameters()
        await session.execute(f"prepare s{number} as {text.rstrip().removesuffix(';')}")
        arguments = f"({', '.join(['null'] * len(parameters))})" if parameters else ""
        explained[f"{number} {name}"] = f"explain execute s{number}{arguments}"
    return explained


@pytest.mark.parametrize("role", GROUPS)
async def test_each_role_may_run_its_statements(session: Session, role: str) -> None:
    explained = await prepare_all(session, role)
    await session.execute(f"set role {quoted(NAMES.of(role))}")
    problems = {name: problem for name, text in explained.items() if (problem := await refused(session, text))}
    assert problems == {}


@pytest.mark.parametrize("role", GROUPS)
async def test_each_right_is_needed_by_a_statement(session: Session, role: str) -> None:
    explained = await prepare_all(session, role)
    sources = {f"{number} {name}": text for number, (name, text) in enumerate(texts(role))}
    needless = []
    for right in wanted(NAMES):
        if right.grantee != NAMES.of(role) or right.kind != "table":
            continue
        await session.execute("; ".join(revokes([right])))
        await session.execute(f"set role {quoted(right.grantee)}")
        for name, text in explained.items():
            # A statement that doesn't name the table cannot need it.
            if f"matins.{right.name}" in sources[name] and await refused(session, text):
                break
        else:
            needless.append(right)
        await session.execute("reset role")
        await session.execute("; ".join(grants([right])))
    assert needless == []


@pytest.mark.parametrize("role", GROUPS)
async def test_each_role_is_refused_every_other_verb(session: Session, role: str) -> None:
    rows = await relations(session)
    assert {row["relation"] for row in rows} > {table for tables in TABLES.values() for table in tables}
    assert "ledger_2026_08" in {row["relation"] for row in rows}
    await session.execute(f"set role {quoted(NAMES.of(role))}")
    tried, done = 0, []
    for row in rows:
        for statement in forbidden(TABLES[role], row["relation"], row["columns"], is_sequence=row["is_sequence"]):
            tried += 1
            if not await refused(session, statement):
                done.append(statement)
    assert done == []
    assert tried > 250


@pytest.mark.parametrize("role", GROUPS)
async def test_each_role_is_refused_what_belongs_to_no_table(session: Session, role: str) -> None:
    others = [NAMES.of(group) for group in GROUPS if group != role]
    await session.execute(f"set session authorization {quoted(NAMES.of(role))}")
    statements = [
        "create table matins.mine ()",
        "create function matins.mine() returns void language sql as ''",
        "create schema mine",
        "drop schema matins cascade",
        "create role mine",
        "drop function matins.ensure_ledger_partition(timestamptz)",
        "create or replace function matins.ensure_ledger_partition(timestamptz) returns void language sql as ''",
        "copy matins.environment to program 'cat'",
        "select pg_read_file('/etc/hostname')",
        "set session_replication_role = replica",
        *(f"set role {quoted(other)}" for other in others),
    ]
    statements += ["select matins.settle('{}')", "select matins.start(1, clock_timestamp(), '{a}', 1)"]
    if role != WORKER:
        statements.append(f"select matins.open_own({', '.join(['null'] * 12)})")
    if role != TRIGGER:
        statements.append("select matins.ensure_ledger_partition(clock_timestamp())")
    assert [one for one in statements if not await refused(session, one)] == []


async def test_rights_that_are_too_many_are_revoked_and_missing_ones_granted_by_every_migrate(session: Session) -> None:
    worker = NAMES.of(WORKER)
    await session.execute(
        f"""grant delete, update on matins.ledger to {quoted(worker)};
            grant execute on function matins.ensure_ledger_partition(timestamptz) to public;
            grant create on schema matins to {quoted(worker)};
            grant select on matins.job_revision to {quoted(worker)} with grant option;
            set role {quoted(worker)};
            grant select on matins.job_revision to {quoted(NAMES.of(READER))};
            reset role;
            grant select on matins.ledger_2026_08 to {quoted(worker)};
            revoke update (result) on matins.ledger from {quoted(worker)};
            revoke insert on matins.audit from {quoted(worker)}"""
    )
    rights, groups = wanted(NAMES), [*map(NAMES.of, GROUPS), "public"]
    held = await held_rights(session)
    assert Right(worker, "table", "ledger", "delete") in excess(held, rights, groups)
    assert Right(worker, "table", "audit", "insert", "kind") in lack(held, rights)
    await grant_rights(session, {})
    held = await held_rights(session)
    assert (excess(held, rights, groups), lack(held, rights)) == ([], [])


def test_audit_entries_are_only_ever_added_and_no_verb_is_given_twice() -> None:
    for tables in TABLES.values():
        assert set(tables.get("audit", {})) <= {"select", "insert"}
        for verbs in tables.values():
            assert set(verbs) <= {"select", "insert", "update", "delete"}
            for columns in verbs.values():
                assert len(set(columns)) == len(columns)
    assert TABLES[READER] == {table: {"select": ALL} for table in TABLES[READER]}


async def test_nobody_without_a_right_on_the_ledger_can_keep_a_month_from_the_others(
    session: Session, database_url: str
) -> None:
    async with session_on(database_url) as stranger:
        await stranger.execute(f"set role {quoted(NAMES.of(READER))}")
        await stranger.execute("select pg_advisory_lock(hashtextextended('matins.ensure_ledger_partition', 0))")
        assert await refused(stranger, "lock table matins.ledger in share update exclusive mode")
        await session.execute("set statement_timeout = '5s'")
        await session.execute("select matins.ensure_ledger_partition('2027-03-15T00:00Z')")
    assert await session.fetchval("select to_regclass('matins.ledger_2027_03') is not null")


async def test_the_partitions_function_keeps_its_bounds_whatever_its_caller_sets(session: Session) -> None:
    await session.execute(f"set role {quoted(NAMES.of(TRIGGER))}")
    await session.execute("set datestyle = 'SQL, DMY'; set timezone = 'Asia/Kolkata'; set search_path = pg_temp")
    await session.execute("select matins.ensure_ledger_partition('2027-01-15T00:00Z')")
    await session.execute("reset role; set datestyle = 'ISO'; set timezone = 'UTC'")
    bounds = await session.fetchval(
        "select pg_get_expr(relpartbound, oid) from pg_class where oid = 'matins.ledger_2027_01'::regclass"
    )
    assert bounds == "FOR VALUES FROM ('2027-01-01 00:00:00+00') TO ('2027-02-01 00:00:00+00')"
    with pytest.raises(DatabaseError):
        await session.execute("create table matins.ledger_2027_01 ()")
