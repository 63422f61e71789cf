"""A broker that stops, dies, freezes or runs short, under a publisher and a consumer that are not restarted."""

import asyncio

import anyio
import pytest

from examples.servers.server import BrokerServer
from shared import clock
from shared.broker import Consumer, Publisher, PublishFailed, declare_topology
from shared.topology import Topology
from tests.support.broker import (
    QUEUE,
    TIMEOUT,
    Inbox,
    consuming,
    outgoing,
    publishing,
    send,
    topology_of,
    until,
    until_depth,
)

pytestmark = pytest.mark.drill

SETTLED_SECONDS = 3
MEMORY_LIMIT = "512MB"


async def settled(url: str, prefix: str) -> Topology:
    """Make the parts, and return once they are old enough that a confirmed message outlives the node.

    A quorum queue loses what it confirmed if its node is killed in about the first second of its life. A message that
    comes through a delay queue says that three have passed.
    """
    topology = topology_of(prefix, delays=(SETTLED_SECONDS,))
    await declare_topology(url, topology, timeout=TIMEOUT)
    async with publishing(url) as publisher, consuming(url, topology.work_queue(QUEUE)) as (_, inbox):
        await send(publisher, outgoing(topology, exchange=topology.delay_exchange(SETTLED_SECONDS)))
        assert await (await inbox.take()).ack()
    return topology


async def publish_until_confirmed(publisher: Publisher, topology: Topology) -> None:
    """Publish as a relay does: whatever fails is published again."""
    with anyio.fail_after(30):
        while any(await publisher.publish_many([outgoing(topology)])):
            pass


async def test_a_stopped_broker_fails_publishes_within_their_deadline_and_serves_again_once_started(
    throwaway_rabbit: BrokerServer, prefix: str
) -> None:
    url = throwaway_rabbit.url
    topology = await settled(url, prefix)
    async with publishing(url, timeout=1) as publisher:
        await send(publisher, outgoing(topology))
        await asyncio.to_thread(throwaway_rabbit.stop)
        began = clock.monotonic()
        with pytest.raises(PublishFailed) as raised:
            await send(publisher, outgoing(topology))
        assert clock.monotonic() - began < 2
        assert not raised.value.ambiguous
        assert publisher.problem is not None
        await asyncio.to_thread(throwaway_rabbit.start)
        await publish_until_confirmed(publisher, topology)
        assert publisher.ready
        await until_depth(publisher, topology.work_queue(QUEUE), 2)


async def test_a_killed_broker_delivers_again_what_was_unsettled_when_it_is_back(
    throwaway_rabbit: BrokerServer, prefix: str
) -> None:
    url = throwaway_rabbit.url
    topology = await settled(url, prefix)
    name = topology.work_queue(QUEUE)
    async with publishing(url) as publisher, consuming(url, name) as (consumer, inbox):
        await send(publisher, outgoing(topology))
        before = await inbox.take()
        await asyncio.to_thread(throwaway_rabbit.kill)
        await until(lambda: not consumer.ready and not publisher.ready)
        assert not await before.ack()
        await asyncio.to_thread(throwaway_rabbit.start)
        after = await inbox.take()
        assert after.message_id == before.message_id
        assert await after.ack()
        await publish_until_confirmed(publisher, topology)
        assert await (await inbox.take()).ack()
        assert consumer.ready


async def test_a_frozen_broker_leaves_publishes_in_doubt_and_goes_on_when_it_thaws(
    throwaway_rabbit: BrokerServer, prefix: str
) -> None:
    url = throwaway_rabbit.url
    topology = await settled(url, prefix)
    name = topology.work_queue(QUEUE)
    async with publishing(url, timeout=1) as publisher, consuming(url, name) as (consumer, inbox):
        throwaway_rabbit.pause()
        began = clock.monotonic()
        outcomes = await publisher.publish_many([outgoing(topology) for _ in range(10)])
        assert clock.monotonic() - began < 1.5
        assert [outcome.ambiguous for outcome in outcomes if outcome is not None] == [True] * 10
        assert publisher.problem == "the broker confirmed no publish within 1 s"
        second = await publisher.publish_many([outgoing(topology) for _ in range(10)])
        assert [outcome.ambiguous for outcome in second if outcome is not None] == [True] + [False] * 9
        # Long before a heartbeat is overdue.
        await until(lambda: "gives no answer" in (publisher.problem or ""))
        await until(lambda: not consumer.ready)
        throwaway_rabbit.resume()
        await publish_until_confirmed(publisher, topology)
        assert await (await inbox.take()).ack()
        await until(lambda: consumer.ready and publisher.ready)


async def test_a_memory_alarm_blocks_the_publisher_and_not_the_consumer(
    throwaway_rabbit: BrokerServer, prefix: str
) -> None:
    url = throwaway_rabbit.url
    topology = await settled(url, prefix)
    async with publishing(url, timeout=1) as publisher, consuming(url, topology.work_queue(QUEUE)) as (consumer, inbox):
        assert await publisher.publish_many([outgoing(topology) for _ in range(3)]) == [None] * 3
        await asyncio.to_thread(throwaway_rabbit.control, "set_vm_memory_high_watermark", "absolute", "1")
        await blocked(publisher, topology)
        await settles(consumer, inbox, 3)
        await asyncio.to_thread(throwaway_rabbit.control, "set_vm_memory_high_watermark", "absolute", MEMORY_LIMIT)
        await until(lambda: publisher.ready)
        await publish_until_confirmed(publisher, topology)


async def blocked(publisher: Publisher, topology: Topology) -> None:
    """See that a publish under an alarm fails in time, and that nothing more is sent once the broker has said so."""
    with pytest.raises(PublishFailed) as raised:
        await send(publisher, outgoing(topology))
    assert raised.value.ambiguous
    await until(lambda: publisher.problem == "the broker blocks publishers: it is short of memory or disk")
    began = clock.monotonic()
    outcomes = await publisher.publish_many([outgoing(topology) for _ in range(10)])
    assert clock.monotonic() - began < 1.5
    assert [outcome.ambiguous for outcome in outcomes if outcome is not None] == [False] * 10
    assert await publisher.queue_depth(topology.work_queue(QUEUE)) is None


async def settles(consumer: Consumer, inbox: Inbox, messages: int) -> None:
    """See that messages are taken and acknowledged as if nothing were the matter."""
    for _ in range(messages):
        assert await (await inbox.take()).ack()
    assert consumer.ready
