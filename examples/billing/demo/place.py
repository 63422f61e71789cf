"""A place of the demo's own on the servers: a fresh database and, where the broker can be managed, a virtual host."""

import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from urllib.parse import urlsplit

from examples.servers.find import Broker, Servers
from examples.servers.probe import management
from shared.postgres import Session, connect

PATIENCE = timedelta(minutes=2)


@dataclass(frozen=True, slots=True)
class Place:
    """Where the demo takes place."""

    database_url: str
    broker_url: str
    management_url: str | None
    prefix: str


@asynccontextmanager
async def session_on(url: str) -> AsyncIterator[Session]:
    """Have a connection of the demo's own meanwhile."""
    session = await connect(url, name="demo", timeout=PATIENCE)
    try:
        yield session
    finally:
        await session.close()


@asynccontextmanager
async def fresh_place(servers: Servers) -> AsyncIterator[Place]:
    """Make the place, and remove it at the end."""
    name = f"demo_{secrets.token_hex(4)}"
    async with session_on(servers.database_url) as administrator:
        await administrator.execute(f'create database "{name}"')
        try:
            with _virtual_host(servers.broker, name) as (broker_url, prefix):
                database_url = urlsplit(servers.database_url)._replace(path=f"/{name}").geturl()
                yield Place(database_url, broker_url, servers.broker.management_url, prefix)
        finally:
            await administrator.execute(f'drop database "{name}" with (force)')


@contextmanager
def _virtual_host(broker: Broker, name: str) -> Iterator[tuple[str, str]]:
    """Give an address and a prefix: without a management interface, the prefix alone keeps the demo apart."""
    if broker.management_url is None:
        yield broker.url, name.replace("_", "-")
        return
    user = urlsplit(broker.url).username
    management(broker.management_url, "PUT", f"/api/vhosts/{name}")
    try:
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        management(broker.management_url, "PUT", f"/api/permissions/{name}/{user}", everything)
        yield urlsplit(broker.url)._replace(path=f"/{name}").geturl(), "demo"
    finally:
        management(broker.management_url, "DELETE", f"/api/vhosts/{name}")
