"""A worker among messages that nobody of ours has sent: each ends where it belongs, and the night is done exactly.

Whoever may publish to the broker can write anything into a message. It only ever points at ledger rows, so that the
worst a stranger can do is to have an account worked on that is due anyway.
"""

import gzip
from datetime import UTC, datetime, timedelta
from typing import Any

import aio_pika
import orjson
import pytest

from schemas.message import MAXIMUM_BYTES, WorkMessage, encode
from shared.calls import AccountCall
from shared.job import PerAccount
from tests.support.fleet import closed_state, deploy, prepared_for, running_publisher, running_worker, send, until
from tests.support.ledger import DUE, job_with, ledger, running_occurrence, session_on
from worker.occurrences import WorkOccurrence

ACCOUNTS = [f"a{number:02d}" for number in range(40)]
EFFECTS = "create table effect (account text not null, occurrence text not null)"
UNREADABLE: dict[str, bytes] = {
    "nothing": b"",
    "not JSON": b"not json",
    "not an object": b"[1]",
    "bytes behind its end": b'{"version":1}{}',
    "not UTF-8": b'{"version":1,"job":"\xff"}',
    "NaN": b'{"version":NaN}',
    "fields missing": b'{"version":1}',
    "brackets without end": b"[" * 20_000,
    "objects without end": b'{"a":' * 10_000,
    "compressed": gzip.compress(b"0" * 10_000_000),
    "larger than is read": b" " * (MAXIMUM_BYTES + 1),
}
STALE_HEADERS: dict[str, Any] = {
    "x-death": [{"count": 1_000_000, "reason": "delivery_limit", "queue": "elsewhere"}],
    "x-delivery-count": 1_000_000,
    "x-first-death-reason": "delivery_limit",
    "traceparent": "00-" + "f" * 60_000,
    "x-long": "x" * 60_000,
}


async def insert(call: AccountCall) -> None:
    await call.connection.execute(
        "insert into effect (account, occurrence) values ($1, $2)", call.account, str(call.occurrence)
    )


def pointing_at(occurrence: WorkOccurrence, **changed: Any) -> bytes:
    """Write a sound message for an account that waits, changed where a stranger would change it."""
    sound: dict[str, Any] = {
        "job": "invoice-run",
        "occurrence_id": occurrence.id,
        "scheduled_at": occurrence.scheduled_at,
        "generation": 1,
        "published_at": datetime.now(UTC),
        "accounts": (ACCOUNTS[0],),
    }
    return encode(WorkMessage(**(sound | changed)))


def forged(occurrence: WorkOccurrence) -> dict[str, bytes]:
    return {
        "an occurrence that never was": pointing_at(occurrence, occurrence_id=occurrence.id + 1_000_000),
        "another instant": pointing_at(occurrence, scheduled_at=DUE - timedelta(days=1)),
        "a generation to come": pointing_at(occurrence, generation=2),
        "an account of nobody": pointing_at(occurrence, accounts=("'; drop table matins.ledger; --",)),
        "a stale epoch": pointing_at(occurrence, epoch=0),
        "an epoch to come": pointing_at(occurrence, epoch=2**62),
        "an account twice": pointing_at(occurrence, accounts=(ACCOUNTS[1], ACCOUNTS[1])),
        "everybody, in a chunk": pointing_at(occurrence, accounts=tuple(ACCOUNTS)),
        "isolated for no reason": pointing_at(occurrence, accounts=(ACCOUNTS[2],), isolated=True),
        "published long ago": pointing_at(occurrence, published_at=DUE - timedelta(days=400)),
        "a field of a later release": pointing_at(occurrence)[:-1] + b',"later":{"deep":[[[]]]}}',
        "a key twice": b'{"job":"nobody",' + pointing_at(occurrence)[1:],
    }


async def publish_all(broker_url: str, exchange_name: str, key: str, bodies: list[bytes]) -> None:
    """Publish as a stranger does: with whatever properties and headers."""
    async with await aio_pika.connect(broker_url) as connection:
        exchange = await (await connection.channel()).get_exchange(exchange_name, ensure=False)
        for number, body in enumerate(bodies):
            message = aio_pika.Message(
                body,
                headers=STALE_HEADERS if number % 2 else {"traceparent": number, "x-death": "nothing of the kind"},
                content_type="application/x-python-pickle",
                content_encoding="gzip" if number % 3 else "no such thing",
                message_id="the same for all",
                type="matins.work.v7",
                expiration=None,
            )
            await exchange.publish(message, key)


@pytest.mark.timeout(90)
async def test_a_night_among_hostile_messages(database_url: str, broker_url: str, prefix: str) -> None:
    job = job_with(PerAccount(insert))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix, delays="1")
    await deploy(prepared)
    topology = prepared.topology
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ACCOUNTS)
        bodies = [*UNREADABLE.values(), *forged(occurrence).values()]
        async with running_worker(prepared):
            await publish_all(broker_url, topology.work_exchange, topology.routing_key(job.queue), bodies)
            for account in ACCOUNTS:
                await send(publisher, prepared, job, occurrence, [account])
            assert await closed_state(session, occurrence.id) == "succeeded"

            async def set_aside() -> bool:
                depths = [
                    await publisher.queue_depth(name) for name in (topology.parked_queue, topology.accounted_queue)
                ]
                return [depth.messages for depth in depths if depth is not None] == [len(UNREADABLE), 0]

            await until(set_aside)

            async def worked_off() -> bool:
                depth = await publisher.queue_depth(topology.work_queue(job.queue))
                return depth is not None and depth.messages == 0

            await until(worked_off)
        rows = await ledger(session, occurrence.id)
        assert len(rows) == len(ACCOUNTS), "no message makes a row"
        assert {(row["state"], row["attempts"], row["starts"]) for row in rows.values()} == {("succeeded", 1, 0)}
        effects = await session.fetch("select account, count(*) as times from effect group by account")
        assert {row["account"]: row["times"] for row in effects} == dict.fromkeys(ACCOUNTS, 1)
        assert all(row["trace_context"] is None or len(row["trace_context"]) < 100 for row in rows.values())


@pytest.mark.timeout(90)
async def test_a_message_of_seventeen_mebibytes_is_refused_or_parked(
    database_url: str, broker_url: str, prefix: str
) -> None:
    job = job_with(PerAccount(insert))
    prepared = prepared_for("worker", [job], database_url, broker_url, prefix)
    await deploy(prepared)
    topology = prepared.topology
    async with session_on(database_url) as session, running_publisher(prepared) as publisher:
        await session.execute(EFFECTS)
        occurrence = await running_occurrence(session, job, ["a"])
        async with running_worker(prepared):
            parked = 1
            try:
                huge = orjson.dumps({"version": 1, "job": "x" * (17 * 1024 * 1024)})
                await publish_all(broker_url, topology.work_exchange, topology.routing_key(job.queue), [huge])
            except (aio_pika.exceptions.ChannelClosed, aio_pika.exceptions.ChannelInvalidStateError):
                # From 4.0 on the broker itself refuses more than 16 MiB.
                parked = 0
            await send(publisher, prepared, job, occurrence, ["a"])
            assert await closed_state(session, occurrence.id) == "succeeded"

            async def set_aside() -> bool:
                depth = await publisher.queue_depth(topology.parked_queue)
                return depth is not None and depth.messages == parked

            await until(set_aside)
