"""How frames reach the socket: what is written in one turn of the event loop leaves in one call to the kernel.

The driver writes each publish and each acknowledgement by itself; each would be a system call here and a wake-up of the
broker, and that is most of what a small message costs.
"""

import asyncio
from typing import Any

from aiormq.connection import Connection, TransportFactory
from aiormq.exceptions import AMQPConnectionError
from yarl import URL

# So many frames may wait for the driver's writer; with its own 10 there is little to gather.
Connection.FRAME_BUFFER_SIZE = 256


class GatheringWriter(asyncio.StreamWriter):
    """Keeps what it is given until the event loop's next turn, a drain, or its close."""

    def __init__(
        self,
        transport: asyncio.WriteTransport,
        protocol: asyncio.StreamReaderProtocol,
        reader: asyncio.StreamReader,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        super().__init__(transport, protocol, reader, loop)
        self._next_turn = loop.call_soon
        self._kept: list[bytes | bytearray | memoryview] = []

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Keep `data` for the loop's next turn."""
        if not self._kept:
            self._next_turn(self._write_kept)
        self._kept.append(data)

    async def drain(self) -> None:
        """Write what is kept, and wait until the transport takes more."""
        self._write_kept()
        await super().drain()

    def close(self) -> None:
        """Write what is kept, and close."""
        self._write_kept()
        super().close()

    def _write_kept(self) -> None:
        if self._kept:
            gathered = b"".join(self._kept)
            self._kept.clear()
            super().write(gathered)


class GatheringTransport(TransportFactory):
    """Opens connections as the driver does by default, but with a writer that gathers."""

    async def create(self, url: URL, **kwargs: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, with TLS if the address asks for it. Raises AMQPConnectionError."""
        provider = kwargs.pop("ssl_context_provider")
        context = await provider.get_context() if url.scheme == "amqps" else None
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        try:
            transport, _ = await loop.create_connection(
                lambda: protocol, url.host or "", url.port or (5671 if context else 5672), ssl=context, **kwargs
            )
        except OSError as error:
            raise AMQPConnectionError(*error.args) from error
        return reader, GatheringWriter(transport, protocol, reader, loop)
