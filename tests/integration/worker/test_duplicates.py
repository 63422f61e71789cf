"""Every message comes several times, in any order, and again when all is over: each account has one effect."""

import random
from contextlib import AsyncExitStack

from shared.calls import AccountCall, ChunkCall, Handled
from shared.job import PerAccount, SetBased
from tests.support.checker import assert_none, check, record_history
from tests.support.fleet import closed_state, deploy, prepared_for, running_publisher, running_worker, send, until
from tests.support.ledger import job_with, ledger, record_claims, running_occurrence, session_on
from tests.support.processes import TABLES

SEED = 20260825
COPIES = 3
CHUNK = 10
ACCOUNTS = [f"a{number:03d}" for number in range(60)]
EFFECT = "insert into effect (account, occurrence) select unnest($1::text[]), $2"


async def one(call: AccountCall) -> None:
    await call.connection.execute(EFFECT, [call.account], str(call.occurrence))


async def chunk(call: ChunkCall) -> Handled:
    await call.connection.execute(EFFECT, list(call.accounts), str(call.occurrence))
    return Handled(done=call.accounts)


async def test_three_copies_of_everything_in_any_order_have_one_effect_each(
    database_url: str, broker_url: str, prefix: str
) -> None:
    single = job_with(PerAccount(one), "single")
    chunks = job_with(SetBased(chunk, chunk_size=CHUNK), "chunks")
    prepared = prepared_for("worker", [single, chunks], database_url, broker_url, prefix)
    await deploy(prepared)
    async with AsyncExitStack() as stack:
        session = await stack.enter_async_context(session_on(database_url))
        publisher = await stack.enter_async_context(running_publisher(prepared))
        await session.execute(TABLES)
        await record_history(session)
        occurrences = {job.name: await running_occurrence(session, job, ACCOUNTS) for job in (single, chunks)}
        await record_claims(session)
        messages = [(single, [account]) for account in ACCOUNTS] * COPIES
        messages += [(chunks, ACCOUNTS[start : start + CHUNK]) for start in range(0, len(ACCOUNTS), CHUNK)] * COPIES
        random.Random(SEED).shuffle(messages)  # noqa: S311 - an order, and no secret
        for job, accounts in messages:
            await send(publisher, prepared, job, occurrences[job.name], accounts)
        for _ in range(2):
            await stack.enter_async_context(running_worker(prepared))
        for occurrence in occurrences.values():
            assert await closed_state(session, occurrence.id) == "succeeded"
        closed = {name: await ledger(session, occurrence.id) for name, occurrence in occurrences.items()}
        for _ in range(2):
            await send(publisher, prepared, single, occurrences["single"], ["a002"])
        queues = [prepared.topology.work_queue(job.queue) for job in (single, chunks)]

        async def empty() -> bool:
            depths = [await publisher.queue_depth(queue) for queue in queues]
            return all(depth is not None and depth.messages == 0 for depth in depths)

        await until(empty)
        for name, occurrence in occurrences.items():
            rows = await ledger(session, occurrence.id)
            assert rows == closed[name], "what comes after the end changes nothing"
            assert {row["attempts"] for row in rows.values()} == {1}
        assert_none(await check(session, broker_url, at_rest=False))
    async with session_on(database_url) as session:
        assert await session.fetchval("select count(*) from matins.audit where kind = 'closed'") == 2
