"""What is told of the fleet: jobs that nobody declares any more, definitions that differ, clocks, absent workers."""

from datetime import datetime, timedelta

import pytest

from shared.definition import fingerprints
from shared.fleet import Instance, register_instance
from shared.job import Cron, EachWorker, EveryWorker, Job
from shared.postgres import Database, Session
from tests.integration.trigger.support import decisions, job_at, planned
from tests.integration.watch.support import DUE, HOUR, LATE, MINUTE, looked, open_alerts, told, watch_on
from trigger.register import register

DAY = timedelta(days=1)
NOW = DUE - HOUR
SECOND = timedelta(seconds=1)
NIGHTLY, OTHER = job_at(), job_at("0 5 * * *", name="other")
GONE = [("job_vanished", "nightly")]
OWN = Job(
    "refresh",
    schedule=Cron("0 * * * *"),
    accounts=EachWorker(),
    handler=EveryWorker("billing.prices:refresh"),
    decisions=decisions(catch_up="skip"),
    coordination="every",
)


async def lives(
    session: Session, name: str, *jobs: Job, kind: str = "trigger", since: datetime = NOW - HOUR, runs: str = ""
) -> None:
    """Have a process that declares some jobs, since an instant, as its last sign of life says for ever."""
    instance = Instance(name, kind, "host", "0.1.0", "", "2026f")
    known = {runs: None} if runs else {}
    await register_instance(session, instance, known, definitions=fingerprints({job.name: job for job in jobs}))
    await session.execute("update matins.instance set started_at = $2 where id = $1", name, since)


async def ends(session: Session, name: str, *, seen_at: datetime, killed: bool = False) -> None:
    """Have it end; one that was killed says nothing of it."""
    await session.execute(
        """update matins.instance set seen_at = $2::timestamptz, stopped_at = case when not $3 then $2::timestamptz end
            where id = $1""",
        name,
        seen_at,
        killed,
    )


@pytest.fixture(autouse=True)
async def known(session: Session) -> None:
    """Two jobs that the database knows."""
    for job in (NIGHTLY, OTHER):
        await planned(session, job, NOW - 2 * HOUR)


