"""Consuming on a real broker, while queues and connections come and go."""

from dataclasses import replace

import pytest

from examples.servers.find import Broker
from shared.broker import declare_topology
from shared.topology import Topology
from tests.support.broker import (
    BODY,
    QUEUE,
    TIMEOUT,
    administrator,
    consuming,
    drop_connections,
    outgoing,
    publishing,
    send,
    topology_of,
    until,
    until_depth,
)
from tests.support.proxy import Proxy

# Bytes: more than the opening of the channel on which the queues are looked at.
SOME_LOOKS = 200


@pytest.fixture
async def topology(broker_url: str, prefix: str) -> Topology:
    made = topology_of(prefix, queues=frozenset({QUEUE, "other"}))
    await declare_topology(broker_url, made, timeout=TIMEOUT)
    return made


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
        await until_depth(publisher, name, 3)
        assert inbox.empty()
        for _ in range(3):
            assert await held.pop().ack()
            held.append(await inbox.take())


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


async def test_a_connection_that_breaks_under_a_look_at_a_queue_is_made_again(
    broker_url: str, topology: Topology
) -> None:
    async with (
        Proxy(broker_url) as proxy,
        publishing(broker_url) as publisher,
        consuming(proxy.url, topology.work_queue(QUEUE)) as (consumer, inbox),
    ):
        await until(lambda: consumer.ready)
        subscribed = proxy.to_server.passed
        await until(lambda: proxy.to_server.passed > subscribed + SOME_LOOKS)
        proxy.to_client.hold()
        before = proxy.to_server.passed
        await until(lambda: proxy.to_server.passed > before)
        proxy.reset()
        proxy.heal()
        await until(lambda: proxy.accepted == 2 and consumer.ready)
        await send(publisher, outgoing(topology))
        assert await (await inbox.take()).ack()


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
            await until_depth(publisher, name, 1)
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
