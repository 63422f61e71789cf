"""Going through a queue that nobody consumes, for a person: message by message, and none is lost on the way.

Each message is fetched by itself and held until it is acknowledged; what is not goes back to its place when the queue
is let go of, whatever became of this process. To hold a message counts as a delivery of it, which is why nothing that
refreshes by itself does this. What is published goes over a connection of its own: under an alarm of the broker's, the
one that publishes is blocked, and could neither fetch nor acknowledge.
"""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import anyio
from aiormq.channel import Channel as DriverChannel
from pamqp.commands import Basic

from schemas.message import MAXIMUM_BYTES
from shared.broker_connection import close_channel, close_connection, driver_channel, open_channel, open_connection
from shared.broker_delivery import Delivery
from shared.broker_errors import ANY_ERROR, BrokerUnavailable, raise_unless_of_the_driver, said
from shared.broker_outgoing import MessageTooLarge, Outgoing, PublishFailed, PublishRefused, publish_on

HEARTBEAT_SECONDS = 20


@dataclass(slots=True)
class Parking:
    """A queue that is gone through; `waiting` is how many messages it held at the beginning."""

    queue: str
    waiting: int
    _taking: DriverChannel
    _publishing: DriverChannel
    _timeout: float

    async def take(self) -> Delivery | None:
        """Fetch the next message; None when there is no other. Raises BrokerUnavailable."""
        try:
            message = await self._taking.basic_get(self.queue, timeout=self._timeout)
        except ANY_ERROR as error:
            raise_unless_of_the_driver(error)
            raise BrokerUnavailable(f"cannot take from queue {self.queue}: {said(error)}") from error
        return None if isinstance(message.delivery, Basic.GetEmpty) else Delivery(self.queue, message)

    async def publish(self, message: Outgoing) -> PublishFailed | None:
        """Publish one message and give, once it is confirmed or time is up, nothing or why it failed."""
        if len(message.body) > MAXIMUM_BYTES:
            return MessageTooLarge(len(message.body))
        with anyio.move_on_after(self._timeout):
            failure = await publish_on(self._publishing, message)
            if isinstance(failure, PublishRefused):
                # No other was on its way, so that the refusal is of this one.
                return PublishRefused(failure.reason, ambiguous=False)
            return failure
        return PublishFailed(f"no confirm within {self._timeout:g} s", ambiguous=True)

    @property
    def publishes(self) -> bool:
        """Whether another message can be published: a refusal may have closed the channel."""
        return not self._publishing.is_closed


@asynccontextmanager
async def parking(url: str, queue: str, *, timeout: float) -> AsyncIterator[Parking]:
    """Go through a queue meanwhile; each wait for the broker is at most `timeout` seconds. Raises BrokerUnavailable."""
    async with AsyncExitStack() as opened:
        channels = []
        for purpose in ("take", "publish"):
            name = f"matins {purpose} parked"
            connection = await open_connection(url, name=name, heartbeat=HEARTBEAT_SECONDS, timeout=timeout)
            opened.push_async_callback(close_connection, connection)
            channel = await open_channel(connection, confirms=purpose == "publish", timeout=timeout)
            # What was acknowledged is known to the broker once it has closed the channel.
            opened.push_async_callback(close_channel, channel)
            channels.append(await driver_channel(channel))
        taking, publishing = channels
        yield Parking(queue, await _waiting(taking, queue, timeout), taking, publishing, timeout)


async def _waiting(channel: DriverChannel, queue: str, timeout: float) -> int:
    try:
        found = await channel.queue_declare(queue, passive=True, timeout=timeout)
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error)
        raise BrokerUnavailable(f"cannot look at queue {queue}: {said(error)}") from error
    return found.message_count or 0
