"""Least-privileged logins for the product's processes: this test run's own, since a cluster has roles in common.

They are made as a deployment makes them: the groups by what `migrate` does, and a login for each in its group.
"""

import secrets
import urllib.parse
from collections.abc import Mapping
from contextlib import suppress

import asyncpg

from shared.job import Job
from shared.postgres import Session
from shared.role_names import GROUPS, role_names
from tests.support.servers import execute, unique_name
from trigger.database_rights import quoted
from trigger.database_roles import creation, plan_for, prepare_roles

RUN = unique_name()
PASSWORD = secrets.token_hex(12)
MAPPED = ",".join(f"{group}={RUN}_{group.removeprefix('matins_')}" for group in GROUPS)
NAMES = role_names(MAPPED)
KINDS = tuple(group.removeprefix("matins_") for group in GROUPS)


def group_of(kind: str) -> str:
    """Give the group role of a kind of process: trigger, worker, reader."""
    return NAMES.of(f"matins_{kind}")


def login_of(kind: str) -> str:
    """Give the login of a kind of process."""
    return f"{RUN}_{kind}_login"


def as_login(url: str, kind: str) -> str:
    """Give an address with the login of a kind of process in it."""
    return with_login(url, login_of(kind))


def with_login(url: str, login: str) -> str:
    """Give an address with another login in it."""
    parts = urllib.parse.urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{login}:{PASSWORD}@{place}").geturl()


async def make_login(session: Session, login: str, group: str | None = None) -> None:
    """Make a login, in a group or in none, unless it is there."""
    member = f" in role {quoted(group)}" if group else ""
    with suppress(asyncpg.DuplicateObjectError):
        await session.execute(f"create role {quoted(login)} login password '{PASSWORD}'{member}")


async def make_logins(session: Session) -> None:
    """Make the groups and their logins, and let them use what a test's jobs use without roles of their own.

    Tables of the schema `public`, present or later, may be read by triggers, and written by workers.
    """
    for text in creation(plan_for(NAMES, {})).values():
        with suppress(asyncpg.DuplicateObjectError):
            await session.execute(text)
    for kind in KINDS:
        await make_login(session, login_of(kind), group_of(kind))
    for kind, verbs in (("trigger", "select"), ("worker", "select, insert, update, delete")):
        to = f"to {quoted(group_of(kind))}"
        await session.execute(
            f"grant {verbs} on all tables in schema public {to};"
            f"alter default privileges in schema public grant {verbs} on tables {to};"
            f"alter default privileges in schema public grant usage on sequences {to}"
        )


async def grant_rights(session: Session, jobs: Mapping[str, Job]) -> None:
    """Do what migrate does for the roles in a migrated database."""
    prepared = await prepare_roles(session, plan_for(NAMES, jobs))
    assert prepared.asked == []


async def drop_logins(administrator_url: str) -> None:
    """Remove the run's roles, where the databases in which they had rights are gone."""
    for role in (*map(login_of, KINDS), *map(group_of, KINDS)):
        with suppress(asyncpg.DependentObjectsStillExistError):
            await execute(administrator_url, f"drop role if exists {quoted(role)}")
