"""What a process says of itself while one of its own parts is dead or blocked."""

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import assert_night, assert_one_effect_each
from tests.support.processes import Deployment
from tests.support.readiness import probe, ready, unready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

BLOCKING_JOBS = """
async def blocks(call):
    await effect(call)
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{call.account}\\n")
    if call.account == "a000003" and not (HERE / "go").exists():
        while not (HERE / "go").exists():
            time.sleep(0.05)

jobs = [nightly("night", PerAccount(blocks))]
"""


async def test_a_blocked_event_loop_is_told_and_its_work_is_done_once(deployed: Deployment, session: Session) -> None:
    deployed.declare(BLOCKING_JOBS)
    await deployed.deploy(20)
    trigger = deployed.start("trigger", broker_heartbeat="1s")
    blocked = await deployed.start("worker", broker_heartbeat="1s").working()

    async def dead() -> bool:
        status, parts = await probe(blocked, "/livez")
        return status == 503 and parts["event loop"].startswith("blocked for")

    await until(dead)
    await unready(blocked, "event loop", "blocked for")
    assert (await probe(trigger, "/livez"))[0] == 200
    (deployed.folder / "go").touch()
    await ready(blocked)
    assert (await probe(blocked, "/livez"))[0] == 200
    occurrence = await assert_night(session, deployed, "night", 20)
    await assert_one_effect_each(session, occurrence, 20)
    blocked.terminate()
    assert await blocked.ended() == 0


async def test_a_loop_that_dies_takes_its_process_with_it_and_is_named(deployed: Deployment, session: Session) -> None:
    deployed.declare("jobs = [nightly('night', PerAccount(effect))]\n")
    await deployed.deploy(5)
    services = [deployed.start(kind) for kind in ("trigger", "worker")]
    await ready(*services)
    await session.execute("alter table matins.instance rename to gone")
    for service in services:
        assert await service.ended() == 1
        last = service.lines()[-1]
        assert last["event"] == "service failed", last
        assert last["part"] == service.lines("a part died")[0]["part"]
        assert not service.lines("the start failed")
        assert "matins.instance" in last["reason"]
    await session.execute("alter table matins.gone rename to instance")
    deployed.start("trigger")
    deployed.start("worker")
    occurrence = await assert_night(session, deployed, "night", 5)
    await assert_one_effect_each(session, occurrence, 5)


LEFT_BEHIND_JOBS = """
def hangs(call):
    if call.account != "a000000":
        while not (HERE / "mended").exists():
            time.sleep(0.05)
    call.connection.execute(
        "insert into effect (account, occurrence) values ($1, $2)", call.account, str(call.occurrence))

jobs = [nightly("night", PerAccount(hangs, timeout=seconds(0.2)), max_tries=100)]
"""


async def test_too_many_threads_left_behind_end_the_worker(deployed: Deployment, session: Session) -> None:
    deployed.declare(LEFT_BEHIND_JOBS)
    await deployed.deploy(12)
    deployed.start("trigger")
    worker = deployed.start("worker")
    parts = await unready(worker, "plain functions", "calls that outlived their timeout hold threads")
    assert "of night; the worker ends at 32" in parts["plain functions"]
    assert (await probe(worker, "/livez"))[0] == 200
    assert await worker.ended() == 1
    last = worker.lines()[-1]
    assert (last["event"], last["part"]) == ("service failed", "plain functions"), last
    (deployed.folder / "mended").touch()
    worker = deployed.start("worker")
    occurrence = await assert_night(session, deployed, "night", 12)
    await assert_one_effect_each(session, occurrence, 12)
    await ready(worker)
