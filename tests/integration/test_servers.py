"""The servers that the other tests stand on: real, of a supported version, and each test's place its own."""

import asyncio
import os
import sys

import aio_pika
import asyncpg
import pytest

from examples.servers.find import BROKER_VARIABLE, DATABASE_VARIABLE, MANAGEMENT_VARIABLE, Broker
from examples.servers.probe import management
from examples.servers.server import BrokerServer, DatabaseServer
from tests.architecture.sources import ROOT
from tests.support.servers import execute, fresh_database

OLDEST_POSTGRES = 15
OLDEST_RABBIT = (3, 10)


async def value(url: str, query: str) -> object:
    connection = await asyncpg.connect(url)
    try:
        return await connection.fetchval(query)
    finally:
        await connection.close()


async def test_the_database_answers_and_its_version_is_supported(database_url: str) -> None:
    version = await value(database_url, "show server_version_num")
    assert int(str(version)) >= OLDEST_POSTGRES * 10_000


async def test_the_broker_answers_and_its_version_is_supported(broker_url: str) -> None:
    connection = await aio_pika.connect(broker_url)
    async with connection:
        assert connection.transport is not None
        version = str(connection.transport.connection.server_properties["version"])
    assert tuple(map(int, version.split(".")[:2])) >= OLDEST_RABBIT


async def test_a_database_is_the_tests_own(administrator_url: str, template: str, database_url: str) -> None:
    await execute(database_url, "create table mark ()")
    async with fresh_database(administrator_url, template) as another_url:
        assert await value(another_url, "select to_regclass('mark')") is None
    with pytest.raises(asyncpg.InvalidCatalogNameError):
        await asyncpg.connect(another_url)


async def test_a_virtual_host_is_the_tests_own(broker: Broker, broker_url: str, prefix: str) -> None:
    async with await aio_pika.connect(broker_url) as connection:
        channel = await connection.channel()
        await channel.declare_queue(prefix, durable=True)
    async with await aio_pika.connect(broker.url) as connection:
        channel = await connection.channel()
        with pytest.raises(aio_pika.exceptions.ChannelNotFoundEntity):
            await channel.declare_queue(prefix, passive=True)


@pytest.mark.drill
async def test_a_killed_database_keeps_what_was_committed(throwaway_postgres: DatabaseServer) -> None:
    await execute(throwaway_postgres.url, "create table mark ()")
    throwaway_postgres.kill()
    with pytest.raises(ConnectionRefusedError):
        await asyncpg.connect(throwaway_postgres.url)
    throwaway_postgres.start()
    assert await value(throwaway_postgres.url, "select to_regclass('mark')") == "mark"


async def test_running_both_for_a_person_prints_lines_to_paste(administrator_url: str, broker: Broker) -> None:
    management_url = "http://u:p&w@127.0.0.1:15672"
    given = {DATABASE_VARIABLE: administrator_url, BROKER_VARIABLE: broker.url, MANAGEMENT_VARIABLE: management_url}
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "examples.servers"),
        cwd=ROOT,
        env=os.environ | given,
        stdout=asyncio.subprocess.PIPE,
    )
    assert running.stdout is not None
    lines: list[str] = []
    while not lines or not lines[-1].startswith("#"):
        lines.append((await running.stdout.readline()).decode())
        assert lines[-1], "it ended before it had said all"
    running.terminate()
    assert await running.wait() == 0
    names = ("MATINS_DATABASE_URL", "MATINS_BROKER_URL", "MATINS_MANAGEMENT_URL")
    lines += [f'echo "${name}"\n' for name in names]
    shell = await asyncio.create_subprocess_exec("sh", "-c", "".join(lines), stdout=asyncio.subprocess.PIPE)
    printed, _ = await shell.communicate()
    assert printed.decode().split() == [administrator_url, broker.url, management_url]


@pytest.mark.drill
async def test_a_paused_database_answers_no_one_until_it_is_resumed(throwaway_postgres: DatabaseServer) -> None:
    throwaway_postgres.pause()
    with pytest.raises(TimeoutError):
        await asyncpg.connect(throwaway_postgres.url, timeout=0.2)
    throwaway_postgres.resume()
    assert await value(throwaway_postgres.url, "select 1") == 1


@pytest.mark.drill
def test_a_killed_broker_keeps_its_data_and_a_wiped_one_loses_them(throwaway_rabbit: BrokerServer) -> None:
    def virtual_hosts() -> set[str]:
        listed = management(throwaway_rabbit.management_url, "GET", "/api/vhosts")
        assert isinstance(listed, list)
        return {str(entry["name"]) for entry in listed}

    management(throwaway_rabbit.management_url, "PUT", "/api/vhosts/mark")
    throwaway_rabbit.kill()
    throwaway_rabbit.start()
    assert virtual_hosts() == {"/", "mark"}
    throwaway_rabbit.wipe()
    assert virtual_hosts() == {"/"}
