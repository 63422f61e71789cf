"""A wire between a process and a server that can be held: what is sent waits, and the connection stays open."""

import asyncio
import urllib.parse
from types import TracebackType
from typing import Self


class Proxy:
    """Passes bytes on both ways until told to hold those to the server. As a context manager it listens meanwhile."""

    def __init__(self, url: str) -> None:
        self._target = urllib.parse.urlsplit(url)
        self._passing = asyncio.Event()
        self._passing.set()
        self._server: asyncio.Server | None = None
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        """Listen on a free port of this machine."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Close everything; what was held is lost."""
        assert self._server is not None
        self._server.close()
        for writer in self._writers:
            writer.transport.abort()
        self._passing.set()

    @property
    def url(self) -> str:
        """The server's address through the wire."""
        assert self._server is not None
        port = self._server.sockets[0].getsockname()[1]
        user, at, _ = self._target.netloc.rpartition("@")
        return self._target._replace(netloc=f"{user}{at}127.0.0.1:{port}").geturl()

    def hold_to_server(self) -> None:
        """Keep back, from now on, what is sent to the server."""
        self._passing.clear()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server_reader, server_writer = await asyncio.open_connection(self._target.hostname, self._target.port)
        self._writers += [writer, server_writer]
        back = asyncio.get_running_loop().create_task(self._pass(server_reader, writer, held=False))
        await self._pass(reader, server_writer, held=True)
        await back

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, held: bool) -> None:
        try:
            while data := await reader.read(65536):
                if held:
                    await self._passing.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            return
        finally:
            writer.transport.abort()
