"""Publishing on a real broker, while queues and connections come and go."""

import anyio
import pytest

from examples.servers.find import Broker
from schemas.message import MAXIMUM_BYTES
from shared.broker import MessageTooLarge, Publisher, PublishFailed, PublishRefused, QueueDepth, declare_topology
from shared.topology import Topology
from tests.support.broker import (
    QUEUE,
    TIMEOUT,
    Inbox,
    administrator,
    consumer_of,
    consuming,
    drop_connections,
    known_connections,
    outgoing,
    publisher_of,
    publishing,
    send,
    topology_of,
    until,
    until_depth,
)

NOBODY = "amqp://127.0.0.1:1"


@pytest.fixture
async def topology(broker_url: str, prefix: str) -> Topology:
    made = topology_of(prefix, queues=frozenset({QUEUE, "other"}))
    await declare_topology(broker_url, made, timeout=TIMEOUT)
    return made


async def test_a_batch_says_for_each_message_how_it_ended(broker_url: str, topology: Topology) -> None:
    batch = [
        outgoing(topology),
        outgoing(topology, key="nowhere"),
        outgoing(topology, body=b"x" * MAXIMUM_BYTES),
        outgoing(topology, body=b"x" * (MAXIMUM_BYTES + 1)),
        outgoing(topology, key="other"),
    ]
    async with publishing(broker_url) as publisher:
        outcomes = await publisher.publish_many(batch)
        assert [type(outcome) for outcome in outcomes] == [
            type(None),
            PublishRefused,
            type(None),
            MessageTooLarge,
            type(None),
        ]
        assert [outcome.ambiguous for outcome in outcomes if outcome is not None] == [False, False]
        assert str(outcomes[1]) == f"exchange {topology.work_exchange} has no queue for 'nowhere'; run migrate"
        await until_depth(publisher, topology.work_queue(QUEUE), 2)
        assert await publisher.publish_many([]) == []


async def test_a_publish_to_a_queue_that_was_deleted_fails(broker_url: str, topology: Topology) -> None:
    async with publishing(broker_url) as publisher:
        async with administrator(broker_url) as channel:
            await channel.queue_delete(topology.work_queue(QUEUE))
        with pytest.raises(PublishFailed, match="has no queue for 'default'; run migrate") as raised:
            await send(publisher, outgoing(topology))
        assert not raised.value.ambiguous
        assert publisher.problem == raised.value.reason
        await declare_topology(broker_url, topology, timeout=TIMEOUT)
        await send(publisher, outgoing(topology))
        assert publisher.ready


async def test_a_publish_to_an_exchange_that_is_missing_fails_and_the_next_one_works(
    broker_url: str, topology: Topology
) -> None:
    async with publishing(broker_url) as publisher:
        with pytest.raises(PublishFailed, match=r"no exchange 'nowhere'.*run migrate"):
            await send(publisher, outgoing(topology, exchange="nowhere"))
        await send(publisher, outgoing(topology))
        assert "no exchange 'nowhere'" in (publisher.problem or "")


async def test_a_publish_that_the_queue_refuses_fails(broker_url: str, prefix: str, topology: Topology) -> None:
    async with administrator(broker_url) as channel:
        queue = await channel.declare_queue(prefix, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        await queue.bind(topology.work_exchange, "full")
        async with publishing(broker_url) as publisher:
            await send(publisher, outgoing(topology, key="full"))
            with pytest.raises(PublishFailed, match="refused by the broker") as raised:
                await send(publisher, outgoing(topology, key="full"))
            assert not raised.value.ambiguous
            assert publisher.problem == raised.value.reason
            await queue.purge()
            await send(publisher, outgoing(topology, key="full"))
            assert publisher.ready


async def test_publishes_of_all_callers_share_one_bound(broker_url: str, topology: Topology) -> None:
    async with publishing(broker_url) as publisher, anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(publisher.publish_many, [outgoing(topology) for _ in range(50)])
    async with publishing(broker_url) as publisher:
        await until_depth(publisher, topology.work_queue(QUEUE), 1000)


async def test_without_a_broker_a_publish_fails_unsent_within_its_deadline(prefix: str) -> None:
    async with publishing(NOBODY, timeout=0.3) as publisher:
        assert publisher.problem == "cannot connect to broker 127.0.0.1:1: Connection refused"
        outcomes = await publisher.publish_many([outgoing(topology_of(prefix)) for _ in range(500)])
        for outcome in outcomes:
            assert outcome is not None
            assert not outcome.ambiguous
            assert outcome.reason.startswith("not sent: cannot connect")
        assert await publisher.queue_depth("anything") is None


async def test_before_it_runs_and_after_it_is_closed_a_client_is_not_ready(broker_url: str, topology: Topology) -> None:
    publisher, consumer = publisher_of(broker_url), consumer_of(broker_url, topology.work_queue(QUEUE))
    for client in (publisher, consumer):
        assert client.problem == "not connected yet"
        await client.close()
        assert not client.ready
    await publisher.run()
    await consumer.run(Inbox())
    assert publisher.problem == consumer.problem == "closed"


async def test_a_queue_that_is_not_there_gives_no_depth_and_harms_no_other(broker_url: str, topology: Topology) -> None:
    async with publishing(broker_url) as publisher:
        assert await publisher.queue_depth("nowhere") is None
        assert await publisher.queue_depth(topology.work_queue(QUEUE)) == QueueDepth(messages=0, consumers=0)
        assert publisher.ready


async def test_an_address_that_was_changed_is_read_at_the_next_connect(broker_url: str, topology: Topology) -> None:
    addresses = iter(["", NOBODY])

    def url() -> str:
        if (address := next(addresses, broker_url)) == "":
            raise OSError("no such file")
        return address

    publisher = Publisher(url, name="matins test publish", heartbeat=10, timeout=TIMEOUT)
    async with anyio.create_task_group() as group:
        await group.start(publisher.run)
        assert publisher.problem == "the broker's address cannot be read: no such file"
        await until(lambda: "Connection refused" in (publisher.problem or ""))
        await send(publisher, outgoing(topology))
        await publisher.close()


async def test_a_publisher_whose_connection_was_dropped_publishes_again(
    broker: Broker, broker_url: str, topology: Topology
) -> None:
    async with publishing(broker_url) as publisher:
        await drop_connections(broker, broker_url, "publish")
        await until(lambda: not publisher.ready)
        assert "connection is lost" in (publisher.problem or "")
        await send(publisher, outgoing(topology))
        assert publisher.ready


async def test_connections_carry_their_names(broker: Broker, broker_url: str, topology: Topology) -> None:
    async with publishing(broker_url), consuming(broker_url, topology.work_queue(QUEUE)) as (consumer, _):
        await until(lambda: consumer.ready)
        for purpose in ("publish", "consume"):
            assert len(await known_connections(broker, broker_url, purpose)) == 1


async def test_cancelling_the_task_group_ends_everything(broker_url: str, topology: Topology) -> None:
    publisher, consumer = publisher_of(broker_url), consumer_of(broker_url, topology.work_queue(QUEUE))
    async with anyio.create_task_group() as group:
        await group.start(publisher.run)
        await group.start(consumer.run, Inbox())
        group.cancel_scope.cancel()
    assert publisher.problem == consumer.problem == "closed"
