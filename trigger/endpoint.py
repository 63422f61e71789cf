"""An HTTP server in a thread of its own, with an event loop and a few database connections of its own.

So whoever floods it takes nothing from the trigger's work, and a trigger whose loop is blocked still answers.
"""

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from typing import Any, Final

import anyio
import anyio.to_thread
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from shared.logs import logger
from shared.postgres import Database
from shared.stopping import Stopping

CONNECTIONS_AT_ONCE: Final = 200
MOST_HEADER_BYTES: Final = 16 * 1024
DRAIN_SECONDS: Final = 5
HEAD_SECONDS: Final = 10.0
_log = logger(__name__)
# What the server says of broken requests would be an attacker's to fill the log with; what breaks in ours is said.
quiet = logging.getLogger("matins.endpoint")
quiet.setLevel(logging.ERROR)


@dataclass(slots=True)
class Endpoint:
    """One server; nothing is opened before `serve`. `options` are uvicorn's, beside those that all of ours have.

    `beside` runs in the same thread for as long as it answers. `port` is what it listens on, 0 while it doesn't.
    """

    name: str
    address: tuple[str, int]
    database: Database
    application: ASGIApp
    beside: Callable[[], Coroutine[Any, Any, None]]
    options: dict[str, Any] = field(default_factory=dict)
    port: int = 0
    _server: uvicorn.Server | None = None

    @property
    def problem(self) -> str | None:
        """Why nobody is answered; None while everybody is."""
        return None if self._server and self._server.started else "not open"

    async def serve(self, stopping: Stopping) -> None:
        """Answer until `stopping`, and finish what was begun. Raises OSError when the address can't be listened on."""
        host, port = self.address
        listening = socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
        # asyncio does it only for sockets that were made with their protocol's name; without it, what is small waits
        # until the other side has acknowledged what came before, some 40 ms.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        server = self._server = uvicorn.Server(self._configuration())

        async def end() -> None:
            await stopping.wait()
            server.should_exit = True

        self.port = listening.getsockname()[1]
        _log.info(f"{self.name} open", host=host, port=self.port)
        async with anyio.create_task_group() as group:
            group.start_soon(end)
            await anyio.to_thread.run_sync(
                lambda: asyncio.run(self._run(server, listening)),
                abandon_on_cancel=True,
                limiter=anyio.CapacityLimiter(1),
            )
            group.cancel_scope.cancel()

    async def _run(self, server: uvicorn.Server, listening: socket.socket) -> None:
        """Everything that happens in the endpoint's own thread."""
        await self.database.open()
        try:
            async with anyio.create_task_group() as group:
                group.start_soon(self.beside)
                await server.serve([listening])
                group.cancel_scope.cancel()
        finally:
            await self.database.close()

    def _configuration(self) -> uvicorn.Config:
        ours: dict[str, Any] = {
            "loop": "asyncio",
            "http": InTime,
            "ws": "none",
            "lifespan": "off",
            "log_config": None,
            "access_log": False,
            "server_header": False,
            "proxy_headers": False,
            "limit_concurrency": CONNECTIONS_AT_ONCE,
            "h11_max_incomplete_event_size": MOST_HEADER_BYTES,
            "timeout_graceful_shutdown": DRAIN_SECONDS,
        }
        return uvicorn.Config(self.application, **ours | self.options)


class InTime(H11Protocol):
    """A connection on which the head of each request has to arrive in time.

    Otherwise some hundreds of connections that say nothing, or half of something, would leave room for nobody else.
    """

    _patience: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override] # as the server has it
        """Begin to wait for a request."""
        super().connection_made(transport)
        self.logger = quiet
        self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def data_received(self, data: bytes) -> None:
        """Wait no more once a request has begun; wait again where only a piece of the next one is there."""
        super().data_received(data)
        if not self._waits:
            self._wait_no_more()
        elif self._patience is None:
            self._patience = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._wait_no_more()
        super().connection_lost(exc)

    @property
    def _waits(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or bool(cycle.response_complete)

    def _wait_no_more(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None

    def _give_up(self) -> None:
        if self._waits:
            self.transport.abort()
