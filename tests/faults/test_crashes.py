"""A process dies at each arrow of an occurrence; every account still has one effect, and the counts add up.

The process is held at the place from outside, ended there with SIGKILL, and its sessions are ended with it, so that
what it was about to write is not written. Then another process goes on.
"""

import pytest

from shared.postgres import Session
from tests.support.broker import administrator
from tests.support.fleet import until
from tests.support.holds import call_hold, holding
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment
from tests.support.proxy import Proxy

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 60
JOBS = """
jobs = [nightly("night", PerAccount(effect), page_size=20)]
"""
# The write where it is held, as table, event and condition; the accounts read by then, and the occurrence's state.
TRIGGER_ARROWS = {
    "after the plan": ("matins.attempt", "insert", "true", 0, "expected"),
    "after the claim": ("matins.occurrence", "update", "new.accounts_read > old.accounts_read", 0, "claimed"),
    "in the middle of the fan-out": ("matins.occurrence", "update", "new.accounts_read > 40", 40, "claimed"),
    "before the seal": (
        "matins.occurrence",
        "update",
        "new.sealed_at is not null and old.sealed_at is null",
        60,
        "claimed",
    ),
    "before the publish": ("matins.lease", "insert", "new.name like 'publish:%'", 60, "running"),
    "after the confirm, before the mark": ("matins.publication", "insert", "true", 60, "running"),
}


@pytest.mark.parametrize("arrow", TRIGGER_ARROWS)
async def test_a_trigger_dies(arrow: str, deployed: Deployment, session: Session) -> None:
    table, event, condition, accounts_read, state = TRIGGER_ARROWS[arrow]
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    async with holding(deployed.database_url, table, event, condition) as hold:
        victim = deployed.start("trigger")
        await hold.reached(victim)

        async def read() -> bool:
            row = await occurrence_of(session, deployed, "night")
            return bool(row["accounts_read"] == accounts_read and row["state"] == state)

        await until(read)
        await hold.crash(victim)
        await hold.let_go()
    before = await occurrence_of(session, deployed, "night")
    assert before["state"] == state
    if state == "running":
        assert await count(session, "select count(*) from matins.publication") == 0
    deployed.start("trigger")
    deployed.start("worker")
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    takeovers = await count(session, "select count(*) from matins.audit where kind = 'takeover'")
    assert takeovers == (1 if state == "claimed" else 0)


async def test_a_trigger_dies_with_hundreds_of_publishes_unconfirmed(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS.replace("page_size=20", "page_size=300"))
    await deployed.deploy(300, fall=False)
    async with Proxy(deployed.broker_url) as proxy, administrator(deployed.broker_url) as channel:
        victim = deployed.start("trigger", broker_url=proxy.url)
        await victim.logged("broker_connected")
        await until(lambda: session.fetchval("select count(*) = 1 from matins.job"))
        proxy.to_client.hold()
        await deployed.fall()

        async def in_flight() -> bool:
            queue = await channel.declare_queue(f"{deployed.prefix}.work.night", passive=True)
            return (queue.declaration_result.message_count or 0) >= 100

        await until(in_flight)
        victim.kill()
    assert await count(session, "select count(*) from matins.publication") == 0, "none was confirmed, so none is marked"
    deployed.start("trigger")
    deployed.start("worker")
    row = await assert_night(session, deployed, "night", 300)
    await assert_one_effect_each(session, row, 300)


HELD_JOBS = """
async def held(call):
    await effect(call)
    if call.account == "a000007":
        await call.connection.execute("select hold()")

jobs = [
    nightly("night", PerAccount(held)),
    nightly("chunks", PerAccount(held, chunk_size=20)),
]
"""


@pytest.mark.parametrize("job", ["night", "chunks"])
async def test_a_worker_dies_in_the_middle_of_a_handler(job: str, deployed: Deployment, session: Session) -> None:
    deployed.declare(HELD_JOBS)
    await deployed.deploy(ACCOUNTS)
    async with call_hold(session) as hold:
        deployed.start("trigger")
        victim = deployed.start("worker")
        await hold.reached(victim)
        await hold.crash(victim)
        assert await count(session, "select count(*) from effect where account = 'a000007'") == 0
        await hold.let_go()
    deployed.start("worker")
    for name in ("night", "chunks"):
        row = await assert_night(session, deployed, name, ACCOUNTS)
        await assert_one_effect_each(session, row, ACCOUNTS)
    charged = "select count(*) from matins.ledger where attempts <> 1"
    assert await count(session, charged) == 0, f"a crash in {job} charges nobody"


async def test_a_worker_dies_after_the_settle_before_the_acknowledgement(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(HELD_JOBS)
    await deployed.deploy(ACCOUNTS)
    async with Proxy(deployed.broker_url) as proxy, call_hold(session) as hold:
        deployed.start("trigger")
        victim = deployed.start("worker", broker_url=proxy.url)
        await hold.reached(victim)
        proxy.to_server.hold()
        await hold.let_go()

        async def settled() -> bool:
            return (
                await count(
                    session, "select count(*) from matins.ledger where account = 'a000007' and state = 'succeeded'"
                )
                == 2
            )

        await until(settled)
        victim.kill()
    deployed.start("worker")
    for job in ("night", "chunks"):
        row = await assert_night(session, deployed, job, ACCOUNTS)
        await assert_one_effect_each(session, row, ACCOUNTS)


RETRIED_JOBS = """
async def retried(call):
    if call.attempt == 1 and call.account == "a000007":
        raise ValueError("once")
    await effect(call)

jobs = [nightly("night", PerAccount(retried))]
"""
WORKER_ARROWS: dict[str, tuple[str, str, str]] = {
    "after a retry's publish, before its mark": (
        "matins.ledger",
        "update",
        "new.attempts = 1 and new.state = 'pending' and old.published_at is null and new.published_at is not null",
    ),
    "before the close": ("matins.occurrence", "update", "new.closed_at is not null and old.closed_at is null"),
}


@pytest.mark.parametrize("arrow", WORKER_ARROWS)
async def test_a_worker_dies_between_two_of_its_writes(arrow: str, deployed: Deployment, session: Session) -> None:
    table, event, condition = WORKER_ARROWS[arrow]
    deployed.declare(RETRIED_JOBS)
    await deployed.deploy(ACCOUNTS)
    async with holding(deployed.database_url, table, event, condition) as hold:
        deployed.start("trigger", sweep_interval="3s")
        victim = deployed.start("worker")
        await hold.reached(victim)
        await hold.crash(victim)
        await hold.let_go()
    deployed.start("worker")
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert await count(session, "select attempts from matins.ledger where account = 'a000007'") == 2
