"""Where the servers come from, in this order.

1. An address in the environment: MATINS_TEST_DATABASE_URL (of an administrator who may create databases and roles),
   MATINS_TEST_BROKER_URL, and MATINS_TEST_MANAGEMENT_URL beside the latter.
2. What MATINS_TEST_DATABASE_SERVER or MATINS_TEST_BROKER_SERVER chooses: an image, or a folder of programs.
3. Containers, if a Docker engine answers and has or gets the images.
4. Private instances of the programs on this machine.
5. With `install=True`, as root on Debian and its kin: the packages are installed first, then as 4.

What is chosen serves or fails; nothing else serves in its place. If none works, ServerUnavailableError says what to
install. Nothing is ever skipped.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from examples.servers.installer import can_install, install, missing_packages
from examples.servers.postgres import PostgresServer, find_postgres
from examples.servers.probe import docker_answers
from examples.servers.programs import BROKER_SERVER_VARIABLE, DATABASE_SERVER_VARIABLE, chosen
from examples.servers.rabbit import RabbitServer, find_rabbit
from examples.servers.server import BrokerServer, DatabaseServer, ServerUnavailableError

DATABASE_VARIABLE = "MATINS_TEST_DATABASE_URL"
BROKER_VARIABLE = "MATINS_TEST_BROKER_URL"
MANAGEMENT_VARIABLE = "MATINS_TEST_MANAGEMENT_URL"
ADVICE = (
    "No server of {package} was found. Set {variable} to an administrator's address, or start a Docker engine, or "
    "install the package {package}: `python -m examples.servers install`, as root on Debian or Ubuntu, does that."
)


@dataclass(frozen=True)
class Broker:
    """Addresses of a RabbitMQ; `management_url` is None where the environment names none."""

    url: str
    management_url: str | None


@dataclass(frozen=True)
class Servers:
    """Addresses of a running PostgreSQL and a running RabbitMQ, both with an administrator's rights."""

    database_url: str
    broker: Broker


@contextmanager
def running_servers(*, install_missing: bool = False) -> Iterator[Servers]:
    """Have both servers running meanwhile; raises ServerUnavailableError."""
    with (
        running_postgres(install_missing=install_missing) as database_url,
        running_rabbit(install_missing=install_missing) as broker,
    ):
        yield Servers(database_url, broker)


@contextmanager
def running_postgres(*, install_missing: bool = False) -> Iterator[str]:
    """Have a PostgreSQL running meanwhile, and give an administrator's address; raises ServerUnavailableError."""
    if given := os.environ.get(DATABASE_VARIABLE):
        yield given
        return
    server = started_postgres(install_missing=install_missing)
    try:
        yield server.url
    finally:
        server.delete()


@contextmanager
def running_rabbit(*, install_missing: bool = False) -> Iterator[Broker]:
    """Have a RabbitMQ running meanwhile, and give its addresses; raises ServerUnavailableError."""
    if given := os.environ.get(BROKER_VARIABLE):
        yield Broker(given, os.environ.get(MANAGEMENT_VARIABLE))
        return
    server = started_rabbit(install_missing=install_missing)
    try:
        yield Broker(server.url, server.management_url)
    finally:
        server.delete()


def started_postgres(*, install_missing: bool = False) -> DatabaseServer:
    """Start a PostgreSQL of our own, which the caller deletes; raises ServerUnavailableError."""
    choice = chosen(DATABASE_SERVER_VARIABLE)
    if isinstance(choice, Path):
        return PostgresServer().__enter__()
    if choice is not None or docker_answers():
        from examples.servers.containers import POSTGRES_IMAGE, PostgresContainer  # noqa: PLC0415 - only if it serves

        with falling_back("PostgreSQL", choice):
            return PostgresContainer(choice or POSTGRES_IMAGE).__enter__()
    if find_postgres() is None:
        provide("postgresql", DATABASE_VARIABLE, install_missing=install_missing)
    return PostgresServer().__enter__()


def started_rabbit(*, install_missing: bool = False, metrics: bool = False) -> BrokerServer:
    """Start a RabbitMQ of our own, which the caller deletes; raises ServerUnavailableError."""
    choice = chosen(BROKER_SERVER_VARIABLE)
    if isinstance(choice, Path):
        return RabbitServer(metrics=metrics).__enter__()
    if choice is not None or docker_answers():
        from examples.servers.containers import RABBIT_IMAGE, RabbitContainer  # noqa: PLC0415 - only if it serves

        with falling_back("RabbitMQ", choice):
            return RabbitContainer(choice or RABBIT_IMAGE).__enter__()
    if find_rabbit() is None:
        provide("rabbitmq-server", BROKER_VARIABLE, install_missing=install_missing)
    return RabbitServer(metrics=metrics).__enter__()


def needed_packages() -> list[str]:
    """Give the packages without which a server would come from nowhere, and those that only tests need."""
    given = {"postgresql": DATABASE_VARIABLE, "rabbitmq-server": BROKER_VARIABLE}
    missing = missing_packages()
    servers = [] if docker_answers() else [one for one in missing if one in given and not os.environ.get(given[one])]
    # Who cannot install it is told so by the one test that needs it.
    return servers + [one for one in missing if one not in given and can_install()]


@contextmanager
def falling_back(name: str, choice: str | None) -> Iterator[None]:
    """Say why there is no container of `name`, and go on without it unless it was chosen."""
    try:
        yield
    except ServerUnavailableError as error:
        if choice is not None:
            raise
        print(f"No container of {name}, so this machine's own programs serve: {error}", file=sys.stderr, flush=True)


def provide(package: str, variable: str, *, install_missing: bool) -> None:
    """Install a missing package if that was asked for and can be done; raises ServerUnavailableError with advice."""
    if not (install_missing and can_install()):
        raise ServerUnavailableError(ADVICE.format(package=package, variable=variable))
    install([package])
