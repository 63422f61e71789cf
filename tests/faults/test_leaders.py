"""A leader that dies, freezes, blocks, waits for its database or leaves: another leads within the lease; one claim."""

from datetime import datetime

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of, until_no_alert
from tests.support.processes import Deployment, Service
from tests.support.proxy import Proxy
from tests.support.readiness import ready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ACCOUNTS = 20
LEASE_SECONDS = 1.0
# A pass, and what the machine needs for it.
PASS_SECONDS = 3.0
JOBS = """
jobs = [nightly("led", PerAccount(effect), coordination="leader")]
"""
LEADER = "select holder from matins.lease where name = 'leader:led' and until >= clock_timestamp()"
NOW = "select clock_timestamp()"


async def leader_of(session: Session, services: list[Service]) -> Service:
    """Wait until one of these leads, and give it."""
    by_id = {await service.instance(): service for service in services}

    async def look() -> Service | None:
        return by_id.get(str(await session.fetchval(LEADER)))

    found: Service = await until(look)
    return found


async def led_fleet(deployed: Deployment, session: Session, *, triggers: int = 3) -> tuple[Service, list[Service]]:
    """Have triggers that wait for their night, and a worker; give the leader and the others."""
    await deployed.deploy(ACCOUNTS, fall=False)
    services = [deployed.start("trigger") for _ in range(triggers)]
    worker = deployed.start("worker")
    for service in (*services, worker):
        await service.working()
    await ready(*services, worker)
    leader = await leader_of(session, services)
    for service in services:
        for job in deployed.jobs:
            await service.logged("job registered", job=job.name)
    return leader, [service for service in services if service is not leader]


