"""What Matins needs on the broker: every name and every argument, from one place.

`migrate` makes these parts at deploy time, in the order of `parts()`; the running services only look. The order is the
safety: the environment's mark comes first, so that a wrong environment makes nothing, and where dead letters go exists
before any queue that has some, because RabbitMQ drops a dead letter that has nowhere to go.

A work queue keeps a message until a worker settles it. One that killed its workers `delivery_limit` times goes to the
dead exchange and from there to two queues: parked, for people, and accounted, which the workers read to close the
ledger row. A delay queue holds a message for its fixed time and then hands it to the work exchange under the routing
key that it was published with, which is the key of its work queue. One queue for each delay, because RabbitMQ expires
messages at the head of a queue only: a long delay would hold back every shorter one behind it.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from shared.errors import MatinsError
from shared.topology_versions import recorded_versions, version_of

_NAME = re.compile(r"[a-z][a-z0-9_.-]{0,62}")
# What the names of our own parts go on with behind a prefix.
_INSIDE = re.compile(r"\.(?:work|dead|delay|environment)(?:\.|$)")
_LONGEST_DELAY = 30 * 24 * 3600

# A queue that nobody consumes still counts a delivery each time that a person looks into it, and RabbitMQ 4 drops a
# message after 20 of them. "Unlimited" has no spelling that every supported version accepts.
_NO_DELIVERY_LIMIT = 1_000_000


class InvalidTopology(MatinsError):
    """Names or numbers that the broker's parts cannot be made of; `problems` has a sentence for each."""

    def __init__(self, problems: list[str]) -> None:
        """Join the problems into one message."""
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


@dataclass(frozen=True, slots=True)
class Exchange:
    """A durable exchange."""

    name: str
    kind: Literal["direct", "fanout"]
    arguments: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Queue:
    """A durable queue."""

    name: str
    arguments: Mapping[str, str | int]


@dataclass(frozen=True, slots=True)
class Binding:
    """The way from an exchange to a queue; a fanout exchange pays no attention to the key."""

    exchange: str
    queue: str
    routing_key: str


Part = Exchange | Queue | Binding
_PartT = TypeVar("_PartT", Exchange, Queue, Binding)


