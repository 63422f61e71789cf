"""The parts on the broker: made by `migrate` at deploy time, looked at by the services, changed by nobody.

RabbitMQ refuses to make again a part that exists with other arguments, and says which one differs. That refusal is
handed on in its own words; nothing here ever deletes, since a queue may hold work.
"""

import re
from dataclasses import dataclass

from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity, ChannelPreconditionFailed
from aiormq.exceptions import ChannelAccessRefused

from shared.broker_connection import close_channel, close_connection, open_channel, open_connection
from shared.broker_errors import ANY_ERROR, BrokerUnavailable, raise_unless_of_the_driver, said
from shared.errors import MatinsError
from shared.topology import Binding, Exchange, Part, Queue, Topology

HEARTBEAT_SECONDS = 20

_DIFFERENCE = re.compile(
    r"inequivalent arg '(?P<argument>[^']+)' for (?P<kind>\w+) '(?P<name>[^']+)' in vhost '.*?': "
    r"received (?P<wanted>.+?) but current is (?P<found>.+)"
)
_VALUE = re.compile(r"(?:the value )?'(?P<value>.*?)'(?: of type '\w+')?")


class TopologyError(MatinsError):
    """The parts on the broker are not the ones that this release needs."""


class WrongEnvironment(TopologyError):
    """The prefix belongs to another environment."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """A part that exists with another argument; `argument` is empty where the broker did not name one."""

    part: str
    argument: str
    wanted: str
    found: str

    def __str__(self) -> str:
        """Say it in a line."""
        if not self.argument:
            return f"{self.part}: {self.found}"
        return f"{self.part}: {self.argument} is {self.found} on the broker, {self.wanted} is wanted"


class TopologyMismatch(TopologyError):
    """Parts exist with other arguments; `mismatches` has the first difference of each."""

    def __init__(self, mismatches: list[Mismatch]) -> None:
        """List them, and say what can be done."""
        listed = "; ".join(map(str, mismatches))
        super().__init__(
            f"{listed}. RabbitMQ cannot change a part that exists: go back to its arguments, "
            "or stop the services, drain it, delete it and run migrate again"
        )
        self.mismatches = tuple(mismatches)


class TopologyMissing(TopologyError):
    """Parts do not exist; `parts` names them."""

    def __init__(self, parts: list[str]) -> None:
        """List them, and say what makes them."""
        super().__init__(f"missing on the broker: {', '.join(parts)}; run migrate")
        self.parts = tuple(parts)


async def declare_topology(url: str, topology: Topology, *, timeout: float) -> None:
    """Make every part that is missing, each within `timeout` seconds; needs the right to configure.

    Raises WrongEnvironment before anything is made, TopologyMismatch with all differences once everything else is
    made, and BrokerUnavailable.
    """
    connection = await open_connection(url, name="matins migrate", heartbeat=HEARTBEAT_SECONDS, timeout=timeout)
    try:
        mismatches = []
        for part in topology.parts():
            refusal = await _attempt(connection, part, timeout, passive=False)
            if isinstance(refusal, ChannelPreconditionFailed):
                mismatch = _mismatch(part, said(refusal))
                if mismatch.part == f"exchange {topology.environment_exchange}":
                    raise _wrong_environment(topology, mismatch)
                mismatches.append(mismatch)
            elif refusal is not None:
                raise BrokerUnavailable(f"cannot make {_describe(part)}: {said(refusal)}") from refusal
        if mismatches:
            raise TopologyMismatch(mismatches)
    finally:
        await close_connection(connection)


async def check_topology(url: str, topology: Topology, *, timeout: float) -> tuple[str, ...]:
    """See that every exchange and queue is there, each within `timeout` seconds; changes nothing.

    From RabbitMQ 4.3.1 on a user may look only at what it has some right over. What it may not look at is not its to
    use, and is given back; the mark of the environment it must see. Bindings and arguments cannot be looked at: an
    unbound queue shows in publishes that are refused, and arguments are compared by `Topology.differences`. Raises
    TopologyMissing, WrongEnvironment and BrokerUnavailable.
    """
    connection = await open_connection(url, name="matins check", heartbeat=HEARTBEAT_SECONDS, timeout=timeout)
    try:
        missing, unseen = [], []
        for part in topology.parts():
            refusal = None if isinstance(part, Binding) else await _attempt(connection, part, timeout, passive=True)
            if isinstance(refusal, ChannelNotFoundEntity):
                missing.append(_describe(part))
            elif (
                isinstance(refusal, ChannelAccessRefused) and _describe(part) != f"exchange {topology.environment_mark}"
            ):
                unseen.append(_describe(part))
            elif refusal is not None:
                raise BrokerUnavailable(f"cannot look at {_describe(part)}: {said(refusal)}") from refusal
    finally:
        await close_connection(connection)
    if missing and missing[0] == f"exchange {topology.environment_mark}":
        raise _wrong_environment(topology, None)
    if missing:
        raise TopologyMissing(missing)
    return tuple(unseen)


async def _attempt(
    connection: AbstractConnection, part: Part, timeout: float, *, passive: bool
) -> BaseException | None:
    """Make or look at one part, on a channel of its own because a refusal closes it; return the refusal."""
    channel = await open_channel(connection, confirms=False, timeout=timeout)
    try:
        match part:
            case Exchange():
                await channel.declare_exchange(
                    part.name, part.kind, durable=True, passive=passive, arguments=dict(part.arguments), timeout=timeout
                )
            case Queue():
                await channel.declare_queue(
                    part.name, durable=True, passive=passive, arguments=dict(part.arguments), timeout=timeout
                )
            case Binding():
                await _bind(channel, part, timeout)
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error)
        return error
    finally:
        await close_channel(channel)
    return None


async def _bind(channel: AbstractChannel, binding: Binding, timeout: float) -> None:
    queue = await channel.get_queue(binding.queue, ensure=False)
    await queue.bind(binding.exchange, binding.routing_key, timeout=timeout)


def _describe(part: Part) -> str:
    match part:
        case Exchange():
            return f"exchange {part.name}"
        case Queue():
            return f"queue {part.name}"
        case Binding():
            return f"the binding of queue {part.queue} to exchange {part.exchange}"


def _mismatch(part: Part, text: str) -> Mismatch:
    match = _DIFFERENCE.search(text)
    if match is None:
        return Mismatch(_describe(part), "", "", text)
    return Mismatch(_describe(part), match["argument"], _value(match["wanted"]), _value(match["found"]))


def _value(text: str) -> str:
    match = _VALUE.match(text)
    return match["value"] if match else text


def _wrong_environment(topology: Topology, mismatch: Mismatch | None) -> WrongEnvironment:
    owner = "another environment"
    if mismatch is not None and mismatch.found.startswith(f"{topology.environment_exchange}."):
        owner = f"environment {mismatch.found.removeprefix(f'{topology.environment_exchange}.')!r}"
    return WrongEnvironment(
        f"prefix {topology.prefix!r} on this broker belongs to {owner}, not to {topology.environment!r}"
    )
