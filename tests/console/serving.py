"""A console for a test: the real application on a real database, over real HTTP."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import anyio
import httpx2

from shared.postgres import Database
from shared.settings import load_settings
from shared.stopping import Stopping
from tests.support.fleet import until
from trigger.console.server import DATABASE_CONNECTIONS, Console


@dataclass(frozen=True, slots=True)
class Answer:
    """What a console has answered; the names of headers are in small letters."""

    status: int
    text: str
    headers: Mapping[str, str]


@dataclass(slots=True)
class Served:
    """An open console, and a client that keeps its cookies."""

    console: Console
    client: httpx2.AsyncClient

    @property
    def address(self) -> str:
        """Where it answers."""
        return f"http://127.0.0.1:{self.console.port}"

    async def get(self, path: str, **more: Any) -> Answer:
        """Ask for a page; a redirection is not followed."""
        return _answer(await self.client.get(path, **more))

    async def post(self, path: str, **more: Any) -> Answer:
        """Send a form."""
        return _answer(await self.client.post(path, **more))


@asynccontextmanager
async def serving(database_url: str, broker_url: str = "", **settings: str) -> AsyncIterator[Served]:
    """Have a console meanwhile; `settings` are in the form of the environment, without the prefix."""
    sources = {"MATINS_ENVIRONMENT": "test", "MATINS_DATABASE_URL": database_url, "MATINS_BROKER_URL": broker_url}
    sources |= {"MATINS_CONSOLE_ADDRESS": "127.0.0.1:0"}
    sources |= {f"MATINS_{name.upper()}": value for name, value in settings.items()}
    loaded = load_settings(sources, need=frozenset({"database_url"}))
    database = Database(
        lambda: loaded.secret("database_url"), name="console", size=DATABASE_CONNECTIONS, timeout=timedelta(seconds=20)
    )
    console, stopping = Console(loaded, database, "c0ffee00", "test"), Stopping()
    async with anyio.create_task_group() as group:
        group.start_soon(console.serve, stopping)

        async def open_() -> bool:
            return console.problem is None

        await until(open_)
        try:
            async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{console.port}", timeout=30) as client:
                yield Served(console, client)
        finally:
            stopping.request("the test is over")


def _answer(response: httpx2.Response) -> Answer:
    return Answer(response.status_code, response.text, {name.lower(): one for name, one in response.headers.items()})
