"""Reaching the database from the command line, and finding what a person names; near names are offered."""

import difflib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from schemas.occurrence import Identity, format_instant, parse_identity
from shared.migrate import check_schema, enter_environment
from shared.postgres import Row, Session, connect
from shared.settings import Settings
from shared.sql_files import statement
from shared.terminal import Refused
from shared.version import VERSION

KNOWN_JOBS = statement("trigger", "known_jobs")
NEAREST_INSTANTS = statement("trigger", "nearest_instants")
FIND_OCCURRENCE = statement("trigger", "find_occurrence")

# The share of a name that must be alike before it is offered for another.
NEAR = 0.6
MOST_NEAR = 3
MOST_NAMED = 5


@asynccontextmanager
async def reach(settings: Settings) -> AsyncIterator[Session]:
    """Connect, and see that the schema is current and, where the environment is set, that the database is its.

    Raises DatabaseUnavailable, SchemaBehind or WrongEnvironment.
    """
    session = await connect(
        settings.secret("database_url"),
        name=f"matins command {VERSION}",
        timeout=settings.database_timeout,
        statement_cache_size=settings.statement_cache_size,
    )
    try:
        await check_schema(session)
        if settings.environment:
            await enter_environment(session, settings.environment, create=False)
        yield session
    finally:
        await session.close()


def read_identity(text: str) -> Identity:
    """Read an occurrence's written form. Raises Refused with the form that is right."""
    try:
        return parse_identity(text)
    except ValueError as error:
        raise Refused(str(error)) from error


async def require_job(session: Session, name: str) -> None:
    """See that the database knows a job. Raises Refused with the nearest names."""
    known = await known_jobs(session)
    if name not in known:
        raise Refused(unknown_job(name, known))


async def known_jobs(session: Session) -> list[str]:
    """Give the name of every job that the database knows."""
    return [row["name"] for row in await session.fetch(KNOWN_JOBS)]


def unknown_job(name: str, known: list[str]) -> str:
    """Say that there is no such job, and which names are near; if none is, which there are."""
    near = difflib.get_close_matches(name, known, MOST_NEAR, NEAR)
    if near:
        told = f"did you mean {' or '.join(near)}?"
    elif known:
        more = len(known) - MOST_NAMED
        told = f"known are {', '.join(known[:MOST_NAMED])}" + (f" and {more} more" if more > 0 else "")
    else:
        told = "no job is known"
    return f"there is no job {name[:80]!r}; {told}"


async def require_occurrence(session: Session, identity: Identity) -> Row:
    """Read an occurrence's row. Raises Refused with the nearest jobs or instants."""
    row = await session.fetchrow(FIND_OCCURRENCE, identity.job, identity.scheduled_at, identity.variant)
    if row is None:
        await require_job(session, identity.job)
        raise Refused(await not_on_the_plan(session, identity))
    return row


async def not_on_the_plan(session: Session, identity: Identity) -> str:
    """Say that there is no such occurrence, and which instants are near."""
    rows = await session.fetch(NEAREST_INSTANTS, identity.job, identity.scheduled_at)
    near = " and ".join(format_instant(row["scheduled_at"]) for row in rows)
    return f"{identity} is not on the plan" + (f"; nearest: {near}" if near else "")