async def test_a_job_that_a_rolling_restart_has_dropped_has_vanished(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await lives(session, "old-1", NIGHTLY, OTHER)
    await lives(session, "old-2", NIGHTLY, OTHER)
    await looked(watch, NOW)
    await lives(session, "new-1", OTHER, since=NOW)
    await ends(session, "old-1", seen_at=NOW)
    await looked(watch, NOW + 5 * SECOND)
    assert await open_alerts(session) == [], "one still declares it"
    await lives(session, "new-2", OTHER, since=NOW + 10 * SECOND)
    await ends(session, "old-2", seen_at=NOW + 10 * SECOND)
    await looked(watch, NOW + 11 * SECOND)
    assert await open_alerts(session) == GONE
    text = await session.fetchval("select told from matins.alert")
    assert "none of 2 live triggers declares it; the last was old-2 of version 0.1.0" in text
    assert await session.fetchval("select state from matins.occurrence where job = 'nightly'") == "expected"
    await lives(session, "new-3", NIGHTLY, OTHER, since=NOW + MINUTE)
    await looked(watch, NOW + MINUTE)
    assert await open_alerts(session) == []


async def test_a_rolling_restart_a_start_and_a_fleet_that_is_gone_have_lost_nothing(
    database: Database, session: Session
) -> None:
    watch = watch_on(database)
    await looked(watch, NOW)
    assert await open_alerts(session) == [], "nothing lives"
    await lives(session, "old-1", NIGHTLY, OTHER)
    await ends(session, "old-1", seen_at=NOW)
    await looked(watch, NOW + SECOND)
    assert await open_alerts(session) == [], "the only one is replaced"
    await lives(session, "worker", OTHER, kind="worker")
    await looked(watch, NOW + 2 * SECOND)
    assert await open_alerts(session) == [], "workers alone say nothing of triggers"
    await lives(session, "new-1", NIGHTLY, OTHER, since=NOW + 3 * SECOND)
    await looked(watch, NOW + 4 * SECOND)
    assert await open_alerts(session) == []


async def test_triggers_with_other_jobs_are_no_evidence_before_a_minute_is_over(
    database: Database, session: Session
) -> None:
    watch = watch_on(database)
    await lives(session, "ours", NIGHTLY)
    await lives(session, "theirs", OTHER, since=NOW - MINUTE)
    await ends(session, "ours", seen_at=NOW)
    await looked(watch, NOW + 30 * SECOND)
    assert await open_alerts(session) == [], "ours may be restarting"
    await looked(watch, NOW + 61 * SECOND)
    assert await open_alerts(session) == GONE


async def test_an_older_trigger_that_never_had_a_new_job_is_no_evidence_before_a_minute_is_over(
    database: Database, session: Session
) -> None:
    """The one that brought the job restarts amid its rolling deploy."""
    watch = watch_on(database)
    await lives(session, "former", OTHER)
    await lives(session, "current", NIGHTLY, OTHER, since=NOW - MINUTE)
    await ends(session, "current", seen_at=NOW)
    await looked(watch, NOW + 30 * SECOND)
    assert await open_alerts(session) == []
    await looked(watch, NOW + 61 * SECOND)
    assert await open_alerts(session) == GONE


async def test_a_large_fleet_is_asked_whole(database: Database, session: Session) -> None:
    await lives(session, "declares-it", NIGHTLY, OTHER)
    await session.execute(
        """insert into matins.instance (id, kind, host, version, message_version, tzdata_version, definitions,
                                        started_at)
           select 'worker-' || n, 'worker', 'host', '1', 1, 'test', '{}', $1 from generate_series(1, 300) n""",
        NOW - HOUR,
    )
    await lives(session, "has-other-jobs", OTHER)
    await looked(watch_on(database), NOW)
    assert await open_alerts(session) == []


async def test_what_has_vanished_is_not_found_again_because_nobody_is_there_to_say(
    database: Database, session: Session
) -> None:
    watch = watch_on(database)
    await lives(session, "first", OTHER)
    await looked(watch, NOW)
    assert await open_alerts(session) == GONE
    await ends(session, "first", seen_at=NOW)
    await looked(watch, NOW + SECOND)
    assert await open_alerts(session) == GONE, "the only trigger restarts"
    await lives(session, "second", OTHER, since=NOW + 2 * SECOND)
    await looked(watch, NOW + 3 * SECOND)
    assert await told(session) == [("opened", *GONE[0])]
    await lives(session, "third", OTHER, NIGHTLY, since=NOW + 4 * SECOND)
    await looked(watch, NOW + 5 * SECOND)
    assert await open_alerts(session) == []


@pytest.mark.parametrize("killed", [True, False])
async def test_a_renamed_job_has_vanished_under_its_former_name(
    database: Database, session: Session, *, killed: bool
) -> None:
    watch = watch_on(database)
    renamed = job_at(name="by-night")
    await session.execute(
        "update matins.job set retired_at = $1, retired_by = 'a', retire_reason = 'b' where name = 'other'", NOW
    )
    await lives(session, "old", NIGHTLY)
    await register(session, renamed, instance="new", now=NOW)
    await lives(session, "new", renamed, since=NOW)
    await ends(session, "old", seen_at=NOW, killed=killed)
    await looked(watch, NOW + 61 * SECOND)
    assert await open_alerts(session) == GONE


@pytest.mark.parametrize("standing", ["paused", "retired"])
async def test_it_is_over_when_somebody_retires_it(database: Database, session: Session, standing: str) -> None:
    watch = watch_on(database)
    await lives(session, "new", OTHER)
    await looked(watch, NOW)
    assert await open_alerts(session) == GONE
    changed = {
        "paused": "paused_at = $1, paused_by = 'ann', pause_reason = 'move'",
        "retired": "retired_at = $1, retired_by = 'ann', retire_reason = 'old'",
    }
    await session.execute(f"update matins.job set {changed[standing]} where name = 'nightly'", NOW)
    await looked(watch, NOW + MINUTE)
    assert await open_alerts(session) == []


async def test_one_of_a_release_that_does_not_say_what_it_declares_may_declare_it(
    database: Database, session: Session
) -> None:
    await lives(session, "new", OTHER)
    await session.execute(
        """insert into matins.instance (id, kind, host, version, message_version, tzdata_version, started_at)
           values ('former', 'trigger', 'host', '0', 1, 'test', $1)""",
        NOW - HOUR,
    )
    await looked(watch_on(database), NOW)
    assert await open_alerts(session) == []


async def test_what_workers_run_for_themselves_is_declared_by_workers(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await register(session, OWN, instance="trigger", now=NOW - DAY)
    await lives(session, "trigger", NIGHTLY, OTHER)
    await lives(session, "worker", NIGHTLY, OTHER, OWN, kind="worker")
    await looked(watch, NOW)
    assert await open_alerts(session) == []
    await lives(session, "newer", NIGHTLY, OTHER, kind="worker", since=NOW)
    await ends(session, "worker", seen_at=NOW)
    await looked(watch, NOW + SECOND)
    assert await open_alerts(session) == [("job_vanished", "refresh")]


async def test_definitions_may_differ_for_as_long_as_a_deploy_takes(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await lives(session, "old", NIGHTLY, OTHER)
    await lives(session, "new", job_at("30 2 * * *"), OTHER, since=NOW)
    await looked(watch, NOW + 10 * MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, NOW + 11 * MINUTE)
    assert await open_alerts(session) == [("config_mismatch", "nightly")]
    await ends(session, "old", seen_at=NOW + 11 * MINUTE)
    await looked(watch, NOW + 12 * MINUTE)
    assert await open_alerts(session) == []


async def test_a_clock_that_is_far_off_is_told_of(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await lives(session, "right", NIGHTLY, OTHER)
    await lives(session, "behind", NIGHTLY, OTHER)
    await session.execute("update matins.instance set skew = case id when 'behind' then -42.04 else 4.9 end")
    await looked(watch, NOW)
    assert await open_alerts(session) == [("clock_skew", "behind")]
    assert "behind on host is 42.0 s behind the database's" in await session.fetchval("select told from matins.alert")
    await session.execute("update matins.instance set skew = 0")
    await looked(watch, NOW + MINUTE)
    assert await open_alerts(session) == []


async def own_run(session: Session, worker: str, due: datetime) -> None:
    await session.execute(
        "select matins.open_own('refresh', $1, $2, '', 1, 'running', null, $1, '1 minute', '', '', $1)", due, worker
    )
    await session.execute(
        """update matins.occurrence set state = 'succeeded', closed_at = $1, report = '{}', total = 1, succeeded = 1,
                  failed = 0, dead = 0, cancelled = 0 where state = 'running'""",
        due,
    )


async def test_a_live_worker_that_runs_nothing_for_itself_is_told_of_once(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await register(session, OWN, instance="trigger", now=DUE - DAY)
    await session.execute(
        "update matins.job set paused_at = $1, paused_by = 'a', pause_reason = 'b' where name <> 'refresh'", NOW
    )
    for worker in ("runs", "idles", "gone"):
        await lives(session, worker, OWN, kind="worker", since=NOW, runs="refresh")
    await ends(session, "gone", seen_at=NOW)
    for hour in range(3):
        due = DUE + hour * HOUR
        await own_run(session, "runs", due)
        await looked(watch, due + 9 * MINUTE)
        await looked(watch, due + 11 * MINUTE)
    idle = ("not_claimed", "refresh@idles:2026-08-25T02:00Z")
    assert await open_alerts(session) == [idle]
    await own_run(session, "idles", DUE + 2 * HOUR)
    await looked(watch, LATE + 2 * HOUR + MINUTE)
    assert await told(session) == [("opened", *idle), ("closed", *idle)]
