"""Occurrences of a job beside one another, with real processes: by account, and one that cancels the one before."""

from datetime import timedelta
from typing import Any

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import ledger
from tests.support.nights import count
from tests.support.processes import Deployment
from trigger.plan import plan_ahead
from trigger.register import register

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

HOUR = timedelta(hours=1)
ACCOUNTS = 1000
HELD = "a000500"
DECIDED = """
def beside(**more):
    kept = dict(catch_up_within=hours(20), start_within=minutes(10), finish_within=hours(3))
    return Decisions(**(kept | more))

FIRST, TWICE = {first}, Cron("0 {first},{second} * * *")
# What is held is not to be cut off meanwhile, however slow the machine is.
HELD = minutes(3)
"""
BY_ACCOUNT_JOBS = """
def is_held(call):
    return call.account == "a000500" and call.occurrence.scheduled_at.hour == FIRST

async def row(call):
    await effect(call)
    if is_held(call):
        await call.connection.execute("select pg_advisory_xact_lock_shared(4711)")

async def call_out(call):
    while is_held(call) and not (HERE / "go").exists():
        await anyio.sleep(0.02)

EACH = beside(catch_up="all", catch_up_at_most=9, catch_up_pace=seconds(0), overlap="allow", overlap_by="account")
jobs = [
    nightly("rows", PerAccount(row, timeout=HELD), schedule=TWICE, decisions=EACH),
    nightly("calls", Outside(call_out, timeout=HELD, key_valid_for=hours(24)), schedule=TWICE, decisions=EACH),
]
"""
CANCELLING_JOBS = """
async def row(call):
    await effect(call)
    if call.occurrence.scheduled_at.hour == FIRST:
        await call.connection.execute("select pg_advisory_xact_lock_shared(4711)")

NEWEST = beside(catch_up="latest", overlap="cancel_previous")
jobs = [nightly("rows", PerAccount(row, timeout=HELD, concurrency=4), schedule=TWICE, decisions=NEWEST)]
"""


async def deploy_two(deployed: Deployment, session: Session, text: str, accounts: int) -> None:
    """Deploy jobs that have been due twice: at the night, and an hour before."""
    first, second = (deployed.night - HOUR).hour, deployed.night.hour
    deployed.declare(DECIDED.format(first=first, second=second) + text)
    await deployed.deploy(accounts, fall=False)
    before = deployed.night - HOUR - timedelta(minutes=1)
    for job in deployed.jobs:
        await register(session, job, instance="deployed", now=before)
        await plan_ahead(session, job, 1, now=before)


async def occurrences(session: Session, job: str) -> list[Any]:
    """Give the two that are due, in order."""
    rows: list[Any] = await session.fetch(
        """select * from matins.occurrence where job = $1 and scheduled_at <= clock_timestamp()
            order by scheduled_at""",
        job,
    )
    return rows


async def done(session: Session, occurrence: Any) -> int:
    """Count the accounts of an occurrence that have succeeded."""
    return await count(
        session,
        "select count(*) from matins.ledger where occurrence_id = $1 and state = 'succeeded'",
        occurrence["id"],
    )


async def test_the_next_starts_for_all_accounts_but_the_one_that_still_runs_in_the_one_before(
    deployed: Deployment, session: Session
) -> None:
    await deploy_two(deployed, session, BY_ACCOUNT_JOBS, ACCOUNTS)
    await session.execute("select pg_advisory_lock(4711)")
    deployed.start("trigger")
    worker = deployed.start("worker")

    async def all_but_one() -> bool:
        found = [one for job in ("rows", "calls") for one in await occurrences(session, job)]
        return [await done(session, one) for one in found] == [ACCOUNTS - 1] * 4

    await until(all_but_one)
    for job in ("rows", "calls"):
        before, after = await occurrences(session, job)
        assert (before["state"], after["state"]) == ("running", "running")
        assert (await ledger(session, after["id"]))[HELD]["attempts"] == 0, "it waits, and nothing is charged for it"

    # Its worker dies: whoever runs the account next runs it in the first occurrence, and then in the second.
    worker.kill()
    deployed.start("worker")
    await session.execute("select pg_advisory_unlock(4711)")
    (deployed.folder / "go").touch()

    async def all_closed() -> bool:
        return await count(session, "select count(*) from matins.occurrence where state = 'succeeded'") == 4

    await until(all_closed)
    for job in ("rows", "calls"):
        before, after = await occurrences(session, job)
        first, second = [(await ledger(session, one["id"])) for one in (before, after)]
        assert first[HELD]["finished_at"] <= second[HELD]["started_at"]
        again = [dict(row) for row in (*first.values(), *second.values()) if row["attempts"] != 1]
        assert again == [], job


async def test_the_one_before_is_cancelled_and_the_next_starts_only_when_it_is_over(
    deployed: Deployment, session: Session
) -> None:
    await deploy_two(deployed, session, CANCELLING_JOBS, 200)
    # The second is not due yet: it is as if another definition had taken it back.
    superseded = "update matins.occurrence set state = $2, reason = $3 where scheduled_at = $1"
    await session.execute(superseded, deployed.night, "skipped", "superseded")
    await session.execute("select pg_advisory_lock(4711)")
    deployed.start("trigger")
    deployed.start("trigger")
    deployed.start("worker")
    [first] = await until(lambda: occurrences_claimed(session))

    async def four_at_work() -> bool:
        query = "select count(*) from pg_locks where locktype = 'advisory' and objid = 4711 and not granted"
        return await count(session, query) == 4

    await until(four_at_work)
    await session.execute(superseded, deployed.night, "expected", None)

    async def the_rest_is_cancelled() -> bool:
        rows = await ledger(session, first["id"])
        return len([row for row in rows.values() if row["state"] == "cancelled"]) == 196

    await until(the_rest_is_cancelled)
    before, after = await occurrences(session, "rows")
    assert (before["state"], before["ending"], after["state"]) == ("running", "cancel", "expected")
    assert after["waits_for"] == before["id"]
    await session.execute("select pg_advisory_unlock(4711)")

    async def over() -> bool:
        states = [one["state"] for one in await occurrences(session, "rows")]
        return states == ["cancelled", "succeeded"]

    await until(over)
    before, after = await occurrences(session, "rows")
    assert (before["succeeded"], before["cancelled"], after["succeeded"]) == (4, 196, 200)
    assert before["closed_at"] <= after["claimed_at"]
    assert before["reason"].startswith("cancel: cancel_previous: rows:")
    assert await count(session, "select count(*) from matins.audit where kind = 'cancel'") == 1


async def occurrences_claimed(session: Session) -> list[Any]:
    """Give those that were claimed."""
    rows: list[Any] = await session.fetch("select * from matins.occurrence where claimed_at is not null")
    return rows
