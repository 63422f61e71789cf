"""Whether this process is alive and whether it is ready, for whoever restarts it and for whoever sends it work.

The endpoint runs in a thread with an event loop of its own: when the main loop is blocked the endpoint still answers,
and says so. Alive means that the main loop beats; nothing outside the process counts, or a database that is down would
have every process restarted. Ready means that no required part has anything to complain of.
"""

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shared import clock
from shared.logs import logger
from shared.masking import plain

_REASON_AT_MOST = 300
_CLOSE_SECONDS = 5.0
_log = logger(__name__)


@dataclass(frozen=True)
class _Part:
    check: Callable[[], str | None]
    required_for_ready: bool
    fatal: bool


class Health:
    """What the parts of this process say about themselves."""

    def __init__(
        self,
        dead_after: timedelta = timedelta(seconds=15),
        *,
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        """Take the time without a beat after which the process counts as dead; it has that long for its first, too."""
        self._dead_after = dead_after.total_seconds()
        self._monotonic = monotonic
        self._beaten_at = monotonic()
        self._parts: dict[str, _Part] = {}
        self._endpoint: _Endpoint | None = None

    def part(
        self, name: str, check: Callable[[], str | None], *, required_for_ready: bool = True, fatal: bool = False
    ) -> None:
        """Add a part, or replace it. `check` returns None while all is well, else the reason in a few words.

        It is called in the endpoint's thread at every request, so it only looks at what the part has noted. With
        `fatal` its reason means that the process is dead, not merely unready.
        """
        self._parts = self._parts | {name: _Part(check, required_for_ready, fatal)}

    def remove(self, name: str) -> None:
        """Forget a part, if there is one of that name."""
        self._parts = {known: part for known, part in self._parts.items() if known != name}

    def beat(self) -> None:
        """Say that the main event loop runs."""
        self._beaten_at = self._monotonic()

    def alive(self) -> dict[str, str | None]:
        """Return the reason, or None, of the event loop and of each fatal part."""
        silent = self._monotonic() - self._beaten_at
        loop = f"blocked for {silent:.0f} s" if silent > self._dead_after else None
        return {"event loop": loop} | {name: _reason(part) for name, part in self._parts.items() if part.fatal}

    def ready(self) -> dict[str, str | None]:
        """Return the reason, or None, of everything that has to be well before this process is sent work."""
        required = {name: _reason(part) for name, part in self._parts.items() if part.required_for_ready}
        return self.alive() | required

    @property
    def port(self) -> int:
        """The port that is listened on; raises RuntimeError while there is none."""
        if self._endpoint is None:
            raise RuntimeError("the health endpoint is not open")
        return self._endpoint.port

    def serve(self, host: str, port: int) -> None:
        """Open the endpoint on `host` and `port` (0 chooses a free one, see `port`) and return.

        Raises:
            OSError: the address can't be listened on.
        """
        self._endpoint = _Endpoint(self, host, port)
        _log.info("health endpoint open", host=host, port=self.port)

    def close(self) -> None:
        """Close the endpoint, if it is open."""
        if self._endpoint is not None:
            self._endpoint.close()
            self._endpoint = None


class _Endpoint:
    """The HTTP server in its thread."""

    def __init__(self, health: Health, host: str, port: int) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        # Bound here, so that an address in use is the caller's error and a chosen port is known.
        listening = socket.create_server((host, port), family=family)
        self.port: int = listening.getsockname()[1]
        self._server = uvicorn.Server(
            uvicorn.Config(
                _application(health),
                loop="asyncio",
                http="h11",
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=2,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=([listening],), name="health endpoint", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        self._server.should_exit = True
        self._thread.join(_CLOSE_SECONDS)


def _application(health: Health) -> Starlette:
    async def livez(_request: Request) -> Response:
        return _answer("alive", health.alive())

    async def readyz(_request: Request) -> Response:
        return _answer("ready", health.ready())

    return Starlette(routes=[Route("/livez", livez), Route("/healthz", livez), Route("/readyz", readyz)])


def _answer(word: str, parts: dict[str, str | None]) -> Response:
    good = not any(parts.values())
    body = orjson.dumps({word: good, "parts": parts}, option=orjson.OPT_APPEND_NEWLINE)
    headers = {"Cache-Control": "no-store"}
    return Response(body, status_code=200 if good else 503, media_type="application/json", headers=headers)


def _reason(part: _Part) -> str | None:
    try:
        reason = part.check()
    except Exception as error:  # noqa: BLE001 - a check that fails is a reason, not an error of the endpoint
        reason = f"its check failed: {type(error).__name__}"
    return plain(reason, _REASON_AT_MOST) if reason else None
