"""What the tests of the broker share: parts under a test's own prefix, messages, running clients, deliveries."""

import asyncio
import itertools
import urllib.parse
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aio_pika
import anyio
from aio_pika.abc import AbstractChannel

from examples.servers.find import Broker
from examples.servers.probe import management
from shared import clock
from shared.broker import Consumer, Delivery, Outgoing, Publisher
from shared.topology import Topology

SECONDS = 20.0
TIMEOUT = 5.0
QUIET_LOOKS = 3
LOOK_SECONDS = 1.0
QUEUE = "default"
BODY = b'{"version":1}'
KIND = "matins.work.v1"

_numbers = itertools.count(1)


def topology_of(
    prefix: str,
    *,
    environment: str = "test",
    queues: frozenset[str] = frozenset({QUEUE}),
    delays: tuple[int, ...] = (1, 5),
    delivery_limit: int = 20,
) -> Topology:
    """Give the parts under a prefix; what a test does not name is the same everywhere."""
    return Topology(prefix, environment, queues, delays, delivery_limit)


def outgoing(topology: Topology, *, key: str = QUEUE, exchange: str | None = None, body: bytes = BODY) -> Outgoing:
    """Give a message with an id of its own."""
    routing_key = topology.routing_key(key)
    return Outgoing(
        exchange or topology.work_exchange, routing_key, body, f"message-{next(_numbers)}", "job:then", KIND, {}
    )


async def send(publisher: Publisher, message: Outgoing) -> None:
    """Publish one message; raises PublishFailed."""
    await publisher.publish(
        message.exchange,
        message.routing_key,
        message.body,
        message_id=message.message_id,
        correlation_id=message.correlation_id,
        kind=message.kind,
        headers=message.headers,
    )


def publisher_of(url: str, *, timeout: float = TIMEOUT) -> Publisher:
    """Give a publisher that isn't running yet."""
    return Publisher(lambda: url, name="matins test publish", heartbeat=10, timeout=timeout)


def consumer_of(url: str, *queues: str, prefetch: int = 10) -> Consumer:
    """Give a consumer that isn't running yet and looks at its queues often."""
    return Consumer(
        lambda: url,
        dict.fromkeys(queues, prefetch),
        name="matins test consume",
        heartbeat=10,
        timeout=TIMEOUT,
        watch_interval=0.2,
    )


@asynccontextmanager
async def publishing(url: str, *, timeout: float = TIMEOUT) -> AsyncIterator[Publisher]:
    """Have a publisher running meanwhile."""
    publisher = publisher_of(url, timeout=timeout)
    async with anyio.create_task_group() as group:
        await group.start(publisher.run)
        yield publisher
        await publisher.close()


class Inbox:
    """Takes deliveries as a worker's stream does, and gives them one at a time."""

    def __init__(self) -> None:
        self._deliveries: asyncio.Queue[Delivery] = asyncio.Queue()

    def __call__(self, delivery: Delivery) -> None:
        """Take one."""
        self._deliveries.put_nowait(delivery)

    def empty(self) -> bool:
        """Tell whether none waits."""
        return self._deliveries.empty()

    async def take(self) -> Delivery:
        """Wait for one."""
        with anyio.fail_after(SECONDS):
            return await self._deliveries.get()


@asynccontextmanager
async def consuming(url: str, *queues: str, prefetch: int = 10) -> AsyncIterator[tuple[Consumer, Inbox]]:
    """Have a consumer of some queues running meanwhile."""
    consumer, inbox = consumer_of(url, *queues, prefetch=prefetch), Inbox()
    async with anyio.create_task_group() as group:
        await group.start(consumer.run, inbox)
        yield consumer, inbox
        await consumer.close()


async def until(condition: Callable[[], bool]) -> None:
    """Look again and again, as a readiness probe does, until something is so."""
    with anyio.fail_after(SECONDS):
        while not condition():
            await clock.sleep(0.02)


async def until_depth(publisher: Publisher, queue: str, messages: int) -> None:
    """Look into a queue until it holds at least so many messages; a look may be older than the last confirm."""
    with anyio.fail_after(SECONDS):
        while (depth := await publisher.queue_depth(queue)) is None or depth.messages < messages:
            await clock.sleep(0.02)


@asynccontextmanager
async def administrator(url: str) -> AsyncIterator[AbstractChannel]:
    """Have a channel of a person who interferes."""
    async with await aio_pika.connect(url) as connection, connection.channel() as channel:
        yield channel


def manage(broker: Broker, method: str, path: str, body: object = None) -> Any:
    """Call the management interface, which these tests cannot do without."""
    assert broker.management_url is not None, "these tests need the management interface"
    return management(broker.management_url, method, path, body)


async def known_connections(broker: Broker, url: str, purpose: str) -> list[str]:
    """Wait until the management knows of the connections of one purpose; give what it calls them."""
    path = f"/api/vhosts/{virtual_host_of(url)}/connections"
    names: list[str] = []
    with anyio.fail_after(SECONDS):
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
        await anyio.to_thread.run_sync(
            manage, broker, "DELETE", f"/api/connections/{urllib.parse.quote(name, safe='')}"
        )


async def until_acknowledged(broker: Broker, url: str) -> None:
    """Wait until no queue but the parked one holds a message, those in a consumer's hands included.

    The management counts once a second, each queue in its own time, so that one look is not enough.
    """
    path = f"/api/queues/{virtual_host_of(url)}?columns=name,messages"
    quiet = 0
    with anyio.fail_after(SECONDS):
        while quiet < QUIET_LOOKS:
            queues = await anyio.to_thread.run_sync(manage, broker, "GET", path)
            left = any(one.get("messages") for one in queues if not one["name"].endswith(".dead.parked"))
            quiet = 0 if left else quiet + 1
            await clock.sleep(LOOK_SECONDS)


def virtual_host_of(url: str) -> str:
    """Give the virtual host of an address, as a part of a path."""
    return urllib.parse.urlsplit(url).path[1:] or "%2F"
