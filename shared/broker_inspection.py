"""A look at the broker for a person: which program and release it is, and what some queues hold. Changes nothing."""

from collections.abc import Iterable
from dataclasses import dataclass

from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity

from shared.broker_connection import close_channel, close_connection, open_channel, open_connection, transport_of
from shared.broker_errors import ANY_ERROR, BrokerUnavailable, raise_unless_of_the_driver, said
from shared.broker_publisher import QueueDepth

HEARTBEAT_SECONDS = 20


@dataclass(frozen=True, slots=True)
class BrokerFacts:
    """What the broker says of itself, and of each queue that was asked for; None for one that does not exist."""

    product: str
    version: str
    queues: dict[str, QueueDepth | None]


async def inspect_broker(url: str, queues: Iterable[str], *, timeout: float) -> BrokerFacts:
    """Look at the broker and at queues, each within `timeout` seconds. Raises BrokerUnavailable."""
    connection = await open_connection(url, name="matins look", heartbeat=HEARTBEAT_SECONDS, timeout=timeout)
    try:
        properties = getattr(transport_of(connection).connection, "server_properties", {})
        found = {name: await _depth(connection, name, timeout) for name in queues}
    finally:
        await close_connection(connection)
    return BrokerFacts(_text(properties.get("product")), _text(properties.get("version")), found)


async def _depth(connection: AbstractConnection, name: str, timeout: float) -> QueueDepth | None:
    """Look into one queue, on a channel of its own because a refusal closes it."""
    channel = await open_channel(connection, confirms=False, timeout=timeout)
    try:
        lower = await channel.get_underlay_channel()
        found = await lower.queue_declare(name, passive=True, timeout=timeout)
    except ChannelNotFoundEntity:
        return None
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error)
        raise BrokerUnavailable(f"cannot look at queue {name}: {said(error)}") from error
    finally:
        await close_channel(channel)
    return QueueDepth(messages=found.message_count or 0, consumers=found.consumer_count or 0)


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value or "")
