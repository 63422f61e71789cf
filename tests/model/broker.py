"""The adversary between publisher and consumer: it loses, repeats, delays and reorders, and says so or does not.

It decides nothing that a broker would not: what it drops, the ledger must make good.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from schemas.message import decode
from shared.broker import Outgoing, PublishFailed, QueueDepth
from shared.broker_delivery import Death
from shared.topology import Topology

if TYPE_CHECKING:
    from tests.model.process import Process
    from tests.model.world import World

TOPOLOGY = Topology("model", "model", frozenset({"work"}), (1, 5, 30, 120), 20)
WORK = TOPOLOGY.work_exchange
UNCONFIRMED = PublishFailed("no confirm", ambiguous=True)
REFUSED = PublishFailed("not sent", ambiguous=False)


@dataclass(eq=False, slots=True)
class Message:
    """A message in a queue: when it may be delivered, and how often it was."""

    key: str
    body: bytes
    kind: str
    ready_at: datetime
    deliveries: int = 0
    dead: bool = False


@dataclass(eq=False, slots=True)
class ModelDelivery:
    """A message that a process holds, as the consumer gives it."""

    world: "World"
    process: "Process"
    message: Message
    queue: str
    stale: bool = False
    settled: bool = False
    message_id: str = "model"
    correlation_id: str = ""
    trace_context: str = ""

    @property
    def body(self) -> bytes:
        """What was published."""
        return self.message.body

    @property
    def kind(self) -> str:
        """The kind of the body."""
        return self.message.kind

    @property
    def redelivered(self) -> bool:
        """Whether it was delivered before."""
        return self.message.deliveries > 1

    @property
    def death(self) -> Death:
        """Why the broker gave it up."""
        return Death("rejected" if self.message.dead else "unknown", self.queue, None)

    async def ack(self) -> bool:
        """Done with."""
        await self.world.turns.take("ack")
        self.world.turns.line().last = "ack"
        return self._settle()

    async def reject(self, *, requeue: bool) -> bool:
        """Not to be had: to the dead letters, or again."""
        await self.world.turns.take("reject")
        self.world.turns.line().last = "rejected"
        if self._settle():
            self.world.broker.back(self.message, dead=not requeue)
        return True

    def _settle(self) -> bool:
        if self.stale or self.settled:
            return False
        self.settled = True
        self.world.broker.held.pop(self, None)
        return True


@dataclass(eq=False, slots=True)
class ModelBroker:
    """One work queue for each key, delays, and the dead letters."""

    world: "World"
    messages: list[Message] = field(default_factory=list)
    dead: list[Message] = field(default_factory=list)
    held: dict[ModelDelivery, None] = field(default_factory=dict)
    parked: int = 0
    sent: dict[tuple[int, str], int] = field(default_factory=dict)

    def ready(self) -> list[Message]:
        """Give what could be delivered now."""
        return [one for one in self.messages if one.ready_at <= self.world.now]

    def take(self, process: "Process") -> ModelDelivery:
        """Deliver any ready message, usually the first."""
        ready = self.ready()
        message = (
            ready[0] if self.world.random.random() < self.world.profile.in_order else self.world.random.choice(ready)
        )
        self.messages.remove(message)
        return self._hold(process, message, TOPOLOGY.work_queue(message.key))

    def take_dead(self, process: "Process") -> ModelDelivery:
        """Deliver the first dead letter."""
        return self._hold(process, self.dead.pop(0), TOPOLOGY.accounted_queue)

    def _hold(self, process: "Process", message: Message, queue: str) -> ModelDelivery:
        message.deliveries += 1
        delivery = ModelDelivery(self.world, process, message, queue)
        self.held[delivery] = None
        return delivery

    def back(self, message: Message, *, dead: bool = False) -> None:
        """Take a message back: for another delivery, or, after too many, to the dead letters."""
        if message.dead:
            self.dead.append(message)
        elif dead or message.deliveries > self.world.profile.delivery_limit:
            message.dead, message.deliveries = True, 0
            self.parked += 1
            self.dead.append(message)
        else:
            self.messages.insert(0, message)

    def drop(self, process: "Process") -> None:
        """Lose a process's channel: what it holds comes again, to whomever."""
        for delivery in [one for one in self.held if one.process is process]:
            delivery.stale = True
            del self.held[delivery]
            self.back(delivery.message)

    def depth(self) -> QueueDepth:
        """Say what waits; what a worker holds, and what is delayed, is not counted."""
        return QueueDepth(messages=len(self.ready()), consumers=1)

    def accept(self, outgoing: Outgoing, step: str) -> PublishFailed | None:
        """Take one message, with whatever luck it has."""
        world = self.world
        delay = 0 if outgoing.exchange == WORK else int(outgoing.exchange.rpartition(".")[2].rstrip("s"))
        ready_at = world.now + timedelta(seconds=delay)
        self._note(outgoing, step)
        if not world.faults:
            self._put(outgoing, ready_at)
            return None
        fate, rates = world.random.random(), world.profile
        if fate < rates.lost:
            world.watch.count("messages lost")
            return None
        if fate < rates.lost + rates.refused:
            return REFUSED
        if fate < rates.lost + 2 * rates.refused:
            self._put(outgoing, ready_at + timedelta(seconds=world.random.choice((0, 0, 20, 400))))
            return UNCONFIRMED
        self._put(outgoing, ready_at)
        if world.random.random() < rates.repeated:
            self._put(outgoing, ready_at + timedelta(seconds=world.random.choice((0, 0, 3, 90, 2000))))
        return None

    def _put(self, outgoing: Outgoing, ready_at: datetime) -> None:
        self.messages.append(Message(outgoing.routing_key, outgoing.body, outgoing.kind, ready_at))

    def _note(self, outgoing: Outgoing, step: str) -> None:
        message = decode(outgoing.body)
        for account in message.accounts:
            key = (message.occurrence_id, account)
            self.sent[key] = self.sent.get(key, 0) + (step == "publish")
        self.world.watch.published(message)


@dataclass(eq=False, slots=True)
class ModelPublisher:
    """A process's way to the broker. A crash may fall between two messages of a batch."""

    world: "World"
    process: "Process"
    step: str

    async def publish_many(self, messages: Sequence[Outgoing]) -> list[PublishFailed | None]:
        """As the product's publisher."""
        self.process.sending = list(messages)
        try:
            line = await self.world.turns.take(self.step)
        finally:
            self.process.sending = []
        outcomes = [self.world.broker.accept(one, self.step) for one in messages]
        if None in outcomes:
            line.last = "published" if self.step == "publish" else "sent"
        return outcomes
