"""A message to publish, how it goes out on a channel, how that can end, and what the broker refused lately."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from aio_pika.exceptions import ChannelNotFoundEntity, DeliveryError, PublishError
from aiormq.channel import Channel as DriverChannel
from aiormq.exceptions import ChannelAccessRefused
from pamqp.commands import Basic

from schemas.message import MAXIMUM_BYTES
from shared import clock
from shared.broker_errors import ANY_ERROR, raise_unless_of_the_driver, said
from shared.errors import MatinsError

PERSISTENT = 2
REFUSAL_SECONDS = 10.0
ANEW_SECONDS = 5.0


class PublishFailed(MatinsError):
    """A publish was not confirmed. `ambiguous`: it was sent and may have arrived, or may yet."""

    def __init__(self, reason: str, *, ambiguous: bool) -> None:
        """Take the reason, which is also the message."""
        super().__init__(reason)
        self.reason = reason
        self.ambiguous = ambiguous


class MessageTooLarge(PublishFailed):
    """A message larger than any reader accepts; it was not sent."""

    def __init__(self, size: int) -> None:
        """Take the size of the body in bytes."""
        super().__init__(f"the body has {size} bytes; at most {MAXIMUM_BYTES} may be published", ambiguous=False)


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message to publish. `message_id` must not be that of another one in flight: the broker names returns by it."""

    exchange: str
    routing_key: str
    body: bytes
    message_id: str
    correlation_id: str
    kind: str
    headers: Mapping[str, str]


class PublishRefused(PublishFailed):
    """The broker gave the message back, or closed the channel over it: nothing takes it as things are."""


class QueueRefused(PublishRefused):
    """The queue gave the message back: it is full, or has no leader."""


class Refusals:
    """What the broker refused lately, by exchange and key, for whoever asks whether a publish is likely to succeed.

    A confirm at the same place ends a refusal, and so does time: where the place is mended, it may be another process
    that finds out.
    """

    def __init__(self) -> None:
        self._latest: dict[tuple[str, str], tuple[float, str]] = {}
        self._queues_since: dict[tuple[str, str], float] = {}

    def note(self, message: Outgoing, failure: PublishFailed | None) -> None:
        """Take how a publish ended."""
        place = message.exchange, message.routing_key
        if isinstance(failure, PublishRefused):
            self._latest[place] = clock.monotonic(), failure.reason
        if isinstance(failure, QueueRefused):
            self._queues_since.setdefault(place, clock.monotonic())
        if failure is None and self._latest:
            self._latest.pop(place, None)
            self._queues_since.pop(place, None)

    def problem(self) -> str | None:
        """Say what was refused in the last seconds."""
        since = clock.monotonic() - REFUSAL_SECONDS
        # Asked in another thread than the one that publishes.
        reasons = [reason for noted, reason in list(self._latest.values()) if noted > since]
        return "; ".join(dict.fromkeys(reasons)) or None

    def ask_anew(self) -> bool:
        """Tell, once in a while, that a queue has refused for long enough to ask on another channel.

        RabbitMQ 3.10 never tells a channel that a queue whose limit was lifted takes messages again.
        """
        since = clock.monotonic() - ANEW_SECONDS
        long = [place for place, first in self._queues_since.items() if first < since]
        for place in long:
            del self._queues_since[place]
        return bool(long)


async def publish_on(channel: DriverChannel, message: Outgoing) -> PublishFailed | None:
    """Publish one message and give, once it is decided, nothing or why it failed."""
    try:
        await channel.basic_publish(
            message.body,
            exchange=message.exchange,
            routing_key=message.routing_key,
            properties=_properties(message),
            mandatory=True,
            wait=False,
        )
    except PublishError:
        return PublishRefused(
            f"exchange {message.exchange} has no queue for {message.routing_key!r}; run migrate", ambiguous=False
        )
    except DeliveryError:
        return QueueRefused(
            f"the queue behind exchange {message.exchange} for {message.routing_key!r} is full or has no leader: "
            "refused by the broker",
            ambiguous=False,
        )
    except ChannelNotFoundEntity as error:
        # It closes the channel for every message in flight, so this one may have been a good one before.
        return PublishRefused(f"{said(error)}; run migrate", ambiguous=True)
    except ChannelAccessRefused as error:
        return PublishRefused(said(error), ambiguous=True)
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error)
        return PublishFailed(f"no confirm: {said(error)}", ambiguous=True)
    return None


def _properties(message: Outgoing) -> Basic.Properties:
    return Basic.Properties(
        content_type="application/json",
        headers=dict[str, Any](message.headers),
        delivery_mode=PERSISTENT,
        correlation_id=message.correlation_id,
        message_id=message.message_id,
        timestamp=clock.utc_now(),
        message_type=message.kind,
        app_id="matins",
    )
