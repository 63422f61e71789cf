"""Consuming: messages are taken on a connection of their own and handed on at once; the work is done elsewhere.

The driver cancels whatever runs inside its callbacks when the connection drops. So a callback here only wraps the
message in a `Delivery` and gives it to `deliver`; the work runs in its owner's task group, comes to its end whatever
happens to the connection, and merely finds that it cannot acknowledge any more. The message then comes again, and the
ledger knows that it is settled.

Each queue has a channel of its own, so that a queue that is deleted, or whose consumer the broker cancels, stops
nobody else: it alone is taken up again, under a new consumer tag, as soon as the queue is there. What the broker does
not announce is found by looking: every few seconds each queue is asked for, and whether it still knows a consumer.
"""

import itertools
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import anyio
from aio_pika.abc import AbstractChannel, AbstractConnection
from aiormq.abc import DeliveredMessage
from aiormq.channel import Channel as DriverChannel
from aiormq.exceptions import ChannelAccessRefused, ChannelNotFoundEntity
from anyio.abc import TaskStatus

from shared import clock
from shared.broker_connection import SHORTEST_PAUSE, Client, Loss, close_channel, driver_channel, open_channel
from shared.broker_delivery import Delivery
from shared.broker_errors import ANY_ERROR, BrokerUnavailable, raise_unless_of_the_driver, said
from shared.logs import logger

WATCH_SECONDS = 3.0
NOT_CONSUMED = "not consumed yet"

_log = logger(__name__)


@dataclass(slots=True)
class _Subscription:
    """One queue that is consumed on one channel; `unseen` counts looks at the queue that found no consumer at all."""

    channel: DriverChannel
    tag: str
    lost: Loss
    unseen: int = 0


@dataclass(slots=True)
class _QueueState:
    """What is known of one queue: how it is consumed now, or why it is not; `lock` is held while that is changed."""

    prefetch: int
    lock: anyio.Lock = field(default_factory=anyio.Lock)
    subscription: _Subscription | None = None
    problem: str | None = NOT_CONSUMED
    dropped: bool = False


