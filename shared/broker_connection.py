"""A connection to RabbitMQ that is opened with a deadline, watched, and built again from nothing when it is lost.

The driver's own "robust" objects are not used: they declare again what they know, which a user without the right to
configure may not; they keep waiting for things that will never come back; and they hide for how long. Here a lost
connection is closed, said to be lost, and replaced after a pause; what was in flight on it is in doubt, and the ledger
knows what to do about that.
"""

import asyncio
import logging
import os
import random
from abc import ABC, abstractmethod
from collections.abc import Callable

import anyio
from aio_pika.abc import AbstractChannel, AbstractConnection, UnderlayConnection
from aio_pika.connection import Connection, make_url
from aio_pika.exceptions import (
    AuthenticationError,
    ChannelInvalidStateError,
    ConnectionClosed,
    ProbableAuthenticationError,
)
from aiormq.channel import Channel as DriverChannel
from aiormq.exceptions import InvalidFrameError
from anyio.abc import TaskStatus
from yarl import URL

from shared import clock
from shared.broker_errors import ANY_ERROR, BrokerRefuses, BrokerUnavailable, raise_unless_of_the_driver, said
from shared.broker_transport import GatheringTransport
from shared.errors import MatinsError
from shared.logs import logger
from shared.tls import handshake_problem

SHORTEST_PAUSE = 1.0
LONGEST_PAUSE = 5.0
CLOSE_SECONDS = 5.0

_log = logger(__name__)

# The driver reports, with tracebacks, what is reported here in a line each.
for _name in ("aio_pika", "aiormq"):
    logging.getLogger(_name).setLevel(logging.CRITICAL)


async def open_connection(url: str, *, name: str, heartbeat: int, timeout: float) -> AbstractConnection:
    """Connect within `timeout` seconds, with a heartbeat in seconds and a name for the management console.

    Raises BrokerUnavailable, and BrokerRefuses for a wrong password, user or virtual host.
    """
    try:
        address = URL(url)
        where = f"{address.host}:{address.port or (5671 if address.scheme == 'amqps' else 5672)}"
    except ValueError:
        # The driver's message would quote the address, and with it the password.
        raise BrokerUnavailable("the broker's address is not a URL") from None
    if address.scheme not in {"amqp", "amqps"} or not address.host:
        raise BrokerUnavailable("the broker's address must begin with amqp:// or amqps:// and name a host")
    connection = Connection(make_url(address, heartbeat=heartbeat), client_properties={"connection_name": name})
    connection.kwargs["transport_factory"] = GatheringTransport()
    try:
        await connection.connect(timeout=timeout)
    except ANY_ERROR as error:
        # Or its finalizer would close it, in whatever loop is running by then.
        await close_connection(connection)
        raise_unless_of_the_driver(error)
        problem = handshake_problem(error)
        reason = f"broker {where}: {problem}" if problem else _reason(error, address, where, timeout)
        refused = isinstance(error, (ProbableAuthenticationError, AuthenticationError, InvalidFrameError))
        raise (BrokerRefuses if refused else BrokerUnavailable)(reason) from error
    return connection


def _reason(error: BaseException, address: URL, where: str, timeout: float) -> str:
    match error:
        case ProbableAuthenticationError() | AuthenticationError():
            return f"broker {where} refuses user {address.user or 'guest'!r} or its password"
        case InvalidFrameError():
            virtual_host = address.path[1:] or "/"
            return (
                f"broker {where}: virtual host {virtual_host!r} does not exist, "
                f"or user {address.user or 'guest'!r} has no access to it"
            )
        case TimeoutError():
            return f"broker {where} gives no answer within {timeout:g} s"
        case ConnectionClosed():
            return f"broker {where} closed the connection: {said(error)}"
        case OSError(errno=int() as number):
            return f"cannot connect to broker {where}: {os.strerror(number)}"
        case _:
            # A server that expects TLS drops who greets it otherwise.
            hint = "; if it expects TLS there, begin the address with amqps://" if address.scheme == "amqp" else ""
            return f"cannot connect to broker {where}: {said(error)}{hint}"


async def close_connection(connection: AbstractConnection) -> None:
    """Close, also when cancelled, within a few seconds: a blocked or frozen broker never says goodbye."""
    with anyio.move_on_after(CLOSE_SECONDS, shield=True):
        await _closed(connection)


async def open_channel(connection: AbstractConnection, *, confirms: bool, timeout: float) -> AbstractChannel:
    """Open a channel; with `confirms`, publishes are confirmed and one that has no queue raises.

    Raises BrokerUnavailable.
    """
    try:
        with anyio.fail_after(timeout):
            channel = connection.channel(publisher_confirms=confirms, on_return_raises=confirms)
            await channel.initialize()
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error, RuntimeError)
        raise BrokerUnavailable(f"no channel can be opened: {said(error)}") from error
    return channel


