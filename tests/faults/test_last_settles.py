"""The last accounts of an occurrence settle in the same instant, in several workers: it is closed, and closed once."""

import asyncio
from contextlib import AsyncExitStack
from datetime import timedelta

import pytest

from shared.job import AccountCall, PerAccount
from tests.support.checker import assert_none, check
from tests.support.fleet import closed_state, deploy, prepared_for, running_publisher, running_worker, send
from tests.support.ledger import DUE, job_with, record_claims, running_occurrence, session_on

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ROUNDS = 50
WORKERS = 4
LAST = 20


async def test_an_occurrence_is_closed_once_when_its_last_accounts_settle_together(
    database_url: str, broker_url: str, prefix: str
) -> None:
    together = asyncio.Barrier(LAST)

    async def settle_together(call: AccountCall) -> None:
        await call.connection.execute("select 1")
        await together.wait()

    job = job_with(PerAccount(settle_together, concurrency=LAST))
    accounts = [f"a{number:02d}" for number in range(LAST)]
    prepared = [
        prepared_for("worker", [job], database_url, broker_url, prefix, prefetch="1", pool_size="24")
        for _ in range(WORKERS)
    ]
    await deploy(prepared[0])
    async with AsyncExitStack() as stack:
        publisher = await stack.enter_async_context(running_publisher(prepared[0]))
        session = await stack.enter_async_context(session_on(database_url))
        for one in prepared:
            await stack.enter_async_context(running_worker(one))
        for number in range(ROUNDS):
            occurrence = await running_occurrence(session, job, accounts, scheduled_at=DUE + timedelta(days=number))
            await record_claims(session)
            async with asyncio.TaskGroup() as sending:
                for account in accounts:
                    sending.create_task(send(publisher, prepared[0], job, occurrence, [account]))
            assert await closed_state(session, occurrence.id) == "succeeded"
        closings = await session.fetch(
            "select occurrence_id, count(*) as closed from matins.audit where kind = 'closed' group by occurrence_id"
        )
        assert [one["closed"] for one in closings] == [1] * ROUNDS
        assert_none(await check(session, broker_url, effect_table=None, at_rest=False))
