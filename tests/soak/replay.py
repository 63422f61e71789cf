"""A publisher that repeats what it has seen: copies, late, and out of order."""

import random
from collections import deque
from dataclasses import dataclass, field
from typing import Any

import aio_pika
import anyio

from tests.soak.jobs import JOBS

KEPT = 400
MARK = "soak-replay"
SECONDS = 8.0


@dataclass(slots=True)
class Replayer:
    """Sees every first message of a work exchange through a queue of its own, and publishes some again."""

    url: str
    prefix: str
    seen: deque[tuple[str, bytes, dict[str, Any]]] = field(default_factory=lambda: deque(maxlen=KEPT))
    published: int = 0

    async def listen(self) -> None:
        """Look until cancelled; while the broker is away, try again."""
        while True:
            try:
                await self._listen()
            except (aio_pika.exceptions.AMQPError, OSError, TimeoutError):
                await anyio.sleep(1)

    async def _listen(self) -> None:
        async with await aio_pika.connect(self.url, timeout=SECONDS, heartbeat=5) as connection:
            channel = await connection.channel()
            queue = await channel.declare_queue("", exclusive=True, timeout=SECONDS)
            for job in JOBS:
                await queue.bind(f"{self.prefix}.work", job, timeout=SECONDS)
            async with queue.iterator(no_ack=True) as messages:
                async for message in messages:
                    if not (message.message_id or "").startswith(MARK):
                        kept = {
                            "message_id": message.message_id,
                            "correlation_id": message.correlation_id,
                            "content_type": message.content_type,
                            "type": message.type,
                            "headers": {"traceparent": message.headers["traceparent"]}
                            if "traceparent" in message.headers
                            else {},
                        }
                        self.seen.append((message.routing_key or "", message.body, kept))

    async def replay(self, seed: int) -> int:
        """Publish copies of up to 60 messages of the last, some twice, in any order; give their number."""
        chance = random.Random(seed)
        chosen = chance.sample(list(self.seen), min(60, len(self.seen)))
        copies = [one for one in chosen for _ in range(chance.choice((1, 1, 2, 3)))]
        chance.shuffle(copies)
        sent = 0
        async with await aio_pika.connect(self.url, timeout=SECONDS, heartbeat=5) as connection:
            channel = await connection.channel()
            exchange = await channel.get_exchange(f"{self.prefix}.work", ensure=False)
            for key, body, kept in copies:
                properties = kept | {"message_id": f"{MARK}-{self.published}"}
                message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT, **properties)
                await exchange.publish(message, key, timeout=SECONDS)
                self.published += 1
                sent += 1
        return sent
