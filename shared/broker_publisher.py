"""Publishing: persistent, mandatory, confirmed, within a deadline, and never more than a bounded number in doubt.

A publish has one of three ends. Confirmed: the message is in its queue. Refused or never sent: it is in no queue. In
doubt: it was sent and no confirm came in time; it usually arrives later. Whoever publishes keeps a row that says so
and publishes again; the ledger makes a duplicate harmless.

A broker short of memory or disk blocks the connection of whoever publishes and says so. Nothing is sent on a blocked
connection, so that a long alarm does not leave a pile of copies in the pipe. After a publish in doubt, one message at
a time is tried until a confirm comes.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import anyio
from aio_pika.abc import AbstractChannel, AbstractConnection, UnderlayConnection
from aiormq.channel import Channel as DriverChannel
from anyio.abc import TaskStatus

from schemas.message import MAXIMUM_BYTES
from shared import clock
from shared.broker_connection import Client, Loss, close_channel, driver_channel, open_channel, transport_of
from shared.broker_errors import ANY_ERROR, BrokerUnavailable, raise_unless_of_the_driver
from shared.broker_outgoing import MessageTooLarge, Outgoing, PublishFailed, Refusals, publish_on

CHECK_SECONDS = 1.0
UNBLOCKED_SECONDS = 0.05


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """What a queue holds: messages that wait (those at a worker are not counted) and consumers that are registered.

    Both may be some milliseconds old: a queue has been seen empty just after it had confirmed a message.
    """

    messages: int
    consumers: int


class Publisher(Client):
    """Publishes on a connection of its own.

    `timeout`, in seconds, bounds a publish and a batch; `in_flight` bounds the messages that are sent and not yet
    confirmed, over all callers.
    """

    def __init__(
        self, url: Callable[[], str], *, name: str, heartbeat: int, timeout: float, in_flight: int = 256
    ) -> None:
        super().__init__(url, name=name, heartbeat=heartbeat, timeout=timeout)
        self._in_flight = in_flight
        self._unconfirmed = anyio.Semaphore(in_flight, fast_acquire=True)
        self._open = asyncio.Event()
        self._channel: DriverChannel | None = None
        self._connection: AbstractConnection | None = None
        self._transport: UnderlayConnection | None = None
        self._depth_channel: AbstractChannel | None = None
        self._depth_lock = anyio.Lock(fast_acquire=True)
        self._blocked = False
        self._in_doubt = False
        self._refusals = Refusals()

    async def run(self, *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED) -> None:
        """Keep a connection until cancelled; started once the first attempt has succeeded or failed."""
        await self._keep_connected(task_status)

    @property
    def ready(self) -> bool:
        """Tell whether a publish is likely to be confirmed."""
        return self.problem is None

    @property
    def problem(self) -> str | None:
        """Say why a publish is likely to fail."""
        if self._disconnected is not None:
            return self._disconnected
        if self._blocked:
            return "the broker blocks publishers: it is short of memory or disk"
        if self._in_doubt:
            return f"the broker confirmed no publish within {self._timeout:g} s"
        return self._refusals.problem()

    async def publish(
        self,
        exchange: str,
        routing_key: str,
        body: bytes,
        *,
        message_id: str,
        correlation_id: str,
        kind: str,
        headers: Mapping[str, str],
    ) -> None:
        """Publish one message and return when it is confirmed; while there is no connection, wait for one.

        Raises PublishFailed.
        """
        message = Outgoing(exchange, routing_key, body, message_id, correlation_id, kind, headers)
        [failure] = await self.publish_many([message])
        if failure is not None:
            raise failure

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[PublishFailed | None]:
        """Publish several at a time and return, for each, nothing or why it failed, within one timeout for all.

        Messages are sent during the first half of it; the second is for the confirms.
        """
        outcomes: list[PublishFailed | None] = [None] * len(messages)
        remaining = iter(range(len(messages)))
        sending_ends = clock.monotonic() + self._timeout / 2
        width = min(len(messages), 1 if self._in_doubt else self._in_flight)
        with anyio.move_on_after(self._timeout) as deadline:
            async with anyio.create_task_group() as group:
                for _ in range(width):
                    group.start_soon(self._publish_rest, messages, remaining, outcomes, sending_ends)
        if deadline.cancelled_caught:
            self._in_doubt = any(outcome is not None and outcome.ambiguous for outcome in outcomes)
        for index in remaining:
            outcomes[index] = self._unsent()
        return outcomes

    async def queue_depth(self, name: str) -> QueueDepth | None:
        """Look into a queue; None when it cannot be known: no such queue, no connection, no answer in time."""
        async with self._depth_lock:
            connection = self._connection
            if connection is None or self._blocked:
                return None
            try:
                if self._depth_channel is None or self._depth_channel.is_closed:
                    self._depth_channel = await open_channel(connection, confirms=False, timeout=self._timeout)
                channel = await self._depth_channel.get_underlay_channel()
                found = await channel.queue_declare(name, passive=True, timeout=self._timeout)
            except ANY_ERROR as error:
                raise_unless_of_the_driver(error, BrokerUnavailable)
                return None
            return QueueDepth(messages=found.message_count or 0, consumers=found.consumer_count or 0)

    async def _publish_rest(
        self,
        messages: Sequence[Outgoing],
        remaining: Iterator[int],
        outcomes: list[PublishFailed | None],
        sending_ends: float,
    ) -> None:
        """Publish what no other task has taken, one after the other; if cancelled, the outcome stays as it stands."""
        for index in remaining:
            outcomes[index] = self._unsent()
            if clock.monotonic() >= sending_ends:
                return
            message = messages[index]
            if len(message.body) > MAXIMUM_BYTES:
                outcomes[index] = MessageTooLarge(len(message.body))
                continue
            async with self._unconfirmed:
                channel = await self._open_channel()
                outcomes[index] = PublishFailed(f"no confirm within {self._timeout:g} s", ambiguous=True)
                outcomes[index] = await publish_on(channel, message)
            self._refusals.note(message, outcomes[index])
            if outcomes[index] is None:
                self._in_doubt = False

    async def _open_channel(self) -> DriverChannel:
        """Wait for a channel on a connection that is not blocked."""
        while True:
            await self._open.wait()
            channel, transport = self._channel, self._transport
            if channel is not None and transport is not None:
                await transport.ready()
                if not channel.is_closed:
                    return channel
            # Closed, and the loop that opens another one has not run yet.
            if channel is self._channel:
                self._open.clear()

    def _unsent(self) -> PublishFailed:
        return PublishFailed(f"not sent: {self.problem or 'no time was left'}", ambiguous=False)

    async def _use(self, connection: AbstractConnection) -> str:
        """Offer one channel until it closes, as it also does after a publish to an exchange that does not exist."""
        channel = await open_channel(connection, confirms=True, timeout=self._timeout)
        lost = Loss()
        lost.watch(connection, "the connection")
        lost.watch(channel, "the channel")
        self._connection, self._transport = connection, transport_of(connection)
        self._channel = await driver_channel(channel)
        self._in_doubt = False
        self._report_connected()
        self._open.set()
        try:
            while not lost.happened():
                self._blocked = await _is_blocked(self._transport)
                if self._in_doubt and not self._blocked:
                    # A connection whose other end has vanished looks healthy until its heartbeat is long overdue.
                    await close_channel(await open_channel(connection, confirms=False, timeout=self._timeout))
                if self._refusals.ask_anew():
                    return self._refusals.problem() or "a queue refuses"
                with anyio.move_on_after(CHECK_SECONDS):
                    await lost.wait()
        finally:
            self._open.clear()
            self._connection = self._transport = self._channel = self._depth_channel = None
            self._blocked = False
        return lost.reason


async def _is_blocked(transport: UnderlayConnection) -> bool:
    with anyio.move_on_after(UNBLOCKED_SECONDS):
        await transport.ready()
        return False
    return True