async def close_channel(channel: AbstractChannel) -> None:
    """Close, within a few seconds, a channel that may be dead already."""
    with anyio.move_on_after(CLOSE_SECONDS):
        await _closed(channel)


async def _closed(closable: AbstractConnection | AbstractChannel) -> None:
    try:
        await closable.close()
    except ANY_ERROR as error:
        raise_unless_of_the_driver(error)


async def driver_channel(channel: AbstractChannel) -> DriverChannel:
    """Give the driver's own channel: a message costs nearly a third less through it than through the objects above it.

    Raises BrokerUnavailable.
    """
    try:
        lower = await channel.get_underlay_channel()
    except ChannelInvalidStateError as error:
        raise BrokerUnavailable(f"the channel is closed: {said(error)}") from error
    if not isinstance(lower, DriverChannel):
        raise TypeError(lower)
    return lower


def transport_of(connection: AbstractConnection) -> UnderlayConnection:
    """Give the driver's lower half; raises BrokerUnavailable when it is gone."""
    if connection.transport is None:
        raise BrokerUnavailable("the connection is closed")
    return connection.transport


class Loss:
    """Says once, with a reason, that a connection, a channel or a consumer is lost."""

    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.reason = ""

    def happened(self) -> bool:
        """Tell whether it is lost."""
        return self._event.is_set()

    def report(self, reason: str) -> None:
        """Note the loss; the first reason stays."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    async def wait(self) -> None:
        """Wait for the loss."""
        await self._event.wait()

    def watch(self, closable: AbstractConnection | AbstractChannel, what: str) -> None:
        """Report when a connection or a channel closes, whoever closes it."""
        closable.close_callbacks.add(lambda _, error=None: self.report(f"{what} is lost: {said(error)}"))


class Client(ABC):
    """A user of one connection, whose loop builds it again for as long as it runs.

    `url` is asked at each connect, so that a rotated password needs no restart; `timeout`, in seconds, bounds every
    single wait for the broker.
    """

    def __init__(self, url: Callable[[], str], *, name: str, heartbeat: int, timeout: float) -> None:
        self._url = url
        self._name = name
        self._heartbeat = heartbeat
        self._timeout = timeout
        self._disconnected: str | None = "not connected yet"
        self._ended = False
        self._scope = anyio.CancelScope()
        self._finished = asyncio.Event()
        self._finished.set()
        self._task_status: TaskStatus[None] | None = None

    async def close(self) -> None:
        """Close the connection and end the loop; what is in flight is in doubt, what is unsettled goes back."""
        self._ended = True
        self._scope.cancel()
        await self._finished.wait()

    @abstractmethod
    async def _use(self, connection: AbstractConnection) -> str:
        """Work with a connection for as long as it is good; return why it no longer is. Raises BrokerUnavailable."""

    async def _keep_connected(self, task_status: TaskStatus[None]) -> None:
        """Connect and use, again and again, until the client has ended; started once the first attempt is decided."""
        self._task_status = task_status
        self._finished.clear()
        try:
            with self._scope:
                await self._connect_repeatedly()
        finally:
            self._disconnected = "closed"
            self._finished.set()
            self._attempt_decided()

    async def _connect_repeatedly(self) -> None:
        failures = 0
        while not self._ended:
            try:
                reason = await self._connect_and_use()
                failures = 0
            except BrokerUnavailable as error:
                reason = str(error)
                failures += 1
            self._report_problem(reason)
            # Spread out, so that a fleet does not come back to a restarted broker as one.
            longest = min(LONGEST_PAUSE, SHORTEST_PAUSE + failures)
            await clock.sleep(random.uniform(SHORTEST_PAUSE, longest))  # noqa: S311 - spreads load, guards nothing

    async def _connect_and_use(self) -> str:
        try:
            url = self._url()
        except (MatinsError, OSError) as error:
            raise BrokerUnavailable(f"the broker's address cannot be read: {error}") from error
        connection = await open_connection(url, name=self._name, heartbeat=self._heartbeat, timeout=self._timeout)
        try:
            return await self._use(connection)
        finally:
            await close_connection(connection)

    def _report_connected(self) -> None:
        if self._disconnected is not None:
            _log.info("broker_connected", connection=self._name)
        self._disconnected = None
        self._attempt_decided()

    def _report_problem(self, reason: str) -> None:
        if self._disconnected != reason and not self._ended:
            _log.warning("broker_unavailable", connection=self._name, reason=reason)
        self._disconnected = reason
        self._attempt_decided()

    def _attempt_decided(self) -> None:
        if self._task_status is not None:
            self._task_status.started()
            self._task_status = None
