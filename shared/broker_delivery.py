"""A message that was taken from a queue and is to be settled: acknowledged, or rejected."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, NamedTuple

from aiormq.abc import DeliveredMessage

from shared.broker_errors import ANY_ERROR, raise_unless_of_the_driver, said
from shared.logs import logger

SETTLE_SECONDS = 5.0
HANDED_ON = "matins-handed-on"
_COUNT = re.compile(r"[0-9]{1,6}")
_TRACEPARENT = re.compile(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}")

_log = logger(__name__)


class Death(NamedTuple):
    """Why the broker gave a message up: rejected, delivery_limit, maxlen, expired, or unknown; of which queue, when."""

    reason: str
    queue: str
    at: datetime | None


class Delivery:
    """One delivery of a message, from the queue named `queue`; `body` is what was published.

    All else comes from whoever may publish to the broker and is not to be trusted.
    """

    __slots__ = ("_message", "_settled", "body", "queue")

    def __init__(self, queue: str, message: DeliveredMessage) -> None:
        self.queue = queue
        self.body = message.body
        self._message = message
        self._settled = False

    @property
    def redelivered(self) -> bool:
        """Tell whether this message was delivered before, to anybody."""
        return bool(self._message.redelivered)

    @property
    def stale(self) -> bool:
        """Tell whether its channel is gone, so that it can no longer be settled and comes again by itself."""
        return bool(self._message.channel.is_closed)

    @property
    def message_id(self) -> str | None:
        """The id that the publisher gave it."""
        return self._message.header.properties.message_id

    @property
    def correlation_id(self) -> str | None:
        """The identity of its occurrence."""
        return self._message.header.properties.correlation_id

    @property
    def kind(self) -> str | None:
        """The kind and version of the body."""
        return self._message.header.properties.message_type

    @property
    def content_type(self) -> str | None:
        """The media type of the body."""
        return self._message.header.properties.content_type

    @property
    def content_encoding(self) -> str | None:
        """The compression of the body; a message of ours has none."""
        return self._message.header.properties.content_encoding

    @property
    def timestamp(self) -> datetime | None:
        """When it was published, by the publisher's clock."""
        return self._message.header.properties.timestamp

    @property
    def routing_key(self) -> str:
        """The key that it was published under, also after a delay or a death."""
        return self._message.routing_key or ""

    @property
    def headers(self) -> Mapping[str, Any]:
        """The headers, the broker's own (`x-death` and its kin) among them."""
        return self._message.header.properties.headers or {}

    @property
    def trace_context(self) -> str:
        """The W3C `traceparent` that travelled with it; empty where there is none, or anything else in its place."""
        found = self.headers.get("traceparent")
        return found if isinstance(found, str) and _TRACEPARENT.fullmatch(found) else ""

    @property
    def handed_on(self) -> int:
        """How often it was handed on by workers that lack its job's code; 0 where that is not told in our way."""
        found = self.headers.get(HANDED_ON)
        return int(found) if isinstance(found, str) and _COUNT.fullmatch(found) else 0

    @property
    def death(self) -> Death:
        """Tell why, of which queue and when the broker gave it up last, as far as it says."""
        deaths = self.headers.get("x-death")
        last = deaths[0] if isinstance(deaths, list) and deaths and isinstance(deaths[0], dict) else {}
        reason, queue, at = last.get("reason"), last.get("queue"), last.get("time")
        return Death(
            reason if isinstance(reason, str) else "unknown",
            queue if isinstance(queue, str) else "",
            at if isinstance(at, datetime) else None,
        )

    @property
    def delivery_count(self) -> int:
        """How often it was delivered before, as far as this version of the broker says; 0 if it doesn't."""
        counts = (self.headers.get(name) for name in ("x-delivery-count", "x-acquired-count"))
        return max((count for count in counts if isinstance(count, int)), default=0)

    async def ack(self) -> bool:
        """Say that it is done with; True if that was sent.

        False if the channel that it came on is gone (the message then comes again) or if it was settled before.
        """
        return await self._settle("ack", self._message.channel.basic_ack, wait=False)

    async def reject(self, *, requeue: bool) -> bool:
        """Give it back to its queue, which counts against its delivery limit, or to the dead; as `ack` otherwise."""
        return await self._settle("reject", self._message.channel.basic_reject, requeue=requeue, wait=False)

    async def _settle(self, verb: str, send: Callable[..., Awaitable[None]], **options: bool) -> bool:
        if self._settled:
            return False
        self._settled = True
        try:
            # The driver's queue of frames to write has no reader any more once its connection is dead.
            async with asyncio.timeout(SETTLE_SECONDS):
                await send(self._message.delivery_tag, **options)
        except ANY_ERROR as error:
            raise_unless_of_the_driver(error)
            _log.info("delivery_not_settled", verb=verb, queue=self.queue, message=self.message_id, reason=said(error))
            return False
        return True
