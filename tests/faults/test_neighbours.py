"""What one worker's messages do to each other: a poisonous one, a long one, one that blocks, and too many at once."""

import signal
from collections import Counter

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import ledger
from tests.support.nights import assert_night, count, effects, occurrence_of, settled
from tests.support.processes import Deployment
from tests.support.readiness import ready, unready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

KILLER = "a000025"
CRASHES = 3
POISON_JOBS = """
async def kills(call):
    if call.account == "a000025":
        os.kill(os.getpid(), signal.SIGKILL)
    await effect(call)

jobs = [nightly("night", PerAccount(kills))]
"""


async def test_a_poisonous_account_among_fifty_is_dead_alone_though_all_reach_the_delivery_limit(
    deployed: Deployment, session: Session
) -> None:
    deployed.settings["delivery_limit"] = str(CRASHES)
    deployed.declare(POISON_JOBS)
    await deployed.deploy(51)
    deployed.start("trigger", resend_after="1m")

    # Once in the crowd and then alone, as often as is allowed; each death counts a delivery of all that were held.
    for _ in range(1 + CRASHES):
        worker = deployed.start("worker", prefetch="50", max_crashes=str(CRASHES))
        assert await worker.ended() == -signal.SIGKILL
    deployed.start("worker", prefetch="50", max_crashes=str(CRASHES))
    row = await assert_night(session, deployed, "night", 51, state="partial")
    rows = await ledger(session, row["id"])
    assert rows.pop(KILLER)["state"] == "dead"
    assert Counter((one["state"], one["attempts"]) for one in rows.values()) == {("succeeded", 1): 50}
    assert set(await effects(session, row)) == set(rows)


SHARED = 400
FAIR_JOBS = """
async def short(call):
    await call.connection.execute("select pg_advisory_xact_lock_shared(4711)")
    await call.connection.execute("select pg_sleep(0.02)")
    await effect(call)


async def long(call):
    await effect(call)
    if call.account == "a000000":
        await call.connection.execute("select pg_advisory_xact_lock_shared(4712)")

jobs = [nightly("short", PerAccount(short, concurrency=2)), nightly("long", PerAccount(long, concurrency=2))]
"""


async def test_late_workers_get_their_share_and_a_long_account_holds_up_no_other(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(FAIR_JOBS)
    await deployed.deploy(SHARED)
    await session.execute("select pg_advisory_lock(4711), pg_advisory_lock(4712)")
    deployed.start("trigger")
    first = deployed.start("worker")
    published = "select count(*) from matins.publication where through_position >= $1"

    async def all_published() -> bool:
        return await count(session, published, SHARED) == 2

    await until(all_published)
    await ready(first)
    workers = [first, deployed.start("worker"), deployed.start("worker")]
    await ready(*[await worker.working() for worker in workers])
    await session.execute("select pg_advisory_unlock(4711)")
    await assert_night(session, deployed, "short", SHARED)
    done = await session.fetch(
        "select worker, count(*) as accounts from effect where occurrence like 'short:%' group by worker"
    )
    assert len(done) == len(workers)
    assert min(one["accounts"] for one in done) >= SHARED / 5, [dict(one) for one in done]

    async def all_but_the_long_one() -> bool:
        return await settled(session, await occurrence_of(session, deployed, "long")) == SHARED - 1

    await until(all_but_the_long_one)
    await session.execute("select pg_advisory_unlock(4712)")
    await assert_night(session, deployed, "long", SHARED)


BLOCKING_JOBS = """
async def blocks(call):
    await effect(call)
    if call.account == "a000003" and not (HERE / "blocked").exists():
        (HERE / "blocked").touch()
        time.sleep(8)

jobs = [nightly("night", PerAccount(blocks))]
"""


async def test_a_handler_that_blocks_its_loop_loses_the_connection_and_nothing_else(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(BLOCKING_JOBS)
    await deployed.deploy(60)
    deployed.start("trigger")
    worker = deployed.start("worker")

    async def blocked() -> bool:
        return (deployed.folder / "blocked").exists()

    await until(blocked)
    deployed.start("worker")
    await unready(worker, "consumer")
    await ready(worker)
    await assert_night(session, deployed, "night", 60)
