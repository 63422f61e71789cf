"""What every test can ask for: servers of the session, a place of its own on each, and servers to maltreat."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack

import pytest

from examples.servers.find import (
    BROKER_VARIABLE,
    DATABASE_VARIABLE,
    MANAGEMENT_VARIABLE,
    Broker,
    running_postgres,
    running_rabbit,
    running_servers,
    started_postgres,
    started_rabbit,
)
from examples.servers.server import BrokerServer, DatabaseServer
from tests.support.logins import drop_logins
from tests.support.servers import create_template, execute, fresh_database, fresh_virtual_host, unique_name


def pytest_configure(config: pytest.Config) -> None:
    """Start the session's servers once where several processes run the tests; each finds them in its environment."""
    if config.getoption("numprocesses", None) and not hasattr(config, "workerinput"):
        servers = ExitStack()
        config.add_cleanup(servers.close)
        found = servers.enter_context(running_servers())
        os.environ[DATABASE_VARIABLE] = found.database_url
        os.environ[BROKER_VARIABLE] = found.broker.url
        if found.broker.management_url is not None:
            os.environ[MANAGEMENT_VARIABLE] = found.broker.management_url


@pytest.fixture(scope="session")
def administrator_url() -> Iterator[str]:
    """The session's PostgreSQL: an administrator's address. Never stop or reconfigure this server."""
    with running_postgres() as url:
        yield url
        asyncio.run(drop_logins(url))


@pytest.fixture(scope="session")
def broker() -> Iterator[Broker]:
    """The session's RabbitMQ: addresses with an administrator's rights. Never stop or reconfigure this server."""
    with running_rabbit() as addresses:
        yield addresses


@pytest.fixture(scope="session")
def template(administrator_url: str) -> str:
    """The migrated database from which each test's own is copied; its name."""
    return create_template(administrator_url)


@pytest.fixture
async def database_url(administrator_url: str, template: str) -> AsyncIterator[str]:
    """A migrated database of the test's own."""
    async with fresh_database(administrator_url, template) as url:
        yield url


@pytest.fixture
def broker_url(broker: Broker) -> Iterator[str]:
    """An empty virtual host of the test's own."""
    with fresh_virtual_host(broker) as url:
        yield url


@pytest.fixture
def prefix() -> str:
    """A beginning for the names of queues and exchanges that no other test uses."""
    return unique_name()


@pytest.fixture
def throwaway_postgres() -> Iterator[DatabaseServer]:
    """A running PostgreSQL for this test alone, to be stopped, killed, paused and restarted."""
    server = started_postgres()
    yield server
    server.delete()


@pytest.fixture
def throwaway_rabbit() -> Iterator[BrokerServer]:
    """A running RabbitMQ for this test alone, to be stopped, killed, paused, restarted and wiped."""
    server = started_rabbit()
    yield server
    server.delete()


@pytest.fixture
async def role(administrator_url: str) -> AsyncIterator[str]:
    """A database role of the test's own, that may do nothing."""
    name = unique_name()
    await execute(administrator_url, f'create role "{name}"')
    yield name
    await execute(administrator_url, f'drop role "{name}"')