async def assert_claimed_by_another(session: Session, deployed: Deployment, former: Service, since: datetime) -> None:
    """See that another than the former leader has claimed the night, within the lease; once, with one attempt each."""
    row = await assert_night(session, deployed, "led", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert row["claimed_by"] != await former.instance()
    assert (row["claimed_at"] - since).total_seconds() < LEASE_SECONDS + PASS_SECONDS
    assert await count(session, "select count(*) from matins.attempt where won") == 1


async def test_of_three_triggers_the_leader_alone_attempts(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    leader, _ = await led_fleet(deployed, session)
    await deployed.fall()
    row = await assert_night(session, deployed, "led", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert row["claimed_by"] == await leader.instance()
    assert await count(session, "select count(*) from matins.attempt") == 1
    await until_no_alert(session)
    said = await deployed.command("status")
    assert f"leader {(await leader.instance())[:8]}, epoch 1" in said
    assert (await leader.instance())[:8] in await deployed.command("attempts", "led")


async def test_it_is_frozen_at_the_due_second_and_goes_on_later(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    leader, _ = await led_fleet(deployed, session)
    leader.freeze()
    since = await session.fetchval(NOW)
    await deployed.fall()
    await assert_claimed_by_another(session, deployed, leader, since)
    before = dict(await occurrence_of(session, deployed, "led"))
    leader.go_on()
    await leader.logged("leadership lost", job="led")
    assert dict(await occurrence_of(session, deployed, "led")) == before
    assert await count(session, "select count(*) from matins.audit where kind = 'claim'") == 1


async def test_it_dies_at_the_due_second(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    leader, _ = await led_fleet(deployed, session)
    leader.kill()
    since = await session.fetchval(NOW)
    await deployed.fall()
    await assert_claimed_by_another(session, deployed, leader, since)


BLOCKING_JOBS = """
WHO = os.environ.get("MATINS_EXAMPLE_WHO")


async def blocks(call):
    if WHO == "blocked":
        (HERE / "blocked").touch()
        while not (HERE / "go").exists():
            time.sleep(0.05)
    yield AccountAt("a000000", "1")

jobs = [
    nightly("led", PerAccount(effect), coordination="leader"),
    nightly("blocks", PerAccount(effect), accounts=GeneratedAccounts(blocks)),
]
"""


async def test_its_event_loop_is_blocked(deployed: Deployment, session: Session) -> None:
    deployed.declare(BLOCKING_JOBS)
    await deployed.deploy(ACCOUNTS, fall=False)
    blocked = deployed.start("trigger", example_who="blocked")
    await blocked.working()
    await leader_of(session, [blocked])
    await deployed.fall("blocks")

    async def is_blocked() -> bool:
        return (deployed.folder / "blocked").exists()

    await until(is_blocked)
    since = await session.fetchval(NOW)
    second, worker = deployed.start("trigger"), deployed.start("worker")
    await second.working()
    await worker.working()
    assert await leader_of(session, [second]) is second, "though the blocked one lives"
    # What was due is claimed by who leads then; the lease has run out long before its start was over.
    await deployed.fall("led")
    row = await assert_night(session, deployed, "led", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert row["claimed_by"] == await second.instance()
    assert row["claimed_at"] > since
    (deployed.folder / "go").touch()
    await blocked.logged("leadership lost", job="led")


async def test_its_database_answers_later_than_the_lease(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS, fall=False)
    async with Proxy(deployed.database_url) as proxy:
        slow = deployed.start("trigger", database_url=proxy.url)
        await slow.working()
        await leader_of(session, [slow])
        second, worker = deployed.start("trigger"), deployed.start("worker")
        await second.working()
        await second.logged("job registered", job="led")
        await worker.working()
        proxy.to_client.delay = proxy.to_server.delay = 1.5
        since = await session.fetchval(NOW)
        await deployed.fall()
        await assert_claimed_by_another(session, deployed, slow, since)
        proxy.heal()
        await slow.logged("leadership lost", job="led")
        slow.terminate()
        assert await slow.ended() == 0


async def test_a_rolling_restart_hands_it_on_at_once(deployed: Deployment, session: Session) -> None:
    # Nobody waits for this lease to run out.
    deployed.settings["claim_lease"] = "10m"
    deployed.declare(JOBS)
    leader, others = await led_fleet(deployed, session, triggers=2)
    fresh = deployed.start("trigger")
    await fresh.logged("job registered", job="led")
    for leaving in (leader, *others):
        leaving.terminate()
        assert await leaving.ended() == 0
    await deployed.fall()
    row = await assert_night(session, deployed, "led", ACCOUNTS)
    assert row["claimed_by"] == await fresh.instance()
    assert leader.lines("leadership given back", job="led")
    assert await count(session, "select max(epoch) from matins.lease where name = 'leader:led'") >= 2


CHANGING_JOBS = """
WHO = os.environ.get("MATINS_EXAMPLE_WHO")

jobs = [nightly("led", PerAccount(effect), coordination={new} if WHO == "new" else {old})]
"""


@pytest.mark.parametrize(("old", "new"), [("claim", "leader"), ("leader", "claim")])
async def test_who_attempts_is_changed_one_by_one_across_the_due_instant(
    deployed: Deployment, session: Session, old: str, new: str
) -> None:
    deployed.declare(CHANGING_JOBS.replace("{old}", repr(old)).replace("{new}", repr(new)))
    await deployed.deploy(ACCOUNTS, fall=False)
    leaving = [deployed.start("trigger") for _ in range(2)]
    worker = deployed.start("worker")
    for service in (*leaving, worker):
        await service.working()
    for service in leaving:
        await service.logged("job registered", job="led")
    coming = [deployed.start("trigger", example_who="new")]
    await coming[0].logged("job registered", job="led", revision=2)
    await deployed.fall()
    leaving[0].terminate()
    coming.append(deployed.start("trigger", example_who="new"))
    leaving[1].terminate()
    assert [await service.ended() for service in leaving] == [0, 0]
    row = await assert_night(session, deployed, "led", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    await coming[1].logged("job registered", job="led", revision=2)
    assert await count(session, "select count(*) from matins.audit where kind = 'claim'") == 1
