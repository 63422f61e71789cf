"""A wire between a process and a server, to be maltreated: slowed, choked, cut one way or both, broken, refused.

One for each pair of a process and a server, so that a fault can be aimed. What is sent each way is a `Way`; the faults
of both ways at once, and of whole connections, are the `Proxy`'s.
"""

import asyncio
import math
import socket
import struct
import urllib.parse
from collections.abc import Iterator
from contextlib import suppress
from types import TracebackType
from typing import Self

PIECE = 65536
# So many pieces may be on their way before the sender has to wait, as in the buffers of a network.
PIECES = 64
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


class Way:
    """What happens to the bytes that go one way, over all connections of a proxy.

    `delay` is in seconds; `rate` in bytes a second; `cut_after` the bytes that still pass before the connection on
    which the last of them went is reset, once.
    """

    def __init__(self) -> None:
        self.delay = 0.0
        self.rate = math.inf
        self.cut_after: int | None = None
        self.passed = 0
        self._passing = asyncio.Event()
        self._passing.set()

    def hold(self) -> None:
        """Keep back what is sent this way from now on; the connections stay open."""
        self._passing.clear()

    def let_go(self) -> None:
        """Pass on what was kept back, and what comes."""
        self._passing.set()

    async def wait(self, due: float) -> None:
        """Return at the loop's time `due`, and while nothing is held."""
        await asyncio.sleep(due - asyncio.get_running_loop().time())
        await self._passing.wait()

    def take(self, data: bytes) -> tuple[bytes, bool]:
        """Give what passes of `data`, and whether the connection is cut behind it."""
        cut = self.cut_after is not None and self.cut_after <= len(data)
        if self.cut_after is not None:
            data = data[: self.cut_after]
            self.cut_after = None if cut else self.cut_after - len(data)
        self.passed += len(data)
        return data, cut


class Proxy:
    """Passes bytes on both ways until it is told otherwise. As a context manager it listens meanwhile."""

    def __init__(self, url: str) -> None:
        self._target = urllib.parse.urlsplit(url)
        self._server: asyncio.Server | None = None
        self._port = 0
        self._connections: set[_Connection] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.to_server = Way()
        self.to_client = Way()
        self.accepted = 0

    async def __aenter__(self) -> Self:
        """Listen on a free port of this machine."""
        await self.accept()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close everything; what was held is lost."""
        self.refuse()
        self.reset()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def url(self) -> str:
        """The server's address through the wire."""
        user, at, _ = self._target.netloc.rpartition("@")
        return self._target._replace(netloc=f"{user}{at}127.0.0.1:{self._port}").geturl()

    @property
    def connections(self) -> int:
        """How many connections there are."""
        return len(self._connections)

    async def accept(self) -> None:
        """Take connections, at the same address as ever; nothing happens when they are taken already."""
        if self._server is None:
            self._server = await asyncio.start_server(self._connect, "127.0.0.1", self._port)
            self._port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Refuse new connections; those that there are stay."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def reset(self) -> None:
        """Break every connection, so that both ends hear a reset and what was on its way is lost."""
        for connection in list(self._connections):
            connection.reset()

    def vanish(self) -> None:
        """Break every connection towards the server alone: the client is told nothing and gets no more answers."""
        self.to_client.hold()
        self.to_server.hold()
        for connection in list(self._connections):
            connection.reset_server()

    def hold(self) -> None:
        """Keep back everything both ways; new connections are taken and get no answer either."""
        self.to_server.hold()
        self.to_client.hold()

    def heal(self) -> None:
        """End every fault of both ways: what was kept back goes on."""
        for way in (self.to_server, self.to_client):
            way.delay, way.rate, way.cut_after = 0.0, math.inf, None
            way.let_go()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        self.accepted += 1
        try:
            server_reader, server_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            _reset(writer)
            return
        connection = _Connection(writer, server_writer)
        self._connections.add(connection)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(connection.carry(reader, server_writer, self.to_server))
                group.create_task(connection.carry(server_reader, writer, self.to_client))
        finally:
            self._connections.discard(connection)
            connection.reset()


class _Connection:
    """Two sockets, and what is on its way between them."""

    def __init__(self, client: asyncio.StreamWriter, server: asyncio.StreamWriter) -> None:
        self._client = client
        self._server = server

    def reset(self) -> None:
        for writer in (self._client, self._server):
            _reset(writer)

    def reset_server(self) -> None:
        _reset(self._server)

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: Way) -> None:
        """Carry bytes one way until either end closes."""
        pieces: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue(PIECES)
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read(reader, pieces, way))
            group.create_task(self._write(pieces, writer, way))

    async def _read(self, reader: asyncio.StreamReader, pieces: asyncio.Queue[tuple[float, bytes]], way: Way) -> None:
        data = b"-"
        while data:
            data = b""
            with suppress(OSError):
                data = await reader.read(PIECE)
            await pieces.put((asyncio.get_running_loop().time() + way.delay, data))

    async def _write(self, pieces: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter, way: Way) -> None:
        while True:
            due, data = await pieces.get()
            await way.wait(due)
            if not data:
                # An end is passed on like any other news: after what was sent before it, and late where that is late.
                with suppress(OSError):
                    writer.close()
                return
            for piece in _pieces(data, way.rate):
                passing, cut = way.take(piece)
                with suppress(OSError):
                    writer.write(passing)
                    await writer.drain()
                if cut:
                    self.reset()
                    return
                if way.rate < math.inf:
                    await asyncio.sleep(len(piece) / way.rate)


def _pieces(data: bytes, rate: float) -> Iterator[bytes]:
    """Cut what a slow way would take long for into tenths of a second."""
    size = len(data) if rate == math.inf else max(1, int(rate / 10))
    return (data[start : start + size] for start in range(0, len(data), size))


def _reset(writer: asyncio.StreamWriter) -> None:
    """Close a socket with a reset instead of an orderly end."""
    if (raw := writer.get_extra_info("socket")) is not None:
        with suppress(OSError):
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
    writer.transport.abort()
