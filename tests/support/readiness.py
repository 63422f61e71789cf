"""What the processes of a deployment say of themselves, asked over HTTP as an orchestrator asks, again and again."""

import http.client
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, closing

import anyio
import anyio.to_thread

from shared import clock
from tests.support.fleet import until
from tests.support.processes import Service

PROBE_SECONDS = 5
Parts = dict[str, str]


def _ask(port: int, path: str) -> tuple[int, Parts]:
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=PROBE_SECONDS)) as connection:
        connection.request("GET", path)
        answer = connection.getresponse()
        parts: dict[str, str | None] = json.loads(answer.read())["parts"]
        return answer.status, {name: reason for name, reason in parts.items() if reason}


async def probe(service: Service, path: str) -> tuple[int, Parts]:
    """Ask a process for /livez or /readyz; give the status, and the parts that are unwell with their reasons."""
    port = int((await service.logged("health endpoint open"))["port"])
    return await anyio.to_thread.run_sync(_ask, port, path)


async def unready(service: Service, part: str = "", reason: str = "") -> Parts:
    """Wait until a process is not ready, and names a part with a reason that holds a text, if these are given."""

    async def look() -> Parts | None:
        status, parts = await probe(service, "/readyz")
        named = [text for name, text in parts.items() if part in name and reason in text]
        return parts if status == 503 and named else None

    parts: Parts = await until(look)
    return parts


async def ready(*services: Service) -> None:
    """Wait until every process is ready."""

    async def look() -> bool:
        return all([(await probe(service, "/readyz"))[0] == 200 for service in services])

    await until(look)


@asynccontextmanager
async def staying_alive(services: Sequence[Service]) -> AsyncIterator[None]:
    """See that no process is ever taken for dead meanwhile: whoever believed that would restart it."""
    dead: list[tuple[str, Parts]] = []

    async def watch() -> None:
        while True:
            for service in services:
                status, parts = await probe(service, "/livez")
                if status != 200:
                    dead.append((service.log.name, parts))
            await clock.sleep(0.2)

    async with anyio.create_task_group() as group:
        group.start_soon(watch)
        yield
        group.cancel_scope.cancel()
    assert not dead, dead
