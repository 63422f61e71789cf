from datetime import timedelta
from typing import Any

import anyio
import orjson

from shared.calls import AccountCall, GiveUp, Json, OutsideCall
from shared.closing import close_and_tell
from shared.job import Backoff, Outside, PerAccount, hours
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
from tests.support.ledger import job_with, ledger, occurrence_row, running_occurrence, session_on

EFFECTS = "create table effect (id bigserial primary key, account text)"
QUICK = Backoff(first=timedelta(milliseconds=10), limit=timedelta(milliseconds=10), jitter=0)


async def insert(call: AccountCall) -> None:
    await call.connection.execute("insert into effect (account) values ($1)", call.account)
    if call.account.startswith("twice") and call.attempt < 3:
        message = "not yet"
        raise ValueError(message)
    if call.account.startswith("never"):
        message = "no tax id"
        raise GiveUp(message)


async def count(session: Session) -> int:
    return int(await session.fetchval("select count(*) from effect"))


async def test_a_night_of_single_messages_with_retries_and_failures(
    database_url: str, broker_url: str, prefix: str
) -> None:
    job = job_with(PerAccount(insert), backoff=QUICK)
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix, delays="1,2")
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        accounts = ["a", "b", "twice", "never"]
        occurrence = await running_occurrence(session, job, accounts)
        async with running_worker(prepared):
            for account in [*accounts, "a", "a"]:
                await send(publisher, prepared, job, occurrence, [account])
            assert await closed_state(session, occurrence.id) == "partial"
        row = await occurrence_row(session, occurrence.id)
        assert (row["total"], row["succeeded"], row["failed"]) == (4, 3, 1)
        report = row["report"]
        assert report["retries"] == 2
        assert [(one["error_class"], one["examples"]) for one in report["error_classes"]] == [("GiveUp", ["never"])]
        assert await count(session) == 3


async def test_batched_messages_share_transactions_and_each_account_stands_alone(
    database_url: str, broker_url: str, prefix: str
) -> None:
    job = job_with(PerAccount(insert, settle="batched", concurrency=2))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    accounts = [f"a{number:03}" for number in range(120)] + ["never"]
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, accounts)
        for account in accounts:
            await send(publisher, prepared, job, occurrence, [account])
        async with running_worker(prepared):
            assert await closed_state(session, occurrence.id) == "partial"
        assert await count(session) == 120


async def test_messages_that_no_one_can_run_end_where_they_belong(
    database_url: str, broker_url: str, prefix: str
) -> None:
    job = job_with(PerAccount(insert))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix, delays="1")
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a"])
        async with running_worker(prepared):
            await send_body(publisher, prepared, job.queue, b"not json")
            await send_body(publisher, prepared, job.queue, b'{"version": 1}')
            await send_body(publisher, prepared, job.queue, b"[" * 20_000)
            await send(publisher, prepared, job, occurrence, ["forged"])
            other = job_with(PerAccount(insert), name="other-job", queue=job.queue)
            await send(publisher, prepared, other, occurrence, ["a"])
            newer = {"version": 2, "accounts": ["a"]}
            await send_body(publisher, prepared, job.queue, orjson.dumps(newer))
            await send(publisher, prepared, job, occurrence, ["a"], generation=2)
            await send(publisher, prepared, job, occurrence, ["a"])
            assert await closed_state(session, occurrence.id) == "succeeded"
            parked = prepared.topology.parked_queue

            async def parked_messages() -> bool:
                depth = await publisher.queue_depth(parked)
                return depth is not None and depth.messages == 3

            await until(parked_messages)

            async def accounted_for() -> bool:
                depth = await publisher.queue_depth(prepared.topology.accounted_queue)
                return depth is not None and depth.messages == 0

            await until(accounted_for)
        assert await count(session) == 1
        # Another worker's code, and a newer version, are handed on for as long as nobody reads them.
        waiting = [
            await publisher.queue_depth(name)
            for name in (prepared.topology.work_queue(job.queue), prepared.topology.delay_exchange(1))
        ]
        assert sum(depth.messages for depth in waiting if depth is not None) == 2


