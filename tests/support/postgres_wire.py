"""A wire to PostgreSQL that reads what the client sends, and breaks the connection at a chosen statement.

Broken `before`, the statement never reaches the server; broken `after`, the server has done it and the client never
hears so. To be met wherever it is executed, a statement has to be parsed anew each time: no statement cache.
"""

import asyncio
import re
import struct
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self

PIECE = 65536
SIMPLE_QUERY, PARSE, BIND = b"Q", b"P", b"B"
STARTUP = b""
REQUESTS_BEFORE_STARTUP = {80877103, 80877104}
# The server's last word on a statement: ready for the next one, in whatever state its transaction is.
READY = re.compile(rb"Z\x00\x00\x00\x05[ITE]$")


@dataclass(slots=True)
class Cut:
    """A statement, found by a part of its text, and where to break; `done` tells whether it happened."""

    text: bytes
    when: Literal["before", "after"]
    done: bool = False


@dataclass(slots=True)
class _Line:
    """One connection, and how far what the client says has been read."""

    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    unread: bytes = b""
    started: bool = False
    parsed: Cut | None = None
    muted: bool = False

    def messages(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """Give the kind and the content of each message that is complete."""
        self.unread += data
        while True:
            head = 1 if self.started else 0
            if len(self.unread) < head + 4:
                return
            size = head + struct.unpack_from("!I", self.unread, head)[0]
            if len(self.unread) < size:
                return
            message, self.unread = self.unread[:size], self.unread[size:]
            if self.started:
                yield message[:1], message[5:]
            else:
                self.started = struct.unpack_from("!I", message, 4)[0] not in REQUESTS_BEFORE_STARTUP

    def reset(self) -> None:
        """Break both ends."""
        for writer in (self.client, self.server):
            writer.transport.abort()


@dataclass(slots=True)
class PostgresWire:
    """Passes bytes on both ways, and makes each of the `cuts` once. As a context manager it listens meanwhile."""

    url_behind: str
    cuts: Sequence[Cut]
    _server: asyncio.Server | None = None
    _lines: list[_Line] = field(default_factory=list)

    async def __aenter__(self) -> Self:
        """Listen on a free port of this machine."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close everything."""
        assert self._server is not None
        self._server.close()
        for line in self._lines:
            line.reset()

    @property
    def url(self) -> str:
        """The server's address through the wire."""
        assert self._server is not None
        behind = urllib.parse.urlsplit(self.url_behind)
        user, at, _ = behind.netloc.rpartition("@")
        port = self._server.sockets[0].getsockname()[1]
        return behind._replace(netloc=f"{user}{at}127.0.0.1:{port}").geturl()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind = urllib.parse.urlsplit(self.url_behind)
        server_reader, server_writer = await asyncio.open_connection(behind.hostname, behind.port)
        line = _Line(writer, server_writer)
        self._lines.append(line)
        async with asyncio.TaskGroup() as both:
            both.create_task(self._to_server(reader, line))
            both.create_task(self._to_client(server_reader, line))

    async def _to_server(self, reader: asyncio.StreamReader, line: _Line) -> None:
        with suppress(OSError):
            while data := await reader.read(PIECE):
                cut = self._cut_in(line, data)
                if cut is not None:
                    cut.done = True
                    if cut.when == "before":
                        break
                    line.muted = True
                line.server.write(data)
                await line.server.drain()
        if not line.muted:
            line.reset()

    def _cut_in(self, line: _Line, data: bytes) -> Cut | None:
        """Find the cut for what is executed by a piece: a simple query, or a statement that was parsed before."""
        found: Cut | None = None
        for kind, content in line.messages(data):
            if kind == PARSE:
                line.parsed = self._due(content)
            elif kind == BIND:
                found = found or line.parsed
                line.parsed = None
            elif kind == SIMPLE_QUERY:
                found = found or self._due(content)
        return found if found is not None and not found.done else None

    def _due(self, content: bytes) -> Cut | None:
        lowered = content.lower()
        return next((cut for cut in self.cuts if not cut.done and cut.text.lower() in lowered), None)

    async def _to_client(self, reader: asyncio.StreamReader, line: _Line) -> None:
        answered = b""
        with suppress(OSError):
            while data := await reader.read(PIECE):
                if not line.muted:
                    line.client.write(data)
                    await line.client.drain()
                    continue
                answered = (answered + data)[-16:]
                if READY.search(answered):
                    break
        line.reset()
