"""Whatever a job's code does, its account ends, its neighbours don't pay for it, and the worker lives."""

import asyncio
import contextlib
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from shared.calls import AccountCall, Connection, RetryLater
from shared.job import Backoff, PerAccount
from shared.postgres import Session
from tests.support.fleet import (
    closed_state,
    deploy,
    prepared_for,
    running_publisher,
    running_worker,
    send,
    send_body,
    until,
)
from tests.support.ledger import job_with, ledger, running_occurrence, session_on

EFFECTS = "create table effect (id bigserial primary key, account text)"
INSERT = "insert into effect (account) values ($1)"
QUICK = Backoff(first=timedelta(milliseconds=10), limit=timedelta(milliseconds=10), jitter=0)
SQL = {
    "backend": "select pg_terminate_backend(pg_backend_pid())",
    "commits": "insert into effect (account) values ('commits'); commit;",
    "timeouts": "set local statement_timeout = 1",
    "encoding": "set client_encoding = 'SQL_ASCII'; set idle_in_transaction_session_timeout = 1",
    "forgets": "do $$ begin execute 'deallocate all'; end $$",
}
LEFT_RUNNING: set[asyncio.Task[Any]] = set()


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise ZeroDivisionError


async def leave_running(connection: Connection) -> None:
    # The worker ends the session, and with it this statement.
    with contextlib.suppress(Exception):
        await connection.fetch("select pg_sleep(20)")


async def misbehave(call: AccountCall) -> None:
    connection = call.connection
    await connection.execute(INSERT, call.account)
    match call.account:
        case "file":
            raise FileNotFoundError("invoice template is missing")
        case "refused":
            raise ConnectionRefusedError("http provider")
        case "arity":
            await connection.fetchval("select $1::integer + $2::integer", 1)
        case "unspeakable":
            raise Unspeakable
        case "number":
            raise RetryLater(after=30)  # type: ignore[arg-type]  # the mistake under test
        case "group":
            raise BaseExceptionGroup("several", [SystemExit(1), ValueError("x")])
        case "left running":
            LEFT_RUNNING.add(asyncio.create_task(leave_running(connection)))
            await anyio.lowlevel.checkpoint()
        case _:
            await connection.execute(SQL.get(call.account, "select 1"))


@pytest.mark.parametrize(
    ("account", "state", "error_class"),
    [
        ("file", "failed", "FileNotFoundError"),
        ("refused", "failed", "ConnectionRefusedError"),
        ("arity", "failed", "InterfaceError"),
        ("unspeakable", "failed", "Unspeakable"),
        ("number", "failed", "TypeError"),
        ("group", "failed", "BaseExceptionGroup"),
        ("backend", "dead", "killed_worker"),
        ("left running", "failed", "CommitFailed"),
        ("commits", "failed", "RuntimeError"),
        ("timeouts", "succeeded", None),
        ("encoding", "succeeded", None),
        ("forgets", "failed", "CommitFailed"),
    ],
)
@pytest.mark.timeout(90)
async def test_a_misbehaving_account_ends_and_its_neighbours_are_done_once(
    database_url: str, broker_url: str, prefix: str, account: str, state: str, error_class: str | None
) -> None:
    job = job_with(PerAccount(misbehave, chunk_size=3), backoff=QUICK, max_tries=2)
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix, delays="1", max_crashes="2")
    await deploy(prepared)
    accounts = ["a", account, "z"]
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, accounts)
        async with running_worker(prepared):
            await send(publisher, prepared, job, occurrence, accounts)
            assert await closed_state(session, occurrence.id) == ("succeeded" if state == "succeeded" else "partial")
        rows = await ledger(session, occurrence.id)
        assert (rows[account]["state"], rows[account]["error_class"]) == (state, error_class)
        assert [(rows[one]["state"], rows[one]["attempts"]) for one in ("a", "z")] == [("succeeded", 1)] * 2
        expected = sorted(["a", "z"] + ([account] if state == "succeeded" else []))
        assert await effects(session) == expected


async def test_a_role_that_is_not_granted_holds_the_job_and_charges_nobody(
    database_url: str, broker_url: str, prefix: str
) -> None:
    role = f"late_{prefix}"
    job = job_with(PerAccount(misbehave, role=role), name="in-a-role")
    neighbour = job_with(PerAccount(misbehave), name="neighbour")
    prepared = prepared_for("worker", [job, neighbour], database_url, broker_url, prefix)
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        held = await running_occurrence(session, job, ["a"])
        free = await running_occurrence(session, neighbour, ["b"])
        async with running_worker(prepared):
            await send(publisher, prepared, job, held, ["a"])
            await send(publisher, prepared, neighbour, free, ["b"])
            assert await closed_state(session, free.id) == "succeeded"
            row = (await ledger(session, held.id))["a"]
            assert (row["state"], row["attempts"], row["starts"]) == ("pending", 0, 0)
            await session.execute(f'create role "{role}"; grant insert on effect to "{role}"')
            await session.execute(f'grant usage on sequence effect_id_seq to "{role}"')
            assert await closed_state(session, held.id) == "succeeded"
        await session.execute(f'drop owned by "{role}"; drop role "{role}"')


async def test_messages_left_in_a_queue_that_the_job_has_moved_from_are_worked_on(
    database_url: str, broker_url: str, prefix: str
) -> None:
    moved = job_with(PerAccount(misbehave), name="moved", queue="new-queue")
    staying = job_with(PerAccount(misbehave), name="staying", queue="old-queue")
    prepared = prepared_for("worker", [moved, staying], database_url, broker_url, prefix)
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, moved, ["a"])
        before = job_with(PerAccount(misbehave), name="moved", queue="old-queue")
        async with running_worker(prepared):
            await send(publisher, prepared, before, occurrence, ["a"])
            assert await closed_state(session, occurrence.id) == "succeeded"


async def effects(session: Session) -> list[str]:
    return [row["account"] for row in await session.fetch("select account from effect order by account")]


async def test_a_forged_publish_time_proves_nothing(database_url: str, broker_url: str, prefix: str) -> None:
    job = job_with(PerAccount(misbehave))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    body = (
        b'{"version":1,"job":"invoice-run","occurrence_id":%d,"scheduled_at":"2026-08-25T02:00:00Z","generation":1,'
        b'"published_at":"%s","accounts":["a"]}'
    )
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a"])
        async with running_worker(prepared) as worker:
            for number, instant in ((99, b"0001-01-01T00:00:00+23:59"), (99, b"8000-01-01T00:00:00Z")):
                await send_body(publisher, prepared, job.queue, body % (number, instant))
            await send_body(publisher, prepared, job.queue, body % (occurrence.id, b"8000-01-01T00:00:00Z"))
            assert await closed_state(session, occurrence.id) == "succeeded"
            await send_body(publisher, prepared, job.queue, body % (occurrence.id, b"8000-01-01T00:00:00Z"))

            async def noted() -> Any:
                await worker.beat_pass()
                return await session.fetchval("select started_through from matins.work_queue")

            assert await until(noted) is not None
            assert await session.fetchval("select started_through <= clock_timestamp() from matins.work_queue")
