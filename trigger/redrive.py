"""Publishing parked messages again: what the broker gave up on gets another way to a worker, by a person's order.

A message only points at rows of the ledger. So this starts nothing that the ledger would not: who waits for the message
is run, who has ended (as `dead`, say) stays so until a re-run, and a copy finds the row settled. A message is taken,
published and confirmed, recorded, and only then acknowledged; whatever dies in between leaves it parked as well.
"""

import uuid
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from schemas.message import kind_of
from shared.broker import BrokerUnavailable, Delivery, Outgoing, check_topology
from shared.broker_parked import Parking, parking
from shared.fleet import read_topology
from shared.postgres import Session
from shared.sql_files import statement
from shared.topology import Topology
from trigger.operate import Order
from trigger.parked import Bound, Parked, id_of, judge

AUDIT_REDRIVE = statement("trigger", "audit_redrive")

# Messages that are passed over are held until the end.
MOST_AT_ONCE = 10_000

End = Literal["redriven", "refused", "failed"]


@dataclass(frozen=True, slots=True)
class Attempted:
    """One message that was to be redriven, and what became of it; `told` says why it stays parked."""

    parked: Parked
    end: End
    told: str = ""


@dataclass(slots=True)
class Redriven:
    """What was done: `missing` are the ids that are not parked, `left` how many messages still are.

    `problem` says why it ended before all were looked at, and is '' if it did not.
    """

    attempted: list[Attempted] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    left: int = 0
    problem: str = ""

    def ended(self, end: End) -> list[Attempted]:
        """Give those that ended so."""
        return [one for one in self.attempted if one.end == end]

    @property
    def told(self) -> str:
        """What was done, in a sentence."""
        done = self.ended("redriven")
        waiting = sum(one.parked.waiting for one in done)
        return f"{len(done)} messages were published again, for {waiting} accounts that wait; {self.left} are parked"

    @property
    def troubles(self) -> list[str]:
        """What was not done, and why, a line each."""
        failed = self.ended("failed")
        lines = [
            f"{one.parked.message or 'a message without an id'} stays parked: {one.told}"
            for one in [*failed, *self.ended("refused")]
        ]
        lines += [f"{missing[:120]!r} is not parked, as far as was looked" for missing in self.missing]
        return lines + ([f"not all were looked at: {self.problem}"] if self.problem and not failed else [])


@dataclass(frozen=True, slots=True)
class _Redriving:
    """What each message is redriven with."""

    session: Session
    queue: Parking
    topology: Topology
    recorded: Mapping[str, Any]
    order: Order


async def redrive(
    session: Session, url: str, topology: Topology, chosen: Collection[str] | None, order: Order, *, timeout: float
) -> Redriven:
    """Publish parked messages again: those with the ids `chosen`, or with None all that are parked now.

    Every wait for the broker is at most `timeout` seconds. What cannot be read, or names nothing here, is refused and
    stays. Raises WrongEnvironment, TopologyMissing, and BrokerUnavailable before anything is done.
    """
    await check_topology(url, topology, timeout=timeout)
    recorded = await read_topology(session) or {}
    done = Redriven(missing=sorted(set(chosen or ())))
    async with parking(url, topology.parked_queue, timeout=timeout) as queue:
        redriving = _Redriving(session, queue, topology, recorded, order)
        try:
            await _go_through(redriving, None if chosen is None else frozenset(chosen), done)
        except BrokerUnavailable as error:
            done.problem = str(error)
        done.left = max(queue.waiting - len(done.ended("redriven")), 0)
    return done


async def _go_through(redriving: _Redriving, chosen: frozenset[str] | None, done: Redriven) -> None:
    """Redrive what is chosen of what is parked, and not more than was: one that dies again at once is behind them."""
    for _ in range(min(redriving.queue.waiting, MOST_AT_ONCE)):
        delivery = await redriving.queue.take()
        if delivery is None:
            return
        message = id_of(delivery)
        if chosen is not None and message not in chosen:
            continue
        done.missing = [one for one in done.missing if one != message]
        attempted, goes_on = await _redrive_one(redriving, delivery)
        done.attempted.append(attempted)
        if not goes_on:
            done.problem = attempted.told
        if not goes_on or (chosen is not None and not done.missing):
            return


async def _redrive_one(redriving: _Redriving, delivery: Delivery) -> tuple[Attempted, bool]:
    """Publish one message and acknowledge it; tell whether another can be tried."""
    parked, bound = await judge(redriving.session, delivery, redriving.topology, redriving.recorded)
    if bound is None:
        return Attempted(parked, "refused", parked.problem), True
    failure = await redriving.queue.publish(_again(delivery, bound, redriving.topology.work_exchange))
    if failure is not None and not failure.ambiguous:
        return Attempted(parked, "failed", failure.reason), redriving.queue.publishes
    # Before it is acknowledged, so that nothing leaves the queue unrecorded; what may have arrived is recorded too.
    detail = {"message": parked.message, "generation": parked.generation, "accounts": parked.count}
    detail |= {"waiting": parked.waiting, "routing_key": bound.routing_key, "confirmed": failure is None}
    order, named = redriving.order, (bound.message.job, bound.message.occurrence_id)
    await redriving.session.execute(AUDIT_REDRIVE, *named, order.instance, order.actor, order.reason, detail)
    if failure is not None:
        return Attempted(parked, "failed", f"it may have been published: {failure.reason}"), False
    if not await delivery.ack():
        return Attempted(parked, "failed", "it was published, and is still parked: its channel was lost"), False
    return Attempted(parked, "redriven"), True


def _again(delivery: Delivery, bound: Bound, exchange: str) -> Outgoing:
    """Give the message as it was first published, without what the broker has written on it since."""
    headers = {"traceparent": delivery.trace_context} if delivery.trace_context else {}
    message_id = delivery.message_id or str(uuid.uuid4())
    kind = kind_of(bound.message.version)
    return Outgoing(exchange, bound.routing_key, delivery.body, message_id, str(bound.identity), kind, headers)
