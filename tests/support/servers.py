"""Databases and virtual hosts of a test's own, on the servers of the session."""

import asyncio
import secrets
import urllib.parse
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import asyncpg

from examples.servers.find import Broker
from examples.servers.probe import management
from shared.migrate import migrate

CONNECT_SECONDS = 20.0


def unique_name() -> str:
    """Give a name that no other test has: lower-case letters and digits, a letter first."""
    return f"t{secrets.token_hex(6)}"


def with_path(url: str, path: str) -> str:
    """Give `url` with another database or virtual host."""
    return urllib.parse.urlsplit(url)._replace(path=f"/{path}").geturl()


async def prepare_template(url: str) -> None:
    """Bring the empty database at `url` to the state from which every test's database is copied."""
    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS)
    try:
        await migrate(connection)
    finally:
        await connection.close()


def create_template(administrator_url: str) -> str:
    """Make and prepare the session's template; give its name. Runs outside any event loop."""
    name = unique_name()

    async def create() -> None:
        await execute(administrator_url, f'create database "{name}"')
        await prepare_template(with_path(administrator_url, name))

    asyncio.run(create())
    return name


@asynccontextmanager
async def fresh_database(administrator_url: str, template: str) -> AsyncIterator[str]:
    """Have a copy of the template meanwhile; give its address."""
    name = unique_name()
    await execute(administrator_url, f'create database "{name}" template "{template}"')
    try:
        yield with_path(administrator_url, name)
    finally:
        await execute(administrator_url, f'drop database "{name}" with (force)')


async def execute(url: str, statement: str) -> None:
    """Run one statement on a connection of its own."""
    connection = await asyncpg.connect(url, timeout=CONNECT_SECONDS)
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


@contextmanager
def fresh_virtual_host(broker: Broker) -> Iterator[str]:
    """Have an empty virtual host meanwhile; give its address.

    Where the environment gives no management interface, the given virtual host serves, and names keep tests apart.
    """
    if broker.management_url is None:
        yield broker.url
        return
    name = unique_name()
    management(broker.management_url, "PUT", f"/api/vhosts/{name}")
    user = urllib.parse.urlsplit(broker.url).username
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    management(broker.management_url, "PUT", f"/api/permissions/{name}/{user}", everything)
    try:
        yield with_path(broker.url, name)
    finally:
        management(broker.management_url, "DELETE", f"/api/vhosts/{name}")
