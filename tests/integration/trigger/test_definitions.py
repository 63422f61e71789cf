"""Live processes that hold different definitions of a job are named, with what each holds and since when; and once."""

from datetime import timedelta

import structlog

from shared.definition import definition_of, fingerprint, fingerprints
from shared.differences import read_differences
from shared.fleet import Instance, register_instance, runnable_jobs, stop_instance
from shared.job import Job
from shared.postgres import Session
from tests.integration.trigger.support import job_at
from trigger.definitions import DefinitionWatch
from trigger.register import register

FORMER, CHANGED = job_at("0 2 * * *"), job_at("30 2 * * *")
OTHER = job_at(name="other")


async def start(session: Session, name: str, kind: str, *jobs: Job, minutes_ago: int = 0) -> None:
    instance = Instance(name, kind, "host", "0.1.0", "", "2026f")
    await register_instance(session, instance, {}, definitions=fingerprints({job.name: job for job in jobs}))
    earlier = timedelta(minutes=minutes_ago)
    await session.execute(
        "update matins.instance set started_at = started_at - $2::interval where id = $1", name, earlier
    )


async def two_definitions(session: Session) -> None:
    """Have two processes with the former definition, and two with the one that is current."""
    await register(session, FORMER, instance="old")
    await register(session, CHANGED, instance="new")
    await start(session, "old-trigger-of-a-deploy", "trigger", FORMER, OTHER, minutes_ago=60)
    await start(session, "old-worker", "worker", FORMER, OTHER, minutes_ago=59)
    await start(session, "new-trigger", "trigger", CHANGED, OTHER, minutes_ago=5)
    await start(session, "new-worker", "worker", CHANGED, OTHER, minutes_ago=4)


async def test_the_job_both_definitions_who_holds_them_and_since_when(session: Session) -> None:
    await two_definitions(session)
    [one] = await read_differences(session)
    started = await session.fetchval("select started_at from matins.instance where id = 'new-trigger'")
    assert (one.job, one.since) == ("nightly", started)
    # A time is written to the minute where its seconds are zero.
    since = f"{started:%Y-%m-%dT%H:%M:%SZ}".replace(":00Z", "Z")
    former, current = one.sides
    assert (former.revision, former.current) == (1, False)
    assert former.instances == ("trigger old-trig", "worker old-work")
    assert (current.revision, current.current) == (2, True)
    assert current.fingerprint == fingerprint(definition_of(CHANGED))
    assert str(one) == (
        f"nightly: live processes hold 2 definitions since {since}: "
        f"trigger old-trig, worker old-work (revision 1, {former.fingerprint[:12]}); "
        f"trigger new-trig, worker new-work (revision 2, current, {current.fingerprint[:12]})"
    )


async def test_one_that_no_trigger_has_registered_and_one_of_a_release_that_does_not_tell(session: Session) -> None:
    await register(session, FORMER, instance="old")
    await start(session, "old", "trigger", FORMER)
    await register_instance(session, Instance("older", "worker", "host", "0.0.9", "", "2026f"), {})
    assert await read_differences(session) == []
    await start(session, "new", "worker", CHANGED)
    [one] = await read_differences(session)
    assert "worker new (never current, " in str(one)


async def test_who_has_ended_holds_nothing(session: Session) -> None:
    await two_definitions(session)
    await stop_instance(session, "old-worker")
    await session.execute("update matins.instance set seen_at = seen_at - interval '2 minutes' where id like 'old-tr%'")
    assert await read_differences(session) == []


async def test_the_revisions_that_a_process_tells_later_leave_its_definitions(session: Session) -> None:
    await start(session, "one", "trigger", FORMER)
    await register_instance(session, Instance("one", "trigger", "host", "0.1.0", "", "2026f"), {"nightly": 1})
    held = await session.fetchval("select definitions from matins.instance")
    assert held == fingerprints({"nightly": FORMER})


async def test_it_is_told_once_when_it_begins_when_a_side_changes_and_when_it_is_over(session: Session) -> None:
    watch = DefinitionWatch()
    with structlog.testing.capture_logs() as lines:
        await watch.look(session)
        assert lines == []
        await two_definitions(session)
        for _ in range(3):
            await watch.look(session)
        await start(session, "third", "worker", FORMER, OTHER)
        await watch.look(session)
        assert [(line["event"], line["log_level"], line["job"]) for line in lines] == [
            ("live processes hold different definitions", "warning", "nightly")
        ]
        await start(session, "fourth", "worker", job_at("45 2 * * *"), OTHER)
        await watch.look(session)
        assert len(lines) == 2
        await session.execute("update matins.instance set stopped_at = seen_at where id not like 'new%'")
        for _ in range(2):
            await watch.look(session)
    assert [line["event"] for line in lines[2:]] == ["live processes hold one definition again"]


async def test_jobs_are_runnable_by_live_workers_that_say_so(session: Session) -> None:
    async def live(name: str, kind: str, jobs: dict[str, object]) -> None:
        await register_instance(session, Instance(name, kind, "host", "0.1.0", "", "2026f"), jobs)

    await live("trigger", "trigger", {"planned": 3})
    await live("one", "worker", {"night": None, "broken": "no module"})
    await live("two", "worker", {"night": None, "added": None})
    assert await runnable_jobs(session) == {"night", "added"}
    assert await runnable_jobs(session, but="two") == {"night"}
    await session.execute("update matins.instance set seen_at = seen_at - interval '2 minutes' where id = 'two'")
    assert await runnable_jobs(session) == {"night"}
