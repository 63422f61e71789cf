"""What nobody did is told by those who are left: dead triggers, dead workers, a dead fleet, jobs that left the code."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.nights import assert_night, count
from tests.support.processes import Deployment
from trigger.plan import plan_ahead

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ACCOUNTS = 3
WATCHFUL = {"watch_interval": "200ms"}
HOUR = timedelta(hours=1)
SOON_LATE = """
SOON_LATE = Decisions(
    catch_up="latest",
    catch_up_within=hours(20),
    overlap="skip",
    start_within=seconds(1),
    finish_within=hours(3),
    no_progress_within=seconds(2),
)
"""
NIGHT = 'nightly("night", PerAccount(effect), decisions=SOON_LATE)'
OTHER = 'nightly("other", PerAccount(effect), decisions=SOON_LATE)'


def declared(*jobs: str) -> str:
    return f"{SOON_LATE}\njobs = [{', '.join(jobs)}]\n"


async def open_kinds(session: Session) -> list[tuple[str, str]]:
    rows = await session.fetch("select kind, subject from matins.alert where closed_at is null order by kind, subject")
    return [(row["kind"], row["subject"]) for row in rows]


async def opened(session: Session, kind: str, subject: str) -> Any:
    """Wait for an alert, and give its row."""
    query = "select * from matins.alert where kind = $1 and subject = $2 and closed_at is null"
    return await until(lambda: session.fetchrow(query, kind, subject))


async def looked_at(session: Session, times: int) -> None:
    """Wait until somebody has looked some times more."""
    for _ in range(times):
        before = await session.fetchval("select looked_at from matins.watch")
        again = partial(session.fetchval, "select looked_at > $1 from matins.watch", before)
        await until(again)


async def registered(deployed: Deployment, session: Session) -> None:
    """Wait until every job is known."""
    known = "select count(*) = $1 from matins.job"
    await until(partial(session.fetchval, known, len(deployed.jobs)))


async def fall(deployed: Deployment, session: Session, *names: str) -> None:
    """Let the night fall once every job is known; of the processes, those that have ended stay the older ones."""
    await registered(deployed, session)
    await deployed.fall(*names)
    await session.execute(
        "update matins.instance set started_at = started_at - interval '1 s' where stopped_at is not null"
    )


async def told(session: Session, event: str) -> list[str]:
    rows = await session.fetch("select body ->> 'kind' as kind from matins.notification where event = $1", event)
    return [row["kind"] for row in rows]


async def test_workers_tell_that_all_triggers_died_before_the_night(deployed: Deployment, session: Session) -> None:
    deployed.settings |= WATCHFUL
    deployed.declare(declared(NIGHT))
    await deployed.deploy(ACCOUNTS, fall=False)
    triggers = [await deployed.start("trigger").working() for _ in range(2)]
    workers = [await deployed.start("worker").working() for _ in range(3)]
    for trigger in triggers:
        trigger.kill()
    await fall(deployed, session)
    subject = f"night:{deployed.night:%Y-%m-%dT%H:%MZ}"
    alert = await opened(session, "not_claimed", subject)
    assert alert["opened_by"] in [await worker.instance() for worker in workers]
    await looked_at(session, 3)
    assert await told(session, "opened") == ["not_claimed"], "once, however many look"
    deployed.start("trigger")
    await assert_night(session, deployed, "night", ACCOUNTS)
    await until(lambda: session.fetchval("select closed_at from matins.alert where id = $1", alert["id"]))
    assert await told(session, "closed") == ["not_claimed"]
    lines = [line for worker in workers for line in worker.lines("alert opened", level="warning")]
    assert [line["subject"] for line in lines] == [subject], lines


async def test_triggers_tell_that_all_workers_died(deployed: Deployment, session: Session) -> None:
    deployed.settings |= WATCHFUL
    deployed.declare(declared(NIGHT))
    await deployed.deploy(ACCOUNTS, fall=False)
    trigger, worker = deployed.start("trigger"), deployed.start("worker")
    await trigger.working()
    (await worker.working()).kill()
    await fall(deployed, session)
    subject = f"night:{deployed.night:%Y-%m-%dT%H:%MZ}"
    alert = await opened(session, "no_progress", subject)
    assert alert["opened_by"] == await trigger.instance()
    deployed.start("worker")
    await assert_night(session, deployed, "night", ACCOUNTS)
    await until(lambda: session.fetchval("select closed_at from matins.alert where id = $1", alert["id"]))


async def test_what_was_missed_while_everything_was_dead_has_a_row_and_an_alert_each(
    deployed: Deployment, session: Session
) -> None:
    deployed.settings |= WATCHFUL
    hourly = NIGHT.replace("SOON_LATE", 'SOON_LATE, schedule=Cron("0 * * * *")')
    deployed.declare(declared(hourly).replace("hours(20)", "minutes(30)"))
    await deployed.deploy(ACCOUNTS, fall=False)
    fleet = [await deployed.start(kind).working() for kind in ("trigger", "worker")]
    await registered(deployed, session)
    for service in fleet:
        service.kill()
    # As if it had been known for hours, and all dead since: of these hours the last one alone may still be in time.
    [job] = deployed.jobs
    since = deployed.night - 3 * HOUR - timedelta(minutes=1)
    await session.execute("update matins.job set known_since = $1, planned_through = $1", since)
    await session.execute("update matins.job_revision set effective_from = $1", since)
    await plan_ahead(session, job, 1, now=since)
    for kind in ("trigger", "worker"):
        deployed.start(kind)
    for hours in (3, 2, 1):
        instant = deployed.night - hours * HOUR
        alert = await opened(session, "missed", f"night:{instant:%Y-%m-%dT%H:%MZ}")
        state = "select state from matins.occurrence where id = $1"
        assert await session.fetchval(state, alert["occurrence_id"]) == "missed"
    missed = await count(session, "select count(*) from matins.occurrence where state = 'missed'")
    assert (await told(session, "opened")).count("missed") == missed


async def test_a_job_that_a_rolling_deploy_has_dropped_is_missed(deployed: Deployment, session: Session) -> None:
    deployed.settings |= WATCHFUL
    deployed.declare(declared(NIGHT, OTHER))
    without = deployed.declare_beside("without", declared(NIGHT))
    await deployed.deploy(ACCOUNTS, fall=False)
    both = deployed.declare_beside("both", declared(NIGHT, OTHER))
    old = [await deployed.start("trigger", jobs=both).working() for _ in range(2)]
    await deployed.start("worker", jobs=without).working()
    await looked_at(session, 2)
    for service in old:
        await deployed.start("trigger", jobs=without).working()
        assert await open_kinds(session) == [], "one of the old still declares it"
        service.terminate()
        assert await service.ended() == 0
    await opened(session, "job_vanished", "other")
    await fall(deployed, session)
    subject = f"other:{deployed.night:%Y-%m-%dT%H:%MZ}"
    await opened(session, "not_claimed", subject)
    await assert_night(session, deployed, "night", ACCOUNTS)
    assert await session.fetchval("select state from matins.occurrence where job = 'other' limit 1") == "expected"
    assert f"{subject} is late: nobody has claimed it" in await status(deployed)
    await looked_at(session, 2)
    of_other = "select kind from matins.alert where job = 'other' order by kind"
    assert [row["kind"] for row in await session.fetch(of_other)] == ["job_vanished", "not_claimed"], "each once"
    # What was due of it stays due, which is no end for the checker.
    deployed.judging.wanted = False


async def test_a_job_whose_import_fails_is_missed_and_its_neighbours_run(
    deployed: Deployment, session: Session
) -> None:
    deployed.settings |= WATCHFUL
    deployed.declare(declared(NIGHT, OTHER))
    night = deployed.declare_beside("night", declared(NIGHT))
    other = deployed.declare_beside("other", declared(OTHER))
    broken = deployed.declare_beside("broken", "raise ImportError('the tax library is gone')\n")
    await deployed.deploy(ACCOUNTS, fall=False)
    old = await deployed.start("trigger", jobs=f"{night},{other}").working()
    await deployed.start("worker", jobs=f"{night},{other}").working()
    await looked_at(session, 2)
    await deployed.start("trigger", jobs=f"{night},{broken}").working()
    old.terminate()
    assert await old.ended() == 0
    await opened(session, "job_vanished", "other")
    await fall(deployed, session, "night")
    await assert_night(session, deployed, "night", ACCOUNTS)
    await looked_at(session, 3)
    assert await open_kinds(session) == [("job_vanished", "other")]


async def status(deployed: Deployment) -> str:
    """Give what status says; something is wrong."""
    service = deployed.start("trigger", "status")
    await service.ended()
    return service.log.read_text()
