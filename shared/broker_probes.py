"""What a user of the broker really may do, found out by asking for it in ways that change nothing.

RabbitMQ looks at the rights first and says over what one was missing. So each probe asks for something that must fail
for another reason if the right is there: to bind what exists to an exchange that does not, to consume with an argument
of the wrong type, to make a part that is there already. Whatever else guards the broker (tags, LDAP, OAuth) has its say
too. Only to publish to the default exchange is really done, under a key that no queue has.
"""

import secrets
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from aio_pika.abc import AbstractConnection
from aiormq.channel import Channel as DriverChannel
from aiormq.exceptions import ChannelAccessRefused

from shared.broker_connection import close_channel, close_connection, driver_channel, open_channel, open_connection
from shared.broker_errors import ANY_ERROR, BrokerUnavailable, raise_unless_of_the_driver, said
from shared.topology import Exchange, Queue, Topology

HEARTBEAT_SECONDS = 20
DEFAULT_EXCHANGE = "amq.default"


@dataclass(frozen=True, slots=True)
class Right:
    """One right over one exchange or queue; `name` is `amq.default` for the default exchange."""

    verb: Literal["configure", "write", "read"]
    kind: Literal["exchange", "queue"]
    name: str

    def __str__(self) -> str:
        """Say it in words."""
        return f"{self.verb} {self.kind} {self.name}"


@dataclass(frozen=True, slots=True)
class _Probe:
    right: Right
    ask: Callable[[DriverChannel], Awaitable[Any]]


async def probe_rights(url: str, topology: Topology, *, timeout: float) -> dict[Right, bool]:
    """Tell which rights the user of `url` has over each part, and over names that are none of ours.

    The parts must be there. Each question has `timeout` seconds. Raises BrokerUnavailable.
    """
    connection = await open_connection(url, name="matins doctor", heartbeat=HEARTBEAT_SECONDS, timeout=timeout)
    try:
        return {probe.right: await _held(connection, probe, timeout) for probe in _probes(topology, timeout)}
    finally:
        await close_connection(connection)


async def _held(connection: AbstractConnection, probe: _Probe, timeout: float) -> bool:
    """Ask on a channel of its own, since a refusal closes it; a refusal that names something else is none of this."""
    channel = await open_channel(connection, confirms=probe.right.name == DEFAULT_EXCHANGE, timeout=timeout)
    try:
        await probe.ask(await driver_channel(channel))
    except ChannelAccessRefused as error:
        return f"{probe.right.kind} '{probe.right.name}'" not in said(error)
    except TimeoutError as error:
        raise BrokerUnavailable(f"no answer about the right to {probe.right}") from error
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error)
    finally:
        await close_channel(channel)
    return True


def _probes(topology: Topology, timeout: float) -> Iterator[_Probe]:
    nobody = f"matins-probe-{secrets.token_hex(8)}"
    # A queue that a user of ours may write to, if there were one: it lets the question pass on to the exchange.
    no_queue = f"{topology.prefix}.work.{nobody}"
    for part in topology.parts():
        match part:
            case Exchange():
                yield from _exchange_probes(part, nobody, no_queue, timeout)
            case Queue():
                yield from _queue_probes(part.name, nobody, timeout)
                yield _Probe(Right("configure", "queue", part.name), _making(part, timeout))
    yield from _queue_probes(nobody, nobody, timeout)
    yield _Probe(Right("configure", "queue", nobody), lambda channel: channel.queue_delete(nobody, timeout=timeout))
    yield _Probe(
        Right("write", "exchange", DEFAULT_EXCHANGE),
        lambda channel: channel.basic_publish(b"", routing_key=nobody, mandatory=True, timeout=timeout),
    )


def _exchange_probes(part: Exchange, nobody: str, no_queue: str, timeout: float) -> Iterator[_Probe]:
    name = part.name
    yield _Probe(
        Right("configure", "exchange", name),
        lambda channel: channel.exchange_declare(
            name, exchange_type=part.kind, durable=True, arguments=dict(part.arguments), timeout=timeout
        ),
    )
    yield _Probe(
        Right("write", "exchange", name),
        lambda channel: channel.exchange_bind(destination=name, source=nobody, timeout=timeout),
    )
    yield _Probe(
        Right("read", "exchange", name),
        lambda channel: channel.queue_bind(no_queue, exchange=name, timeout=timeout),
    )


def _queue_probes(name: str, nobody: str, timeout: float) -> Iterator[_Probe]:
    yield _Probe(
        Right("write", "queue", name), lambda channel: channel.queue_bind(name, exchange=nobody, timeout=timeout)
    )
    yield _Probe(Right("read", "queue", name), _consuming(name, timeout))


def _making(part: Queue, timeout: float) -> Callable[[DriverChannel], Awaitable[Any]]:
    return lambda channel: channel.queue_declare(
        part.name, durable=True, arguments=dict(part.arguments), timeout=timeout
    )


def _consuming(name: str, timeout: float) -> Callable[[DriverChannel], Awaitable[Any]]:
    async def take_nothing(_: object) -> None:
        """Never called: the broker refuses the argument."""

    return lambda channel: channel.basic_consume(
        name, take_nothing, arguments={"x-priority": "no number"}, timeout=timeout
    )
