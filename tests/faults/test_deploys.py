"""Starting at once on empty servers, and keeping environments apart."""

from pathlib import Path

import pytest

from examples.servers.find import Broker
from shared.postgres import Session
from tests.support.ledger import session_on
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.processes import Deployment, deployment
from tests.support.servers import execute, unique_name, with_path

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

JOBS = """
jobs = [nightly("night", PerAccount(effect))]
"""
ACCOUNTS = 50


async def test_six_processes_start_at_once_on_an_empty_database(
    tmp_path: Path, administrator_url: str, broker_url: str, prefix: str
) -> None:
    name = unique_name()
    await execute(administrator_url, f'create database "{name}"')
    try:
        async with deployment(tmp_path, with_path(administrator_url, name), broker_url, prefix) as deployed:
            deployed.declare(JOBS)
            services = [deployed.start("trigger", "serve", "--migrate") for _ in range(3)]
            services += [deployed.start("worker") for _ in range(3)]
            for service in services:
                await service.working()
            async with session_on(deployed.database_url) as session:
                applied = await count(session, "select count(*) from matins.migration")
                assert applied == await count(session, "select max(version) from matins.migration")
                assert await count(session, "select count(*) from matins.instance where stopped_at is null") == 6
            for service in services:
                service.terminate()
            assert [await service.ended() for service in services] == [0] * 6
    finally:
        await execute(administrator_url, f'drop database "{name}" with (force)')


async def test_two_environments_share_a_broker_and_do_not_touch(
    tmp_path: Path, deployed: Deployment, session: Session, administrator_url: str, template: str, broker: Broker
) -> None:
    name = unique_name()
    await execute(administrator_url, f'create database "{name}" template "{template}"')
    folder = tmp_path / "other"
    folder.mkdir()
    try:
        async with (
            deployment(
                folder, with_path(administrator_url, name), deployed.broker_url, unique_name(), environment="other"
            ) as other,
            session_on(other.database_url) as other_session,
        ):
            for one in (deployed, other):
                one.declare(JOBS)
                await one.deploy(ACCOUNTS)
                one.start("trigger")
                one.start("worker")
            for one, looking in ((deployed, session), (other, other_session)):
                row = await assert_night(looking, one, "night", ACCOUNTS)
                await assert_one_effect_each(looking, row, ACCOUNTS)
            await assert_refused(deployed, "the database to 'test'", environment="other")
            await assert_refused(other, f"prefix '{deployed.prefix}'", prefix=deployed.prefix)
    finally:
        await execute(administrator_url, f'drop database "{name}" with (force)')


async def assert_refused(deployed: Deployment, reason: str, **settings: str) -> None:
    """See that both kinds of process end with 2 and say which environment they met."""
    services = [deployed.start(kind, **settings) for kind in ("trigger", "worker")]
    for service in services:
        assert await service.ended() == 2, service.log.read_text()
        assert reason in service.log.read_text()
