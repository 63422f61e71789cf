from collections.abc import AsyncIterator

import anyio
import pytest

from examples.servers.find import Broker
from shared.broker import BrokerUnavailable, TopologyMismatch, check_topology
from shared.broker import WrongEnvironment as WrongBroker
from shared.broker_inspection import inspect_broker
from shared.migrate import WrongEnvironment, migrations
from shared.settings import Settings, load_settings
from tests.support.broker import SECONDS, TIMEOUT, administrator, topology_of
from tests.support.ledger import session_on
from tests.support.logins import NAMES
from tests.support.servers import execute, fresh_virtual_host, unique_name, with_path
from trigger.database_roles import plan_for
from trigger.deploy import merged, migrate_broker, migrate_database, sql_script


@pytest.fixture
async def empty_url(administrator_url: str) -> AsyncIterator[str]:
    """A database with nothing in it."""
    name = unique_name()
    await execute(administrator_url, f'create database "{name}"')
    yield with_path(administrator_url, name)
    await execute(administrator_url, f'drop database "{name}" with (force)')


def settings_of(
    database_url: str, broker_url: str = "amqp://nobody@127.0.0.1:1/", *, environment: str = "test"
) -> Settings:
    sources = {"ENVIRONMENT": environment, "JOBS": "none", "DATABASE_URL": database_url, "BROKER_URL": broker_url}
    return load_settings({f"MATINS_{name}": value for name, value in sources.items()})


async def test_many_migrate_an_empty_database_and_broker_at_once(empty_url: str, broker_url: str, prefix: str) -> None:
    settings, topology = settings_of(empty_url, broker_url), topology_of(prefix)
    applied: list[int] = []

    async def deploy() -> None:
        applied.extend(one.version for one in await migrate_database(settings))
        await migrate_broker(settings, topology, record=True)

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(deploy)
    assert sorted(applied) == [one.version for one in migrations()]
    await check_topology(broker_url, topology, timeout=TIMEOUT)
    async with session_on(empty_url) as session:
        row = await session.fetchrow("select name, topology from matins.environment")
        assert row is not None
        assert (row["name"], topology.differences(row["topology"])) == ("test", [])


async def test_another_environments_servers_are_left_alone(database_url: str, broker_url: str, prefix: str) -> None:
    await migrate_database(settings_of(database_url))
    await migrate_broker(settings_of(database_url, broker_url), topology_of(prefix), record=True)
    other = settings_of(database_url, broker_url, environment="production")
    with pytest.raises(WrongEnvironment, match="belongs to environment 'production', the database to 'test'"):
        await migrate_database(other)
    with pytest.raises(WrongBroker, match="belongs to environment 'test', not to 'production'"):
        await migrate_broker(other, topology_of(prefix, environment="production"), record=False)


async def test_a_queue_with_another_argument_is_named_and_not_recorded(
    database_url: str, broker_url: str, prefix: str
) -> None:
    settings = settings_of(database_url, broker_url)
    await migrate_database(settings)
    topology = topology_of(prefix)
    name = topology.work_queue("default")
    async with administrator(broker_url) as channel:
        wrong = {**topology.as_record()["queues"][name], "x-delivery-limit": 9}
        await channel.declare_queue(name, durable=True, arguments=wrong)
    with pytest.raises(TopologyMismatch, match=f"queue {prefix}.work.default: x-delivery-limit is 9"):
        await migrate_broker(settings, topology, record=True)
    async with session_on(database_url) as session:
        assert await session.fetchval("select topology from matins.environment") is None


async def test_without_a_broker_it_says_so(database_url: str, prefix: str) -> None:
    with pytest.raises(BrokerUnavailable, match=r"cannot connect to broker 127\.0\.0\.1:1"):
        await migrate_broker(settings_of(database_url), topology_of(prefix), record=False)


def test_the_record_keeps_what_other_releases_need_of_the_same_prefix() -> None:
    old, new = topology_of("p", queues=frozenset({"old"})), topology_of("p", queues=frozenset({"new"}))
    record = merged(old.as_record(), new)
    assert (old.differences(record), new.differences(record)) == ([], [])
    assert merged(old.as_record(), topology_of("q")) == topology_of("q").as_record()
    assert merged(None, new) == new.as_record()


async def test_an_administrator_can_apply_the_script_by_hand(empty_url: str, prefix: str) -> None:
    topology = topology_of(prefix)
    script = sql_script("test", topology, plan_for(NAMES, {}))
    async with session_on(empty_url) as session:
        await session.execute(script)
        recorded = await session.fetchval("select topology from matins.environment")
    assert topology.differences(recorded) == []
    assert await migrate_database(settings_of(empty_url)) == []


async def test_the_broker_tells_its_release_and_its_queues(broker: Broker) -> None:
    with fresh_virtual_host(broker) as url, anyio.fail_after(SECONDS):
        topology = topology_of(unique_name())
        await migrate_broker(settings_of("postgresql://nowhere/x", url), topology, record=False)
        work = topology.work_queue("default")
        facts = await inspect_broker(url, [work, "no-such-queue"], timeout=TIMEOUT)
    assert facts.product == "RabbitMQ"
    assert facts.version[0].isdigit()
    assert facts.queues["no-such-queue"] is None
    depth = facts.queues[work]
    assert depth is not None
    assert (depth.messages, depth.consumers) == (0, 0)
