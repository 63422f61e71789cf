"""Bringing a database to this release's schema: numbered files, forward only, one transaction each, under one lock.

Any number of processes may migrate at once: each takes the lock, sees what is applied, and applies what is not.
The running services never migrate unless told to; they wait until the schema is current.
"""

import hashlib
import re
from dataclasses import dataclass
from importlib import resources
from typing import Any

from shared import clock
from shared.errors import MatinsError
from shared.postgres import InsufficientPrivilege, InvalidSchema, Session, UndefinedTable

_FILE = re.compile(r"(\d{4})_([a-z0-9_]+)\.sql")
_LOCK = "select pg_advisory_xact_lock(hashtextextended('matins.migrate', 0))"
_BOOTSTRAP = """\
create schema if not exists matins;
create table if not exists matins.migration (
    version     integer primary key,
    name        text not null,
    checksum    text not null,
    applied_at  timestamptz not null default clock_timestamp(),
    duration_ms bigint not null
);"""

MIGRATE = "run `python -m trigger migrate`"
JOIN_A_GROUP = f"make it a member of its service's group, as docs/privileges.md says, and {MIGRATE}"

_RECORD = "insert into matins.migration (version, name, checksum, duration_ms) values ({}, '{}', '{}', 0);"


class FaultyMigration(MatinsError):
    """The database's schema is not one that these migrations made."""


class WrongEnvironment(MatinsError):
    """The database or the broker belongs to another environment."""


class SchemaBehind(MatinsError):
    """The database's schema is older than this release, or not to be read; `advice` says what to do about `problem`."""

    def __init__(self, problem: str, advice: str) -> None:
        super().__init__(f"{problem}: {advice}")
        self.problem, self.advice = problem, advice


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered file: its version, its name, its text and the text's SHA-256."""

    version: int
    name: str
    text: str
    checksum: str


def migrations() -> tuple[Migration, ...]:
    """Read the numbered files in order. Raises FaultyMigration for a gap in the numbers."""
    found = []
    for entry in resources.files("schemas").joinpath("migrations").iterdir():
        match = _FILE.fullmatch(entry.name)
        if match:
            text = entry.read_text(encoding="utf-8")
            found.append(Migration(int(match[1]), match[2], text, hashlib.sha256(text.encode()).hexdigest()))
    found.sort(key=lambda one: one.version)
    if [one.version for one in found] != list(range(1, len(found) + 1)):
        problem = f"the migrations' numbers have a gap or a repetition: {[one.version for one in found]}"
        raise FaultyMigration(problem)
    return tuple(found)


async def lock_migrations(session: Session) -> None:
    """Hold until the transaction's end what only one of several migrates may hold."""
    await session.execute(_LOCK)


def migration_script() -> str:
    """Give everything as one SQL text, for an administrator who applies it by hand to an empty database."""
    parts = ["begin;", _LOCK + ";", _BOOTSTRAP]
    for one in migrations():
        parts.append(f"-- {one.version:04d}_{one.name}\n{one.text}")
        parts.append(_RECORD.format(one.version, one.name, one.checksum))
    return "\n\n".join([*parts, "commit;\n"])


async def migrate(connection: Session, *, through: int | None = None) -> list[Migration]:
    """Apply what is missing, up to version `through` (by default the last one), and give what was applied.

    A database that is newer than this release knows is left as it is. Raises FaultyMigration when an applied file has
    changed.
    """
    applied: list[Migration] = []
    while True:
        async with connection.transaction():
            await lock_migrations(connection)
            await connection.execute(_BOOTSTRAP)
            following = _next(await _applied(connection), through)
            if following is None:
                return applied
            started = clock.monotonic()
            await connection.execute(following.text)
            await connection.execute(
                "insert into matins.migration (version, name, checksum, duration_ms) values ($1, $2, $3, $4)",
                following.version,
                following.name,
                following.checksum,
                round((clock.monotonic() - started) * 1000),
            )
        applied.append(following)


async def is_ahead(connection: Session) -> bool:
    """Tell whether a later release has migrated the database: its services may run beside this one's."""
    return any(version > len(migrations()) for version in await _applied(connection))


async def check_schema(connection: Session) -> None:
    """Raise SchemaBehind when migrate has not run for this release; a schema ahead of it is fine (expand first)."""
    known = migrations()
    try:
        applied = await _applied(connection)
    except (UndefinedTable, InvalidSchema) as error:
        raise SchemaBehind(f"the database has no schema of ours ({type(error).__name__})", MIGRATE) from error
    except InsufficientPrivilege as error:
        raise SchemaBehind(f"the database's login may not read our schema ({error})", JOIN_A_GROUP) from error
    missing = [f"{one.version:04d}_{one.name}" for one in known if one.version not in applied]
    if missing:
        raise SchemaBehind(f"the database lacks {', '.join(missing)}", MIGRATE)


async def enter_environment(connection: Session, name: str, *, create: bool) -> None:
    """Check that the database belongs to environment `name`; with `create`, an unnamed one becomes its.

    Raises WrongEnvironment otherwise.
    """
    if create:
        await connection.execute("insert into matins.environment (name) values ($1) on conflict do nothing", name)
    stored = await connection.fetchval("select name from matins.environment")
    if stored != name:
        problem = f"this process belongs to environment {name!r}, the database to {stored!r}: refusing to touch it"
        raise WrongEnvironment(problem)


async def _applied(connection: Session) -> dict[int, str]:
    rows: list[Any] = await connection.fetch("select version, checksum from matins.migration order by version")
    return {row["version"]: row["checksum"] for row in rows}


def _next(applied: dict[int, str], through: int | None) -> Migration | None:
    for one in migrations():
        stored = applied.get(one.version)
        if stored is None:
            return one if through is None or one.version <= through else None
        if stored != one.checksum:
            problem = f"migration {one.version:04d}_{one.name} was applied with another text than this release has"
            raise FaultyMigration(problem)
    return None