async def test_a_suspect_account_is_started_in_the_ledger_and_after_its_last_start_it_is_dead(
    database_url: str, broker_url: str, prefix: str
) -> None:
    job = job_with(PerAccount(insert))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix, max_crashes="2")
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["killer", "neighbour"])
        await session.execute("update matins.ledger set starts = 2, epoch = 5 where account = 'killer'")
        async with running_worker(prepared):
            await send(publisher, prepared, job, occurrence, ["killer"], isolated=True)
            await send(publisher, prepared, job, occurrence, ["neighbour"], isolated=True)
            assert await closed_state(session, occurrence.id) == "partial"
        rows = await ledger(session, occurrence.id)
        assert (rows["killer"]["state"], rows["killer"]["error_class"]) == ("dead", "killed_worker")
        assert (rows["neighbour"]["state"], rows["neighbour"]["starts"]) == ("succeeded", 0)
        depth = await publisher.queue_depth(prepared.topology.parked_queue)
        assert depth is not None
        assert depth.messages == 1


async def test_a_chunk_that_was_delivered_before_is_split_into_isolated_messages(
    database_url: str, broker_url: str, prefix: str
) -> None:
    job = job_with(PerAccount(insert, chunk_size=3))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a", "b", "c"])
        async with running_worker(prepared):
            await send(publisher, prepared, job, occurrence, ["a", "b", "c"], isolated=True)
            assert await closed_state(session, occurrence.id) == "succeeded"
        rows = await ledger(session, occurrence.id)
        assert [row["isolated"] for row in rows.values()] == [True] * 3


async def test_outside_calls_keep_their_key_their_result_and_their_lease(
    database_url: str, broker_url: str, prefix: str
) -> None:
    calls: list[tuple[str, str, int]] = []

    async def charge(call: OutsideCall) -> Json:
        calls.append((call.account, call.key, call.attempt))
        if call.account == "twice" and call.attempt == 1:
            message = "busy"
            raise ValueError(message)
        if call.account == "slow":
            await anyio.sleep(1.2)
        if call.account == "huge":
            return "x" * 5000
        return {"receipt": call.account}

    job = job_with(Outside(charge, key_valid_for=hours(24)), backoff=QUICK, max_tries=2)
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix, delays="1", outside_lease="600ms")
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        occurrence = await running_occurrence(session, job, ["a", "twice", "slow", "huge"])
        async with running_worker(prepared):
            for account in ["a", "twice", "slow", "huge", "slow"]:
                await send(publisher, prepared, job, occurrence, [account])
            assert await closed_state(session, occurrence.id) == "partial"
        rows = await ledger(session, occurrence.id)
        assert {account: row["state"] for account, row in rows.items()} == {
            "a": "succeeded",
            "huge": "failed",
            "slow": "succeeded",
            "twice": "succeeded",
        }
        assert rows["a"]["result"] == {"receipt": "a"}
        assert "4096" in rows["huge"]["error"]
        assert len({key for account, key, _ in calls if account == "twice"}) == 1
        assert sum(account == "slow" for account, _, _ in calls) == 1


async def test_a_fenced_outside_call_changes_nothing(database_url: str, broker_url: str, prefix: str) -> None:
    entered, go_on = anyio.Event(), anyio.Event()

    async def charge(call: OutsideCall) -> Json:
        entered.set()
        await go_on.wait()
        return "late"

    job = job_with(Outside(charge, key_valid_for=hours(24)))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        occurrence = await running_occurrence(session, job, ["a"])
        async with running_worker(prepared):
            await send(publisher, prepared, job, occurrence, ["a"])
            await entered.wait()
            await session.execute(
                "update matins.ledger set state = 'succeeded', lease_until = null, epoch = epoch + 1, "
                "finished_at = clock_timestamp(), result = '\"early\"'::jsonb"
            )
            go_on.set()
            assert await closed_state_after_sweep(session, occurrence.id, prepared.instance.id) == "succeeded"
        assert (await ledger(session, occurrence.id))["a"]["result"] == "early"


async def closed_state_after_sweep(session: Session, occurrence_id: int, instance: str) -> Any:
    await close_and_tell(session, occurrence_id, by=instance)
    return await closed_state(session, occurrence_id)