class Consumer(Client):
    """Takes messages from `queues`, a prefetch for each name, until it is closed or cancelled.

    `timeout`, in seconds, bounds every wait for the broker.
    """

    def __init__(
        self,
        url: Callable[[], str],
        queues: Mapping[str, int],
        *,
        name: str,
        heartbeat: int,
        timeout: float,
        watch_interval: float = WATCH_SECONDS,
    ) -> None:
        super().__init__(url, name=name, heartbeat=heartbeat, timeout=timeout)
        self._queues = {queue: _QueueState(prefetch) for queue, prefetch in queues.items()}
        self._watch_interval = watch_interval
        self._also: set[str] = set()
        self._begin: Callable[[str, _QueueState], None] | None = None
        self._stopping = False
        self._tags = (f"{secrets.token_hex(4)}.{number}" for number in itertools.count(1))

    async def run(
        self, deliver: Callable[[Delivery], None], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Consume until `close`, or until cancelled; started once the first attempt has succeeded or failed.

        `deliver` is called for each message and must neither wait nor raise; the prefetch bounds what it is given.
        """
        self._deliver = deliver
        await self._keep_connected(task_status)

    @property
    def ready(self) -> bool:
        """Tell whether every queue is being consumed."""
        return self.problem is None

    @property
    def problem(self) -> str | None:
        """Say which queues are not being consumed, and why."""
        if self._disconnected is not None:
            return self._disconnected
        if self._stopping:
            return "consuming has been stopped"
        problems = [f"queue {name}: {state.problem}" for name, state in self._queues.items() if state.problem]
        return "; ".join(problems) or None

    async def consume_also(self, queues: Mapping[str, int]) -> None:
        """Consume these beside the queues that it was made for, a prefetch for each; drop those of an earlier call.

        What was taken of one that is dropped can still be settled.
        """
        for queue in self._also - queues.keys():
            state = self._queues.pop(queue)
            state.dropped = True
            async with state.lock:
                if state.subscription is not None:
                    await self._cancel(queue, state.subscription)
        added = queues.keys() - self._queues.keys()
        self._also = (self._also & queues.keys()) | added
        for queue in added:
            self._queues[queue] = _QueueState(queues[queue])
            if self._begin is not None:
                self._begin(queue, self._queues[queue])

    async def stop_consuming(self) -> None:
        """Take no more messages; those that were taken can still be settled until `close`."""
        self._stopping = self._ended = True
        for queue, state in self._queues.items():
            # A first message can be here before the consumer that it came for is known to be registered.
            async with state.lock:
                if state.subscription is not None:
                    await self._cancel(queue, state.subscription)

    async def _use(self, connection: AbstractConnection) -> str:
        lost = Loss()
        lost.watch(connection, "the connection")
        self._report_connected()
        try:
            async with anyio.create_task_group() as group:

                def begin(queue: str, state: _QueueState) -> None:
                    group.start_soon(self._keep_subscribed, connection, queue, state)

                for queue, state in self._queues.items():
                    begin(queue, state)
                self._begin = begin
                group.start_soon(self._watch, connection, lost)
                await lost.wait()
                group.cancel_scope.cancel()
        finally:
            self._begin = None
            for state in self._queues.values():
                state.subscription, state.problem = None, NOT_CONSUMED
        return lost.reason

    async def _keep_subscribed(self, connection: AbstractConnection, queue: str, state: _QueueState) -> None:
        while not self._stopping and not state.dropped:
            known = state.problem
            try:
                state.problem = await self._subscribe(connection, queue, state)
            except BrokerUnavailable as error:
                state.problem = str(error)
            state.subscription = None
            # When the whole connection is lost, this task ends in the pause: that is one event, not one for each queue.
            await clock.sleep(SHORTEST_PAUSE)
            if state.problem != known:
                _log.warning("queue_not_consumed", queue=queue, reason=state.problem)

    async def _subscribe(self, connection: AbstractConnection, queue: str, state: _QueueState) -> str:
        """Consume on a new channel until the consumer is lost; return why."""
        channel = await open_channel(connection, confirms=False, timeout=self._timeout)
        lower = await driver_channel(channel)
        subscription = _Subscription(lower, f"matins.{next(self._tags)}", Loss())
        subscription.lost.watch(channel, "its channel")
        lower.on_consumer_cancel_callbacks.add(lambda _: subscription.lost.report("the broker cancelled its consumer"))

        async def take(message: DeliveredMessage) -> None:
            self._deliver(Delivery(queue, message))

        async with state.lock:
            if self._stopping or state.dropped:
                return NOT_CONSUMED
            try:
                await lower.basic_qos(prefetch_count=state.prefetch, timeout=self._timeout)
                await lower.basic_consume(queue, take, consumer_tag=subscription.tag, timeout=self._timeout)
            except ANY_ERROR as error:
                raise_unless_of_the_driver(error)
                return _refusal(error)
            state.subscription, state.problem = subscription, None
        _log.info("queue_consumed", queue=queue, prefetch=state.prefetch)
        await subscription.lost.wait()
        # What is unsettled on this channel goes back; its holder finds that it cannot acknowledge any more.
        await close_channel(channel)
        return subscription.lost.reason

    async def _cancel(self, queue: str, subscription: _Subscription) -> None:
        try:
            await subscription.channel.basic_cancel(subscription.tag, timeout=self._timeout)
        except ANY_ERROR as error:
            raise_unless_of_the_driver(error)
            _log.warning("cancel_failed", queue=queue, reason=said(error))

    async def _watch(self, connection: AbstractConnection, lost: Loss) -> None:
        """Look at every consumed queue, again and again, on a channel that does nothing else."""
        channel: AbstractChannel | None = None
        while not self._stopping:
            await clock.sleep(self._watch_interval)
            for queue, state in list(self._queues.items()):
                try:
                    if channel is None or channel.is_closed:
                        channel = await open_channel(connection, confirms=False, timeout=self._timeout)
                    if state.subscription is not None and not self._stopping:
                        await self._look_at(channel, queue, state.subscription)
                except (BrokerUnavailable, TimeoutError) as error:
                    lost.report(f"the connection is dead: {said(error)}")

    async def _look_at(self, channel: AbstractChannel, queue: str, subscription: _Subscription) -> None:
        lower = await driver_channel(channel)
        try:
            found = await lower.queue_declare(queue, passive=True, timeout=self._timeout)
        except ChannelNotFoundEntity as error:
            subscription.lost.report(_refusal(error))
            return
        except ChannelAccessRefused:
            # Some versions let only those look who have a right on the queue; then the broker's own word must do.
            return
        except TimeoutError:
            raise
        except ANY_ERROR as error:
            # The look's own channel is gone; if the connection is too, that is reported by itself.
            raise_unless_of_the_driver(error)
            return
        subscription.unseen = 0 if found.consumer_count else subscription.unseen + 1
        if subscription.tag not in subscription.channel.consumers:
            subscription.lost.report("its consumer is gone")
        elif subscription.unseen > 1:
            subscription.lost.report("the broker knows no consumer of it")


def _refusal(error: BaseException) -> str:
    match error:
        case ChannelNotFoundEntity():
            return "it does not exist; run migrate"
        case ChannelAccessRefused():
            return f"access is refused: {said(error)}"
        case _:
            return f"it cannot be consumed: {said(error)}"
