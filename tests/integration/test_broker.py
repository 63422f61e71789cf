"""Publishing and consuming on a real broker, while queues and connections come and go."""

from dataclasses import replace
from urllib.parse import quote

import anyio
import pytest

from examples.servers.find import Broker
from schemas.message import MAXIMUM_BYTES
from shared.broker import MessageTooLarge, PublishFailed, QueueDepth, declare_topology
from shared.topology import Topology
from tests.support.broker import (
    BODY,
    QUEUE,
    TIMEOUT,
    Inbox,
    administrator,
    consumer_of,
    consuming,
    manage,
    outgoing,
    publisher_of,
    publishing,
    send,
    topology_of,
    until,
    virtual_host_of,
)

NOBODY = "amqp://127.0.0.1:1"


@pytest.fixture
async def topology(broker_url: str, prefix: str) -> Topology:
    made = topology_of(prefix, queues=frozenset({QUEUE, "other"}))
    await declare_topology(broker_url, made, timeout=TIMEOUT)
    return made


async def known_connections(broker: Broker, url: str, purpose: str) -> list[str]:
    """Wait until the management knows of the connections of one purpose; give what it calls them."""
    path = f"/api/vhosts/{virtual_host_of(url)}/connections"
    names: list[str] = []
    with anyio.fail_after(TIMEOUT * 3):
        while not names:
            known = await anyio.to_thread.run_sync(manage, broker, "GET", path)
            names = [
                connection["name"]
                for connection in known
                if connection.get("client_properties", {}).get("connection_name") == f"matins test {purpose}"
            ]
    return names


async def drop_connections(broker: Broker, url: str, purpose: str) -> None:
    """Have the broker drop the connections of one purpose."""
    for name in await known_connections(broker, url, purpose):
        await anyio.to_thread.run_sync(manage, broker, "DELETE", f"/api/connections/{quote(name, safe='')}")


async def test_what_is_published_is_delivered_as_it_was(broker_url: str, topology: Topology) -> None:
    message = replace(outgoing(topology), headers={"traceparent": "00-1-2-01"})
    async with publishing(broker_url) as publisher, consuming(broker_url, topology.work_queue(QUEUE)) as (_, inbox):
        await send(publisher, message)
        delivery = await inbox.take()
        assert (delivery.queue, delivery.routing_key) == (topology.work_queue(QUEUE), QUEUE)
        assert (delivery.body, delivery.message_id) == (BODY, message.message_id)
        assert (delivery.kind, delivery.correlation_id) == (message.kind, message.correlation_id)
        assert (delivery.content_type, delivery.content_encoding) == ("application/json", None)
        assert delivery.headers["traceparent"] == "00-1-2-01"
        assert delivery.timestamp is not None
        assert (delivery.redelivered, delivery.delivery_count) == (False, 0)
        assert await delivery.ack()


async def test_a_delivery_is_settled_once(broker_url: str, topology: Topology) -> None:
    async with publishing(broker_url) as publisher, consuming(broker_url, topology.work_queue(QUEUE)) as (_, inbox):
        await send(publisher, outgoing(topology))
        delivery = await inbox.take()
        assert await delivery.ack()
        assert not await delivery.ack()
        assert not await delivery.reject(requeue=True)
        await send(publisher, outgoing(topology))
        assert await (await inbox.take()).ack()


async def test_a_prefetch_bounds_what_is_taken(broker_url: str, topology: Topology) -> None:
    name = topology.work_queue(QUEUE)
    async with publishing(broker_url) as publisher, consuming(broker_url, name, prefetch=2) as (_, inbox):
        assert await publisher.publish_many([outgoing(topology) for _ in range(5)]) == [None] * 5
        held = [await inbox.take(), await inbox.take()]
        assert await publisher.queue_depth(name) == QueueDepth(messages=3, consumers=1)
        assert inbox.empty()
        for _ in range(3):
            assert await held.pop().ack()
            held.append(await inbox.take())


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
            PublishFailed,
            type(None),
            MessageTooLarge,
            type(None),
        ]
        assert [outcome.ambiguous for outcome in outcomes if outcome is not None] == [False, False]
        assert str(outcomes[1]) == f"exchange {topology.work_exchange} has no queue for 'nowhere'; run migrate"
        assert await publisher.queue_depth(topology.work_queue(QUEUE)) == QueueDepth(messages=2, consumers=0)
        assert await publisher.publish_many([]) == []


