"""Where the measurements take place: both servers, a database and a virtual host of their own, everything deployed.

PostgreSQL writes to disk as in production, for every contestant alike.
"""

import asyncio
import os
import secrets
import urllib.parse
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, TypeAlias

import psycopg

from examples.servers.find import DATABASE_VARIABLE, provide, running_rabbit
from examples.servers.postgres import PostgresServer, find_postgres
from examples.servers.probe import management
from shared.broker import declare_topology
from shared.load import load_jobs
from shared.migrate import enter_environment, migrate
from shared.postgres import connect
from shared.settings import load_settings
from shared.start import topology_of

# The driver is installed for the benchmarks alone, so nothing that is always checked may need its types.
Connection: TypeAlias = Any


@dataclass(frozen=True)
class Site:
    """Addresses of the database and of the virtual host, and an open connection to look with."""

    database_url: str
    broker_url: str
    connection: Connection

    def settings(self) -> dict[str, str]:
        """Give the environment of our processes: only what has no default."""
        return {
            "MATINS_ENVIRONMENT": "bench",
            "MATINS_JOBS": "benchmarks.jobs",
            "MATINS_DATABASE_URL": self.database_url,
            "MATINS_BROKER_URL": self.broker_url,
        }

    def value(self, query: str, *arguments: object) -> Any:
        """Give the single value of a query."""
        row = self.connection.execute(query.encode(), arguments or None).fetchone()
        return None if row is None else row[0]

    def run(self, statement: str, *arguments: object) -> None:
        """Run a statement."""
        self.connection.execute(statement.encode(), arguments or None)


@contextmanager
def prepared_site(*, statistics: bool = False) -> Iterator[Site]:
    """Have servers running and deployed meanwhile; with `statistics` the database counts its statements."""
    with (
        durable_postgres(statistics=statistics) as administrator_url,
        running_rabbit(install_missing=True) as broker,
        own_database(administrator_url) as database_url,
        own_virtual_host(broker.url, broker.management_url) as broker_url,
        psycopg.connect(database_url, autocommit=True) as connection,
    ):
        site = Site(database_url, broker_url, connection)
        assert site.value("show fsync") == site.value("show synchronous_commit") == "on"
        asyncio.run(deploy(site))
        site.connection.execute(resources.files("benchmarks").joinpath("schema.sql").read_bytes())
        if statistics:
            site.run("create extension pg_stat_statements")
        yield site


@contextmanager
def durable_postgres(*, statistics: bool) -> Iterator[str]:
    """Have a PostgreSQL running that writes to disk: the one that is given, or this machine's own program."""
    given = os.environ.get(DATABASE_VARIABLE)
    if given:
        yield given
        return
    if find_postgres() is None:
        provide("postgresql", DATABASE_VARIABLE, install_missing=True)
    with PostgresServer(durable=True) as server:
        if statistics:
            with psycopg.connect(server.url, autocommit=True) as connection:
                connection.execute("alter system set shared_preload_libraries = 'pg_stat_statements'")
            server.restart()
        yield server.url


@contextmanager
def own_database(administrator_url: str) -> Iterator[str]:
    """Have an empty database meanwhile."""
    name = f"bench_{secrets.token_hex(6)}"
    with psycopg.connect(administrator_url, autocommit=True) as administrator:
        administrator.execute(f'create database "{name}"'.encode())
        try:
            yield with_path(administrator_url, name)
        finally:
            administrator.execute(f'drop database "{name}" with (force)'.encode())


@contextmanager
def own_virtual_host(broker_url: str, management_url: str | None) -> Iterator[str]:
    """Have an empty virtual host meanwhile; the given one where there is no management interface to make one."""
    if management_url is None:
        yield broker_url
        return
    name = f"bench-{secrets.token_hex(6)}"
    user = urllib.parse.urlsplit(broker_url).username
    everything = {"configure": ".*", "write": ".*", "read": ".*"}
    management(management_url, "PUT", f"/api/vhosts/{name}")
    try:
        management(management_url, "PUT", f"/api/permissions/{name}/{user}", everything)
        yield with_path(broker_url, name)
    finally:
        management(management_url, "DELETE", f"/api/vhosts/{name}")


def with_path(url: str, path: str) -> str:
    """Give `url` with another database or virtual host."""
    return urllib.parse.urlsplit(url)._replace(path=f"/{path}").geturl()


async def deploy(site: Site) -> None:
    """Do what migrate does at deploy time."""
    settings = load_settings(site.settings())
    topology = topology_of(settings, load_jobs(settings.jobs).jobs)
    session = await connect(site.database_url, name="bench", timeout=settings.database_timeout)
    try:
        await migrate(session)
        await enter_environment(session, settings.environment, create=True)
        await session.execute("update matins.environment set topology = $1", topology.as_record())
    finally:
        await session.close()
    await declare_topology(site.broker_url, topology, timeout=20)


def root() -> Path:
    """Give the folder that the packages lie in."""
    return Path(__file__).resolve().parent.parent
