"""A worker that is asked to end: what runs may finish, what cannot is handed back and charged to nobody."""

import anyio
import pytest

from shared import clock
from shared.postgres import Session
from tests.support.fleet import until
from tests.support.holds import call_hold, holding
from tests.support.ledger import ledger
from tests.support.nights import HELD_JOBS, SLOW_SOURCE_JOBS, assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 30
STUCK = "a000007"


async def test_a_handler_that_runs_may_finish(deployed: Deployment, session: Session) -> None:
    deployed.declare(HELD_JOBS)
    await deployed.deploy(ACCOUNTS)
    async with call_hold(session) as hold:
        deployed.start("trigger")
        worker = deployed.start("worker")
        await hold.reached(worker)
        worker.terminate()
        await worker.logged("stopping")
        await hold.let_go()
        assert await worker.ended() == 0
    row = (await ledger(session, (await occurrence_of(session, deployed, "night"))["id"]))[STUCK]
    assert (row["state"], row["attempts"]) == ("succeeded", 1)
    deployed.start("worker")
    occurrence = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, occurrence, ACCOUNTS)
    assert await count(session, "select count(*) from matins.ledger where attempts <> 1") == 0


async def test_a_handler_longer_than_the_grace_period_is_handed_back(deployed: Deployment, session: Session) -> None:
    deployed.declare(HELD_JOBS)
    await deployed.deploy(ACCOUNTS)
    async with call_hold(session) as hold:
        deployed.start("trigger", resend_after="1h")
        worker = deployed.start("worker", grace_period="2s")
        await hold.reached(worker)
        worker.terminate()
        assert await worker.ended() == 0
        row = (await ledger(session, (await occurrence_of(session, deployed, "night"))["id"]))[STUCK]
        assert (row["state"], row["attempts"], row["starts"]) == ("pending", 0, 0)
        await hold.let_go()
    deployed.start("worker")
    occurrence = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, occurrence, ACCOUNTS)
    row = (await ledger(session, occurrence["id"]))[STUCK]
    assert (row["attempts"], row["isolated"]) == (1, False), "it came as new, and not as one that ended its worker"


async def test_a_second_signal_ends_at_once(deployed: Deployment, session: Session) -> None:
    deployed.declare(HELD_JOBS)
    await deployed.deploy(ACCOUNTS)
    async with call_hold(session) as hold:
        deployed.start("trigger")
        worker = deployed.start("worker", grace_period="1h")
        await hold.reached(worker)
        worker.terminate()
        await worker.logged("stopping")
        worker.terminate()
        began = clock.monotonic()
        assert await worker.ended() == 130
        assert clock.monotonic() - began < 5
        await hold.let_go()
    deployed.start("worker")
    occurrence = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, occurrence, ACCOUNTS)


async def test_it_says_goodbye_when_its_last_look_is_over(deployed: Deployment, session: Session) -> None:
    deployed.declare(HELD_JOBS)
    await deployed.deploy(ACCOUNTS)
    ended = "select stopped_at is not null from matins.instance where id::text = $1"
    async with holding(deployed.database_url, "matins.occurrence", "update", "new.closed_at is not null") as hold:
        async with call_hold(session) as call:
            deployed.start("trigger")
            worker = deployed.start("worker")
            await call.reached(worker)
        await hold.reached(worker)
        instance = await worker.instance()
        worker.terminate()
        await worker.logged("stopping")
        with anyio.move_on_after(1):
            await until(lambda: session.fetchval(ended, instance))
        assert not await session.fetchval(ended, instance), "what looks at the occurrences still runs"
        await hold.let_go()
        assert await worker.ended() == 0
    assert await session.fetchval(ended, instance)
    await assert_night(session, deployed, "night", ACCOUNTS)


BLOCKING_JOBS = """
def blocks(call):
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{call.account}\\n")
    if call.account == "a000001":
        time.sleep(5)
    call.connection.execute(
        "insert into effect (account, occurrence) values ($1, $2)", call.account, str(call.occurrence))

jobs = [nightly("night", PerAccount(blocks))]
"""


async def test_a_blocking_handler_longer_than_two_heartbeats_keeps_its_connection(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(BLOCKING_JOBS)
    await deployed.deploy(4)
    deployed.start("trigger", broker_heartbeat="1s", resend_after="1h")
    worker = deployed.start("worker", broker_heartbeat="1s")
    occurrence = await assert_night(session, deployed, "night", 4)
    await assert_one_effect_each(session, occurrence, 4)
    assert len((deployed.folder / "calls").read_text().split()) == 4, "each was called once"
    assert not worker.lines("broker_unavailable")


async def test_a_trigger_gives_its_fan_out_back_between_two_pages(deployed: Deployment, session: Session) -> None:
    deployed.declare(SLOW_SOURCE_JOBS)
    await deployed.deploy(0)
    first = deployed.start("trigger", claim_lease="10m")

    async def under_way() -> bool:
        return bool((await occurrence_of(session, deployed, "night"))["accounts_read"] >= 20)

    await until(under_way)
    first.terminate()
    assert await first.ended() == 0
    assert (await occurrence_of(session, deployed, "night"))["state"] == "claimed"
    deployed.start("trigger", claim_lease="10m")
    deployed.start("worker")
    occurrence = await assert_night(session, deployed, "night", 100)
    await assert_one_effect_each(session, occurrence, 100)
