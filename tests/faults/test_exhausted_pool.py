"""Handlers hold every connection of a small pool: the rest waits for a bounded time, and what keeps time does not."""

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.holds import call_hold
from tests.support.ledger import ledger
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment
from tests.support.readiness import probe

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 30
# A worker with so few keeps two for its own keeping of time, and has two for its handlers.
SETTINGS = {"pool_size": "4", "prefetch": "20", "database_timeout": "500ms", "grace_period": "4s"}
JOBS = """
async def holds(call):
    await effect(call)
    await call.connection.execute("select hold()")


async def calls(call):
    while call.account == "a000007" and not (HERE / "over").exists():
        await anyio.sleep(0.05)

jobs = [
    nightly("calling", Outside(calls, key_valid_for=hours(24), concurrency=20)),
    nightly("holding", PerAccount(holds, concurrency=20), queue="calling"),
    nightly("later", PerAccount(effect), queue="calling"),
]
"""


async def test_what_holds_every_connection_stops_nothing_else(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    # The others are not due before the night falls once more.
    jobs, deployed.jobs = deployed.jobs, deployed.jobs[:1]
    await deployed.deploy(ACCOUNTS)
    deployed.jobs = jobs
    waiters = "select count(*) from pg_locks where locktype = 'advisory' and not granted and objid = $1"
    async with call_hold(session) as hold:
        trigger = deployed.start("trigger", **SETTINGS)
        worker = deployed.start("worker", **SETTINGS)

        async def called() -> bool:
            calling = await occurrence_of(session, deployed, "calling")
            return bool((await ledger(session, calling["id"])).get("a000007", {}).get("state") == "running")

        async def exhausted() -> bool:
            return await count(session, waiters, hold.key) == 2

        await until(called)
        for job in jobs:
            await trigger.logged("job registered", job=job.name)
        await deployed.fall()
        await until(exhausted)
        await worker.logged("work will be tried again", error_class="DatabaseUnavailable")
        await trigger.logged("claimed", job="later")
        await trigger.logged("fan-out ended", job="later")
        assert await count(session, waiters, hold.key) == 2, "it was claimed while nobody had let go"
        assert (await probe(worker, "/readyz"))[1] == {}, "a busy worker is a ready one"
        worker.terminate()
        assert await worker.ended() == 0
        held_back = await count(session, "select count(*) from matins.ledger where starts > 0 or attempts > 0")
        done = "select count(*) from matins.ledger where state = 'succeeded'"
        assert held_back == await count(session, done), "what was cut off is charged to nobody"
        assert await count(session, "select count(*) from matins.ledger where state = 'running'") == 0
        await hold.let_go()
    (deployed.folder / "over").touch()
    worker = deployed.start("worker", **SETTINGS)
    for job in jobs:
        occurrence = await assert_night(session, deployed, job.name, ACCOUNTS)
        assert {row["attempts"] for row in (await ledger(session, occurrence["id"])).values()} == {1}
        if job.name != "calling":
            await assert_one_effect_each(session, occurrence, ACCOUNTS)
    ours = "select count(*) from pg_stat_activity where application_name like $1"
    name = f"matins worker {(await worker.instance())[:8]}"
    assert 0 < await count(session, ours, name) <= 4

    async def all_back() -> bool:
        return await count(session, f"{ours} and state like 'idle in transaction%'", name) == 0

    await until(all_back)
