"""The database is put back to before the claim while the broker keeps its messages: everything waits for a person."""

import json
from collections import Counter
from urllib.error import HTTPError
from urllib.request import urlopen

import anyio.to_thread
import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment, Service
from tests.support.servers import execute, unique_name

pytestmark = [pytest.mark.drill, pytest.mark.timeout(150)]

ACCOUNTS = 60
# The provider's books lie outside of what is put back.
JOBS = """
BOOKS = HERE / "books"

async def charge(call):
    with BOOKS.open("a") as books:
        books.write(f"{call.account} {call.key}\\n")
    await anyio.sleep(0.2)

jobs = [
    nightly("night", PerAccount(effect)),
    nightly("charge", Outside(charge, key_valid_for=hours(48), concurrency=2)),
]
"""


def books(deployed: Deployment) -> list[tuple[str, str]]:
    """Give account and key of every call that the provider has had."""
    path = deployed.folder / "books"
    return [tuple(line.split()) for line in path.read_text().splitlines()] if path.exists() else []  # type: ignore[misc] # two words each


async def put_back(administrator_url: str, name: str, snapshot: str) -> None:
    """Put a database in the place of another one, under everybody who is connected."""
    await execute(administrator_url, f'alter database "{name}" allow_connections false')
    await execute(
        administrator_url, f"select pg_terminate_backend(pid, 5000) from pg_stat_activity where datname = '{name}'"
    )
    await execute(administrator_url, f'alter database "{name}" rename to "{name}_lost"')
    await execute(administrator_url, f'create database "{name}" template "{snapshot}"')


async def unready(service: Service) -> str:
    """Wait until a service says that it is held, and give its readiness."""
    address = await service.health()

    def ask() -> str:
        try:
            with urlopen(f"{address}/readyz", timeout=5) as answer:  # noqa: S310 - the service's own address
                return str(answer.read().decode())
        except HTTPError as refusal:
            return refusal.read().decode()

    async def look() -> str | None:
        said = await anyio.to_thread.run_sync(ask)
        return said if "everything is held" in said else None

    return str(await until(look))


async def ended(service: Service) -> tuple[int, str]:
    code = await service.ended()
    return code, service.log.read_text()


async def start_and_lose(deployed: Deployment, administrator_url: str, snapshot: str) -> None:
    """Let a night begin, then put the database back to before it; see that both processes hold everything and end."""
    services = [deployed.start(kind) for kind in ("trigger", "worker")]

    async def charged() -> bool:
        return len(books(deployed)) >= 10

    await until(charged)
    await put_back(administrator_url, deployed.database_url.rpartition("/")[2], snapshot)
    for service in services:
        code, said = await ended(service)
        assert code == 1, said
        assert "the database was put back" in said


async def test_what_was_put_back_waits_until_a_person_has_read_what_may_happen_twice(
    deployed: Deployment, administrator_url: str
) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    snapshot, name = unique_name(), deployed.database_url.rpartition("/")[2]
    await execute(administrator_url, f'create database "{snapshot}" template "{name}"')
    try:
        await start_and_lose(deployed, administrator_url, snapshot)
        async with session_on(deployed.database_url) as session:
            await goes_on_after_release(deployed, session)
    finally:
        await execute(administrator_url, f'drop database "{snapshot}"')
        await execute(administrator_url, f'drop database if exists "{name}_lost"')


async def goes_on_after_release(deployed: Deployment, session: Session) -> None:
    before = Counter(account for account, _ in books(deployed))
    trigger, worker = (deployed.start(kind) for kind in ("trigger", "worker"))
    assert "put back" in await unready(trigger)
    assert "put back" in await unready(worker)
    await messages_gone(deployed)
    at = ("--at", deployed.night.isoformat())
    fired = await ended(deployed.start("trigger", "fire", "charge", *at, "--reason", "impatience"))
    assert fired[0] == 1
    assert "everything is held" in fired[1]
    shown = await ended(deployed.start("trigger", "reconcile", "--json"))
    assert shown[0] == 1, shown[1]
    found = {one["occurrence"].partition(":")[0]: one for one in json.loads(shown[1])["occurrences"]}
    assert {name: one["state"] for name, one in found.items()} == {"night": "expected", "charge": "expected"}
    assert (found["charge"]["outside"], found["charge"]["key_forgotten"]) == (True, False)
    assert found["night"]["key_valid_until"] is None
    assert Counter(account for account, _ in books(deployed)) == before, "nothing was started"
    assert (await occurrence_of(session, deployed, "charge"))["state"] == "expected"

    await deployed.command("reconcile", "--release", "--reason", "the keys are still known")
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    await assert_night(session, deployed, "charge", ACCOUNTS)
    calls = books(deployed)
    assert len(set(calls)) == ACCOUNTS, "a call that happens again bears the same key"
    assert Counter(account for account, _ in calls) == before + Counter({account: 1 for account, _ in set(calls)})
    kinds = "select count(*) from matins.audit where kind in ('hold', 'release')"
    assert await count(session, kinds) == 2
    assert all(service.alive for service in (trigger, worker))


async def messages_gone(deployed: Deployment) -> None:
    """Wait until the broker's messages of the lost nights are gone: none has a row."""

    async def look() -> bool:
        service = deployed.start("trigger", "status", "--json")
        await service.ended()
        queues = json.loads(service.log.read_text())["queues"]
        return not sum(one["messages"] for one in queues)

    await until(look)