@dataclass(frozen=True, slots=True)
class Topology:
    """The parts of one environment.

    `queues` are the keys of the work queues, `delays` whole seconds, `delivery_limit` the deliveries after which a
    message is dead. Raises InvalidTopology with everything that is wrong at once.
    """

    prefix: str
    environment: str
    queues: frozenset[str]
    delays: tuple[int, ...]
    delivery_limit: int

    def __post_init__(self) -> None:
        """Refuse what the broker would refuse later, or would take and then misbehave."""
        if problems := list(self._problems()):
            raise InvalidTopology(problems)

    @property
    def work_exchange(self) -> str:
        """Where work is published, under the key of its queue."""
        return f"{self.prefix}.work"

    def work_queue(self, key: str) -> str:
        """The queue of a key, in the version that has this process's arguments."""
        return f"{self.prefix}.work.{self.routing_key(key)}"

    def routing_key(self, key: str) -> str:
        """What messages for the queue of a key are published with: the key, and the version of its arguments."""
        return key + version_of(self._work_arguments())

    def other_versions(self, recorded: Mapping[str, Any] | None) -> dict[str, str]:
        """Give the recorded work queues of our keys that were made with other arguments, each with its key."""
        known = recorded_versions(self.prefix, self.queues, recorded)
        return {name: key for name, key in known.items() if name != self.work_queue(key)}

    @property
    def queue_names(self) -> list[str]:
        """Every queue that this process counts on."""
        return [part.name for part in self._parts_of(Queue)]

    def delay_exchange(self, seconds: int) -> str:
        """Where work is published that shall come back after `seconds`; the queue behind it has the same name."""
        return f"{self.prefix}.delay.{seconds}s"

    @property
    def dead_exchange(self) -> str:
        """Where the broker sends what it gives up on."""
        return f"{self.prefix}.dead"

    @property
    def parked_queue(self) -> str:
        """The dead messages that people look at; nothing consumes it."""
        return f"{self.prefix}.dead.parked"

    @property
    def accounted_queue(self) -> str:
        """The dead messages that workers read to settle their ledger rows."""
        return f"{self.prefix}.dead.accounted"

    @property
    def environment_exchange(self) -> str:
        """Says, in an argument, which environment the prefix belongs to; making it for another one is refused."""
        return f"{self.prefix}.environment"

    @property
    def environment_mark(self) -> str:
        """Says the same in its name, for services that may only look."""
        return f"{self.prefix}.environment.{self.environment}"

    def delay_for(self, remaining_seconds: float) -> int:
        """Choose the delay queue for a message that must not be worked on for `remaining_seconds`.

        The longest delay that is not too long, or else the shortest: a message that comes back early is delayed again
        for what then remains, whereas one that comes back late has lost the time. Each round takes most of the rest.
        """
        return max((delay for delay in self.delays if delay <= remaining_seconds), default=min(self.delays))

    def parts(self) -> tuple[Part, ...]:
        """Everything, in the order in which it must be made."""
        return (*self._environment_parts(), *self._dead_parts(), *self._work_parts(), *self._delay_parts())

    def definitions(self, virtual_host: str = "/") -> dict[str, Any]:
        """Write the parts as a definitions document that RabbitMQ imports."""
        durable = {"vhost": virtual_host, "durable": True, "auto_delete": False}
        return {
            "exchanges": [
                {"name": part.name, "type": part.kind, "internal": False, "arguments": dict(part.arguments), **durable}
                for part in self._parts_of(Exchange)
            ],
            "queues": [
                {"name": part.name, "arguments": dict(part.arguments), **durable} for part in self._parts_of(Queue)
            ],
            "bindings": [
                {
                    "source": part.exchange,
                    "vhost": virtual_host,
                    "destination": part.queue,
                    "destination_type": "queue",
                    "routing_key": part.routing_key,
                    "arguments": {},
                }
                for part in self._parts_of(Binding)
            ],
        }

    def as_record(self) -> dict[str, Any]:
        """Write down, in JSON types, what was made: a passive look at the broker shows names but no arguments."""
        return {
            "prefix": self.prefix,
            "environment": self.environment,
            "exchanges": {part.name: {"type": part.kind, **part.arguments} for part in self._parts_of(Exchange)},
            "queues": {part.name: dict(part.arguments) for part in self._parts_of(Queue)},
            "bindings": [[part.exchange, part.queue, part.routing_key] for part in self._parts_of(Binding)],
        }

    def differences(self, recorded: Mapping[str, Any]) -> list[str]:
        """Say what this process needs and the record lacks or holds otherwise, one sentence each.

        What the record has beyond that is no difference: another release of the fleet may need more queues.
        """
        mine = self.as_record()
        found = [
            f"{field} is {recorded.get(field)!r} in the record, {mine[field]!r} here"
            for field in ("prefix", "environment")
            if recorded.get(field) != mine[field]
        ]
        for kind, field in (("exchange", "exchanges"), ("queue", "queues")):
            for name, arguments in mine[field].items():
                found += _argument_differences(f"{kind} {name}", arguments, recorded.get(field, {}).get(name))
        found += [
            f"queue {queue} is not bound to exchange {exchange} with key {key!r} in the record"
            for exchange, queue, key in mine["bindings"]
            if [exchange, queue, key] not in recorded.get("bindings", [])
        ]
        return found

    def _parts_of(self, kind: type[_PartT]) -> list[_PartT]:
        return [part for part in self.parts() if isinstance(part, kind)]

    def _problems(self) -> Iterator[str]:
        names = [("prefix", self.prefix), ("environment", self.environment)]
        names += [("queue", key) for key in sorted(self.queues)]
        for what, name in names:
            if not _NAME.fullmatch(name):
                yield (
                    f"{what} {name!r} must begin with a small letter and go on with at most 62 small letters, "
                    "digits, '.', '_' or '-'"
                )
        if self.prefix.startswith("amq."):
            yield f"prefix {self.prefix!r} is reserved by RabbitMQ: names may not begin with 'amq.'"
        if match := _INSIDE.search(self.prefix):
            # Whoever may use the queues of that one might read these.
            yield f"prefix {self.prefix!r} would lie among the parts of the prefix {self.prefix[: match.start()]!r}"
        if not self.delays or len(set(self.delays)) != len(self.delays):
            yield f"delays {self.delays!r} must be at least one number of seconds, each once"
        for delay in self.delays:
            if not 1 <= delay <= _LONGEST_DELAY:
                yield f"delay {delay!r} must lie between 1 and {_LONGEST_DELAY} seconds"
        if self.delivery_limit < 1:
            yield f"delivery limit {self.delivery_limit!r} must be at least 1"

    def _environment_parts(self) -> Iterator[Part]:
        # The exchange whose making is refused for another environment comes first: the mark is then never made.
        yield Exchange(self.environment_exchange, "fanout", {"alternate-exchange": self.environment_mark})
        yield Exchange(self.environment_mark, "fanout", {})

    def _dead_parts(self) -> Iterator[Part]:
        yield Exchange(self.dead_exchange, "fanout", {})
        for name in (self.parked_queue, self.accounted_queue):
            yield Queue(name, {"x-queue-type": "quorum", "x-delivery-limit": _NO_DELIVERY_LIMIT})
            yield Binding(self.dead_exchange, name, "")

    def _work_parts(self) -> Iterator[Part]:
        yield Exchange(self.work_exchange, "direct", {})
        for key in sorted(self.queues):
            name = self.work_queue(key)
            yield Queue(name, self._work_arguments())
            yield Binding(self.work_exchange, name, self.routing_key(key))

    def _work_arguments(self) -> dict[str, str | int]:
        return {**_dead_lettering(self.dead_exchange), "x-delivery-limit": self.delivery_limit}

    def _delay_parts(self) -> Iterator[Part]:
        for seconds in sorted(self.delays):
            name = self.delay_exchange(seconds)
            yield Exchange(name, "fanout", {})
            yield Queue(name, {**_dead_lettering(self.work_exchange), "x-message-ttl": seconds * 1000})
            yield Binding(name, name, "")


def _dead_lettering(exchange: str) -> dict[str, str | int]:
    """The arguments that, together, make a quorum queue keep a dead letter until its new queue has confirmed it."""
    return {
        "x-queue-type": "quorum",
        "x-dead-letter-exchange": exchange,
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }


def _argument_differences(part: str, needed: Mapping[str, Any], recorded: Mapping[str, Any] | None) -> Iterator[str]:
    if recorded is None:
        yield f"{part} is not in the record"
        return
    for argument, value in needed.items():
        if recorded.get(argument) != value:
            yield f"{part}: {argument} is {recorded.get(argument)!r} in the record, {value!r} is needed"
