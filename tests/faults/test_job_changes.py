"""Jobs are new, edited, renamed, removed or unreadable: what is due runs once, and nothing from before it was so.

Real processes on a database whose clock the test sets.
"""

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.fleet import until
from tests.support.processes import Service
from tests.support.readiness import ready, unready
from tests.support.stepped_clock import Stepped

pytestmark = [pytest.mark.drill, pytest.mark.timeout(180)]

ACCOUNTS = 2
MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
NIGHT = datetime(2027, 3, 2, 2, tzinfo=UTC)
GONE = {"invoice", "removed"}
BOTH_RAN = """select count(*) = 2 from matins.occurrence
               where job in ('invoices', 'other') and scheduled_at = $1 and state = 'succeeded'"""
KEPT = """
def at(name, cron, **more):
    return nightly(name, PerAccount(effect), schedule=Cron(cron), queue="shared", **more)

"""


async def deployed_at(stepped: Stepped, now: datetime, jobs: str) -> list[Service]:
    """Deploy jobs at an instant; give a worker and a trigger that run them."""
    stepped.deployed.declare(KEPT + jobs)
    await stepped.deployed.deploy(ACCOUNTS, fall=False)
    stepped.server.set_clock(now)
    services = [stepped.deployed.start(kind) for kind in ("worker", "trigger")]
    for service in services:
        await service.working()
    await services[-1].logged("job registered", job="other")
    return services


async def replaced(stepped: Stepped, services: list[Service], jobs: str) -> list[Service]:
    """Put processes with other jobs in the place of these."""
    module = stepped.deployed.declare_beside(f"next{len(stepped.deployed.services)}", KEPT + jobs)
    for service in services:
        service.terminate()
        assert await service.ended() == 0
    started = [stepped.deployed.start(service.kind, jobs=module) for service in services]
    for service in started:
        await service.working()
    return started


async def status_of(stepped: Stepped) -> Any:
    """Give what `status --json` says; that the database's clock is another than the machine's is a problem, too."""
    status = stepped.deployed.start("trigger", "status", "--json")
    assert await status.ended() in {0, 1}
    return json.loads(status.log.read_text())


async def test_what_is_new_or_edited_never_runs_for_a_time_before_it_was_so(stepped: Stepped) -> None:
    noon = NIGHT.replace(hour=12)
    services = await deployed_at(stepped, noon, 'jobs = [at("edited", "0 13 * * *"), at("other", "0 0 1 * *")]')
    await replaced(
        stepped, services, 'jobs = [at("edited", "0 11 * * *"), at("new", "0 11 * * *"), at("other", "0 0 1 * *")]'
    )
    await stepped.pass_to(noon + timedelta(hours=2))
    assert await stepped.ran("new") == []
    assert await stepped.ran("edited") == [noon + timedelta(hours=1)], "once that day, and not at eleven"
    await stepped.pass_to(noon + DAY)
    next_eleven = noon + DAY - timedelta(hours=1)
    assert await stepped.ran("new") == [next_eleven]
    assert await stepped.ran("edited") == [noon + timedelta(hours=1), next_eleven]


async def test_a_renamed_job_runs_once_under_its_new_name_and_a_removed_one_not_at_all(stepped: Stepped) -> None:
    jobs = 'jobs = [at("invoice", "0 2 * * *"), at("removed", "0 2 * * *"), at("other", "0 2 * * *")]'
    services = await deployed_at(stepped, NIGHT - 2 * MINUTE, jobs)
    await stepped.decided()
    now = await replaced(stepped, services, 'jobs = [at("invoices", "0 2 * * *"), at("other", "0 2 * * *")]')
    for job in ("invoices", "other"):
        await now[-1].logged("job registered", job=job)
    planned = "select count(*) from matins.occurrence where job in ('invoice', 'removed')"
    before = await stepped.session.fetchval(planned)
    stepped.server.set_clock(NIGHT + timedelta(seconds=1))
    await until(lambda: stepped.session.fetchval(BOTH_RAN, NIGHT))
    # What was due under a name that is gone is told, until a person says that the name has ended.
    stepped.server.set_clock(NIGHT + 11 * MINUTE)
    late = [one["job"] for one in (await status_of(stepped))["jobs"] if one["late_since"]]
    assert late == sorted(GONE)
    for job in sorted(GONE):
        await stepped.deployed.command("retire", job, "--reason", "it has another name, or none")
        shown = await stepped.deployed.command("show", f"{job}:2027-03-02T02:00Z", "--json")
        assert (json.loads(shown)["state"], json.loads(shown)["reason"]) == ("skipped", "retired")
    await stepped.pass_to(NIGHT + DAY)
    assert [await stepped.ran(job) for job in ("invoices", "other")] == [[NIGHT, NIGHT + DAY]] * 2
    assert [await stepped.ran(job) for job in sorted(GONE)] == [[], []]
    assert await stepped.session.fetchval(planned) == before, "no row more"
    await stepped.beaten(*now)
    problems = (await status_of(stepped))["problems"]
    assert [one for one in problems if one.partition(":")[0] in {*GONE, "invoices"}] == [], "no alarm for what is gone"


BROKEN = """
update matins.job set definition = jsonb_set(definition, '{schedule,zone}', '"Mars/Phobos"'), fingerprint = 'none'
 where name = 'broken'
"""


async def test_a_row_that_cannot_be_read_and_a_far_neighbour_stop_no_other_job(stepped: Stepped) -> None:
    nightly = [f'at("{name}", "0 2 * * *")' for name in ("invoices", "broken", "other")]
    services = await deployed_at(stepped, NIGHT - 2 * MINUTE, f'jobs = [at("far", "0 0 29 2 *"), {", ".join(nightly)}]')
    await stepped.decided()
    services[-1].terminate()
    assert await services[-1].ended() == 0
    await stepped.session.execute(BROKEN)
    trigger = await stepped.deployed.start("trigger").working()
    told = await trigger.logged("a job cannot be planned or claimed", job="broken")
    assert "Mars/Phobos" in told["reason"]
    await unready(trigger, "jobs")
    for night in (NIGHT, NIGHT + DAY):
        stepped.server.set_clock(night + timedelta(seconds=1))
        await until(lambda: stepped.session.fetchval(BOTH_RAN, night))  # noqa: B023 - awaited at once
    assert await stepped.ran("far") == await stepped.ran("broken") == []
    far = "select scheduled_at from matins.occurrence where job = 'far' and state = 'expected'"
    assert await stepped.session.fetchval(far) == datetime(2028, 2, 29, tzinfo=UTC)
    await stepped.beaten(trigger)
    problems = (await status_of(stepped))["problems"]
    assert [one for one in problems if one.startswith("broken is planned by none of the live triggers")], problems
    # Mended, it goes on; what was due meanwhile ends as after a downtime.
    await stepped.session.execute(BROKEN.replace("Mars/Phobos", "UTC"))
    await stepped.decided()
    assert await stepped.ran("broken") == [NIGHT + DAY]
    await ready(trigger)