async def test_a_publish_to_a_queue_that_was_deleted_fails(broker_url: str, topology: Topology) -> None:
    async with publishing(broker_url) as publisher:
        async with administrator(broker_url) as channel:
            await channel.queue_delete(topology.work_queue(QUEUE))
        with pytest.raises(PublishFailed, match="has no queue for 'default'; run migrate") as raised:
            await send(publisher, outgoing(topology))
        assert not raised.value.ambiguous
        assert publisher.ready


async def test_a_publish_to_an_exchange_that_is_missing_fails_and_the_next_one_works(
    broker_url: str, topology: Topology
) -> None:
    async with publishing(broker_url) as publisher:
        with pytest.raises(PublishFailed, match=r"no exchange 'nowhere'.*run migrate"):
            await send(publisher, outgoing(topology, exchange="nowhere"))
        await send(publisher, outgoing(topology))


async def test_a_publish_that_the_queue_refuses_fails(broker_url: str, prefix: str, topology: Topology) -> None:
    async with administrator(broker_url) as channel:
        queue = await channel.declare_queue(prefix, arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
        await queue.bind(topology.work_exchange, "full")
        async with publishing(broker_url) as publisher:
            await send(publisher, outgoing(topology, key="full"))
            with pytest.raises(PublishFailed, match="refused by the broker") as raised:
                await send(publisher, outgoing(topology, key="full"))
            assert not raised.value.ambiguous


async def test_publishes_of_all_callers_share_one_bound(broker_url: str, topology: Topology) -> None:
    async with publishing(broker_url) as publisher, anyio.create_task_group() as group:
        for _ in range(20):
            group.start_soon(publisher.publish_many, [outgoing(topology) for _ in range(50)])
    async with publishing(broker_url) as publisher:
        assert await publisher.queue_depth(topology.work_queue(QUEUE)) == QueueDepth(messages=1000, consumers=0)


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


async def test_a_secret_that_was_changed_is_read_at_the_next_connect(broker_url: str, topology: Topology) -> None:
    addresses = iter([NOBODY])
    publisher = publisher_of(broker_url)
    publisher._url = lambda: next(addresses, broker_url)  # noqa: SLF001 - stands for a file that changes
    async with anyio.create_task_group() as group:
        await group.start(publisher.run)
        assert publisher.problem is not None
        await send(publisher, outgoing(topology))
        await publisher.close()


async def test_a_deleted_queue_is_named_and_consumed_again_once_it_is_made(broker_url: str, topology: Topology) -> None:
    names = (topology.work_queue(QUEUE), topology.work_queue("other"))
    async with publishing(broker_url) as publisher, consuming(broker_url, *names) as (consumer, inbox):
        await until(lambda: consumer.ready)
        async with administrator(broker_url) as channel:
            await channel.queue_delete(names[0])
        await until(lambda: "does not exist" in (consumer.problem or ""))
        assert consumer.problem == f"queue {names[0]}: it does not exist; run migrate"
        await send(publisher, outgoing(topology, key="other"))
        assert await (await inbox.take()).ack()
        await declare_topology(broker_url, topology, timeout=TIMEOUT)
        await until(lambda: consumer.ready)
        await send(publisher, outgoing(topology))
        delivery = await inbox.take()
        assert delivery.queue == names[0]
        assert await delivery.ack()


async def test_a_consumer_that_starts_before_its_queue_is_made_gets_there(broker_url: str, prefix: str) -> None:
    topology = topology_of(prefix)
    async with consuming(broker_url, topology.work_queue(QUEUE)) as (consumer, inbox):
        await until(lambda: "run migrate" in (consumer.problem or ""))
        await declare_topology(broker_url, topology, timeout=TIMEOUT)
        async with publishing(broker_url) as publisher:
            await send(publisher, outgoing(topology))
        assert await (await inbox.take()).ack()


async def test_a_lost_connection_leaves_the_work_alone_and_the_message_comes_again(
    broker: Broker, broker_url: str, topology: Topology
) -> None:
    name = topology.work_queue(QUEUE)
    async with publishing(broker_url) as publisher, consuming(broker_url, name) as (consumer, inbox):
        await send(publisher, outgoing(topology))
        first = await inbox.take()
        await drop_connections(broker, broker_url, "consume")
        again = await inbox.take()
        assert again.message_id == first.message_id
        assert again.redelivered
        assert not await first.ack()
        assert not await first.reject(requeue=True)
        assert await again.ack()
        await until(lambda: consumer.ready)


async def test_a_publisher_whose_connection_was_dropped_publishes_again(
    broker: Broker, broker_url: str, topology: Topology
) -> None:
    async with publishing(broker_url) as publisher:
        await drop_connections(broker, broker_url, "publish")
        await until(lambda: not publisher.ready)
        assert "connection is lost" in (publisher.problem or "")
        await send(publisher, outgoing(topology))
        assert publisher.ready


async def test_a_stale_ack_closes_one_channel_and_no_more(broker_url: str, topology: Topology) -> None:
    names = (topology.work_queue(QUEUE), topology.work_queue("other"))
    async with publishing(broker_url) as publisher, consuming(broker_url, *names) as (consumer, inbox):
        await until(lambda: consumer.ready)
        for key in (QUEUE, "other"):
            await send(publisher, outgoing(topology, key=key))
        deliveries = {delivery.queue: delivery for delivery in [await inbox.take(), await inbox.take()]}
        # The same delivery twice on the wire, as nothing here sends it: the broker closes the channel.
        message = deliveries[names[0]]._message  # noqa: SLF001 - breaks the protocol on purpose
        assert message.delivery_tag is not None
        await message.channel.basic_ack(message.delivery_tag)
        await message.channel.basic_ack(message.delivery_tag)
        await until(lambda: not consumer.ready)
        assert f"queue {names[0]}: its channel is lost: PRECONDITION_FAILED" in (consumer.problem or "")
        assert await deliveries[names[1]].ack()
        await until(lambda: consumer.ready)


async def test_after_stop_no_more_is_taken_and_what_was_taken_can_be_settled(
    broker_url: str, topology: Topology
) -> None:
    name = topology.work_queue(QUEUE)
    async with publishing(broker_url) as publisher:
        async with consuming(broker_url, name) as (consumer, inbox):
            await send(publisher, outgoing(topology))
            delivery = await inbox.take()
            await consumer.stop_consuming()
            assert consumer.problem == "consuming has been stopped"
            await send(publisher, outgoing(topology))
            depth = await publisher.queue_depth(name)
            assert depth is not None
            assert depth.messages == 1
            assert await delivery.ack()
        assert inbox.empty()
        async with consuming(broker_url, name) as (_, inbox):
            delivery = await inbox.take()
            assert not delivery.redelivered
            assert await delivery.ack()


async def test_closing_gives_back_what_is_unsettled(broker_url: str, topology: Topology) -> None:
    name = topology.work_queue(QUEUE)
    async with publishing(broker_url) as publisher:
        await send(publisher, outgoing(topology))
        async with consuming(broker_url, name) as (_, inbox):
            unsettled = await inbox.take()
        assert not await unsettled.ack()
        async with consuming(broker_url, name) as (_, inbox):
            delivery = await inbox.take()
            assert delivery.redelivered
            assert await delivery.ack()


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
