"""What a worker publishes: further tries to the delay queues, and messages that it hands on."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass

from schemas.message import WorkMessage, encode, kind_of
from shared.broker import HANDED_ON, Delivery, Outgoing, Publisher
from shared.fleet import Spoken
from shared.telemetry import Destination, metrics, retry_span
from shared.topology import Topology
from worker.occurrences import WorkOccurrence
from worker.settle import Again

MOST_TIMES = 999_999


@dataclass(frozen=True, slots=True)
class Sender:
    """Publishes for one worker."""

    publisher: Publisher
    topology: Topology
    spoken: Spoken

    async def publish_again(
        self, occurrence: WorkOccurrence, generation: int, queue: str, again: Sequence[Again]
    ) -> list[Again]:
        """Publish further tries, each alone, to the delay that fits; give those that were confirmed.

        The others stay unmarked in the ledger, and the trigger's publisher sends them.
        """
        if not again:
            return []
        identity = str(occurrence.identity)
        with retry_span(
            occurrence.identity.job,
            Destination(self.topology.delay_exchange(self.topology.delays[0]), queue),
            occurrence=identity,
            accounts=len(again),
        ) as span:
            outgoing = [
                self._outgoing(
                    _message_again(occurrence, generation, one),
                    queue,
                    one.wait.total_seconds(),
                    identity,
                    span.context,
                )
                for one in again
            ]
            failures = await self.publisher.publish_many(outgoing)
        published = [one for one, failure in zip(again, failures, strict=True) if failure is None]
        metrics.retries.add(len(again), job=occurrence.identity.job)
        if len(published) < len(again):
            metrics.publish_failures.add(len(again) - len(published), job=occurrence.identity.job)
        return published

    async def hand_on(
        self,
        message: WorkMessage,
        queue: str,
        identity: str,
        context: str,
        *,
        wait: float,
        accounts: Sequence[str],
        isolated: bool,
    ) -> bool:
        """Publish a message's accounts again, as one message or each isolated; True when all were confirmed."""
        groups = [(account,) for account in accounts] if isolated else [tuple(accounts)]
        outgoing = [
            self._outgoing(
                WorkMessage(
                    job=message.job,
                    occurrence_id=message.occurrence_id,
                    scheduled_at=message.scheduled_at,
                    generation=message.generation,
                    epoch=message.epoch,
                    published_at=message.published_at,
                    accounts=group,
                    isolated=isolated,
                ),
                queue,
                wait,
                identity,
                context,
            )
            for group in groups
        ]
        return not any(await self.publisher.publish_many(outgoing))

    async def hand_back(self, delivery: Delivery, queue: str, *, wait: float, handed_on: int = 0) -> bool:
        """Publish a message unchanged, as new and uncharged; True when it was confirmed.

        A message that goes back to its queue by a reject counts against its delivery limit. `handed_on` travels with it
        for the next worker that lacks its job's code.
        """
        exchange = self._exchange(wait)
        headers = {"traceparent": delivery.trace_context} if delivery.trace_context else {}
        if handed_on:
            headers[HANDED_ON] = str(min(handed_on, MOST_TIMES))
        outgoing = Outgoing(
            exchange,
            self.topology.routing_key(queue),
            delivery.body,
            uuid.uuid4().hex,
            delivery.correlation_id or "",
            delivery.kind or "",
            headers,
        )
        return (await self.publisher.publish_many([outgoing]))[0] is None

    def _exchange(self, wait: float) -> str:
        return self.topology.delay_exchange(self.topology.delay_for(wait)) if wait > 0 else self.topology.work_exchange

    def _outgoing(self, message: WorkMessage, queue: str, wait: float, identity: str, context: str) -> Outgoing:
        headers = {"traceparent": context} if context else {}
        key, version = self.topology.routing_key(queue), self.spoken.oldest
        body = encode(message, version)
        return Outgoing(self._exchange(wait), key, body, uuid.uuid4().hex, identity, kind_of(version), headers)


def _message_again(occurrence: WorkOccurrence, generation: int, again: Again) -> WorkMessage:
    return WorkMessage(
        job=occurrence.identity.job,
        occurrence_id=occurrence.id,
        scheduled_at=occurrence.scheduled_at,
        generation=generation,
        published_at=again.settled_at,
        accounts=(again.account,),
        isolated=again.isolated,
    )
