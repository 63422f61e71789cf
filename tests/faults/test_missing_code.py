"""Workers that lack a job's code, as amid a deploy: its messages wait, charged to nobody, for a worker that has it."""

import orjson
import pytest

from examples.servers.find import Broker
from shared.postgres import Session
from tests.support.broker import manage, virtual_host_of
from tests.support.fleet import until
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment, Service
from tests.support.readiness import ready, unready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(150)]

ACCOUNTS = 40
# One of the jobs came to the queue of another, one has a queue of its own.
JOBS = """
jobs = [
    nightly("night", PerAccount(effect)),
    nightly("added", PerAccount(effect), queue="night"),
    nightly("alone", PerAccount(effect)),
]
"""
FORMER = """
jobs = [nightly("night", PerAccount(effect))]
"""
NOT_IMPORTABLE = """
jobs = [
    nightly("night", PerAccount(effect)),
    nightly("added", PerAccount("not_there:run"), queue="night"),
    nightly("alone", PerAccount("not_there:run")),
]
"""
NO_CODE = "no code for a job"


async def deployed_with_delays(deployed: Deployment) -> None:
    deployed.settings["delays"] = "1,2"
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)


async def name_of(worker: Service) -> str:
    """Give the name of a worker's sessions, which stands beside each effect."""
    return f"matins worker {(await worker.instance())[:8]}"


async def assert_uncharged(session: Session) -> None:
    assert await count(session, "select count(*) from matins.ledger where attempts <> 1 or state <> 'succeeded'") == 0


async def test_messages_are_left_to_the_worker_that_has_the_code(deployed: Deployment, session: Session) -> None:
    await deployed_with_delays(deployed)
    former = deployed.start("worker", jobs=deployed.declare_beside("former", FORMER))
    broken = deployed.start("worker", jobs=deployed.declare_beside("broken", NOT_IMPORTABLE))
    upgraded = deployed.start("worker")
    for worker in (former, broken, upgraded):
        await worker.working()
    # Nothing is lost here, and a copy could go round for a while behind the end.
    deployed.start("trigger", resend_after="1m")
    for job in ("night", "added", "alone"):
        row = await assert_night(session, deployed, job, ACCOUNTS)
        await assert_one_effect_each(session, row, ACCOUNTS)
    await assert_uncharged(session)
    for job in ("added", "alone"):
        foreign = "select count(*) from effect where occurrence like $1 || ':%' and worker <> $2"
        assert await count(session, foreign, job, await name_of(upgraded)) == 0
    for worker, reason in ((former, "not declared by this worker"), (broken, "No module named 'not_there'")):
        told = worker.lines(NO_CODE)
        assert [line["job"] for line in told] in ([], ["added"]), "once, and never of a queue that it doesn't consume"
        assert all(reason in line["reason"] for line in told)
    assert former.lines(NO_CODE) or broken.lines(NO_CODE)
    await unready(broken, "handlers", "added, alone")
    await ready(former, upgraded)


async def test_what_nobody_can_run_waits_and_is_told_until_somebody_can(
    deployed: Deployment, session: Session, broker: Broker
) -> None:
    await deployed_with_delays(deployed)
    former = await deployed.start("worker", jobs=deployed.declare_beside("former", FORMER)).working()
    deployed.start("trigger")
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    await unready(former, "code", "no live worker has the code of: added")

    beats, former_id = "select beats from matins.instance where id = $1", await former.instance()
    before = await session.fetchval(beats, former_id)
    await until(lambda: session.fetchval(f"select ({beats}) >= $2 + 2", former_id, before))
    touched = "select count(*) from matins.ledger l where l.occurrence_id = $1 and (l.epoch > 0 or l.attempts > 0)"
    for job in ("added", "alone"):
        waiting = await occurrence_of(session, deployed, job)
        assert waiting["state"] == "running"
        assert await count(session, touched, waiting["id"]) == 0, "neither charged nor taken for lost"
    assert len(former.lines(NO_CODE)) == 1
    assert await received(broker, deployed) < 20 * ACCOUNTS, "each comes by once in a delay, not in a hot loop"
    await assert_told(deployed, former)

    former.terminate()
    assert await former.ended() == 0
    upgraded = deployed.start("worker")
    for job in ("added", "alone"):
        row = await assert_night(session, deployed, job, ACCOUNTS)
        await assert_one_effect_each(session, row, ACCOUNTS)
    await assert_uncharged(session)
    await ready(upgraded)
    well = orjson.loads(await deployed.command("status", "--json"))
    assert well["problems"] == []


async def received(broker: Broker, deployed: Deployment) -> int:
    """Give how many messages the shared queue was ever sent, as far as the broker has counted."""
    path = f"/api/queues/{virtual_host_of(deployed.broker_url)}/{deployed.prefix}.work.night"

    async def counted() -> int:
        return int(manage(broker, "GET", path).get("message_stats", {}).get("publish", 0))

    return int(await until(counted))


async def assert_told(deployed: Deployment, former: Service) -> None:
    """See that status and doctor name the jobs, and who lacks their code."""
    status = deployed.start("trigger", "status", "--json")
    assert await status.ended() == 1
    problems = "\n".join(orjson.loads(status.log.read_bytes())["problems"])
    doctor = deployed.start("trigger", "doctor")
    assert await doctor.ended() == 2
    said = doctor.log.read_text()
    for job in ("added", "alone"):
        assert f"{job}:" in problems
        assert f"{job}: 0 of 1 live workers can run it; not declared by {(await former.instance())[:8]}" in said
    assert f"{ACCOUNTS} accounts wait: none of 1 live workers can run its job" in problems
