"""Taking parts away from the broker: for a person's command, never for a service. Needs the right to configure."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager

from aio_pika.abc import AbstractConnection
from aiormq.channel import Channel as DriverChannel

from shared.broker_connection import close_channel, close_connection, driver_channel, open_channel, open_connection
from shared.broker_errors import ANY_ERROR, BrokerUnavailable, raise_unless_of_the_driver, said
from shared.topology import Binding

HEARTBEAT_SECONDS = 20


async def rebind(url: str, *, add: Iterable[Binding], remove: Iterable[Binding], timeout: float) -> None:
    """Make bindings, then remove others, each within `timeout` seconds; both may be so already.

    Raises BrokerUnavailable.
    """
    async with _connected(url, timeout) as connection:
        for one in add:
            async with _channel(connection, f"bind queue {one.queue}", timeout) as channel:
                await channel.queue_bind(one.queue, one.exchange, one.routing_key, timeout=timeout)
        for one in remove:
            async with _channel(connection, f"unbind queue {one.queue}", timeout) as channel:
                await channel.queue_unbind(one.queue, one.exchange, one.routing_key, timeout=timeout)


async def delete_parts(url: str, *, queues: Iterable[str], exchanges: Iterable[str], timeout: float) -> None:
    """Delete queues and exchanges, whatever they hold; those that are gone already are no fault.

    Raises BrokerUnavailable.
    """
    async with _connected(url, timeout) as connection:
        for name in exchanges:
            async with _channel(connection, f"delete exchange {name}", timeout) as channel:
                await channel.exchange_delete(name, timeout=timeout)
        for name in queues:
            async with _channel(connection, f"delete queue {name}", timeout) as channel:
                await channel.queue_delete(name, timeout=timeout)


@asynccontextmanager
async def _connected(url: str, timeout: float) -> AsyncIterator[AbstractConnection]:
    connection = await open_connection(url, name="matins retire", heartbeat=HEARTBEAT_SECONDS, timeout=timeout)
    try:
        yield connection
    finally:
        await close_connection(connection)


@asynccontextmanager
async def _channel(connection: AbstractConnection, step: str, timeout: float) -> AsyncIterator[DriverChannel]:
    """Have a channel for one step, since a refusal closes it."""
    channel = await open_channel(connection, confirms=False, timeout=timeout)
    try:
        yield await driver_channel(channel)
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error)
        raise BrokerUnavailable(f"cannot {step}: {said(error)}") from error
    finally:
        await close_channel(channel)
