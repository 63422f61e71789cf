"""What every worker runs for itself: once for each worker that lives; what a dead one leaves ends as failed."""

from typing import Any

import orjson
import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import count
from tests.support.processes import Deployment, Service

pytestmark = [pytest.mark.drill, pytest.mark.timeout(240)]

JOBS = """
WHO = os.environ.get("MATINS_EXAMPLE_WHO")


async def note(call):
    await call.connection.execute(
        "insert into effect (account, occurrence) select $1, $2 where not exists ("
        "select from effect where account = $1 and occurrence = $2)", call.worker, str(call.occurrence))
    if WHO == "stuck":
        (HERE / "stuck").touch()
        await anyio.sleep(60)

jobs = [
    Job("note", schedule=Cron("* * * * *"), accounts=EachWorker(), handler=EveryWorker(note), coordination="every",
        decisions=Decisions(catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=minutes(1),
                            finish_within=minutes(5))),
    nightly("night", PerAccount(effect)),
]
"""
OWN = "select * from matins.occurrence where job = 'note' and variant = '@' || $1 order by scheduled_at limit 1"


async def own_of(session: Session, worker: Service, *states: str) -> Any:
    """Wait for a worker's first own occurrence to be in one of some states; the next full minute may be far."""
    instance = await worker.instance()

    async def look() -> Any:
        row = await session.fetchrow(OWN, instance)
        return row if row is not None and row["state"] in states else None

    try:
        return await until(look)
    except TimeoutError:
        return await until(look)


async def test_each_worker_runs_its_own_and_a_dead_one_leaves_a_failure(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(0, fall=False)
    trigger = deployed.start("trigger")
    workers = [deployed.start("worker"), deployed.start("worker"), deployed.start("worker", example_who="stuck")]
    for service in (trigger, *workers):
        await service.working()
    await workers[0].logged("a job is not run by this worker", job="note")
    assert await count(session, "select count(*) from matins.occurrence where job = 'note'") == 0
    tried = orjson.loads(
        await deployed.command("try", "note", "--twice", "--dry-run", "--json", kind="worker", log_format="text")
    )
    assert (tried["recorded"], tried["kept"]) == (True, False)
    assert (tried["account"], tried["key"]) == (None, None), "it is nobody's account"
    for worker in workers[:2]:
        row = await own_of(session, worker, "succeeded")
        assert (row["total"], row["succeeded"], row["state"]) == (1, 1, "succeeded")
    stuck = workers[2]
    row = await own_of(session, stuck, "running")
    stuck.kill()
    # It has been silent for long, by the database's clock.
    await session.execute(
        "update matins.instance set seen_at = seen_at - interval '2 minutes' where id = $1", await stuck.instance()
    )
    row = await own_of(session, stuck, "failed")
    assert row["report"]["error_classes"][0]["error_class"] == "worker_lost"
    assert await count(session, "select count(*) from effect where account = $1", await stuck.instance()) == 0
    ahead = "select count(*) from matins.occurrence where job = 'note' and scheduled_at > clock_timestamp()"
    assert await count(session, ahead) == 0
    assert await count(session, "select count(*) from matins.occurrence where job = 'note' and state = 'expected'") == 0
