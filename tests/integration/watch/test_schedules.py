"""The schedule compared with its rows: clock changes alarm nobody, and a due instant without a row alarms once."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from shared.job import Cron, Job
from shared.postgres import Database, Session
from tests.integration.trigger.support import claimant, end, job_at, planned
from tests.integration.watch.support import DUE, HOUR, LATE, MINUTE, SUBJECT, looked, open_alerts, told, watch_on
from trigger.claim import Won, claim_due
from trigger.plan import plan_ahead
from trigger.register import register

DAY = timedelta(days=1)
SECOND = timedelta(seconds=1)
# The day of each change, by the zone's clocks, and what its night has that others have not.
CHANGES = [
    ("Europe/Berlin", datetime(2027, 3, 28, tzinfo=UTC)),
    ("Europe/Berlin", datetime(2026, 10, 25, tzinfo=UTC)),
    ("America/Chicago", datetime(2027, 3, 14, tzinfo=UTC)),
    ("America/Chicago", datetime(2026, 11, 1, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2026, 10, 4, tzinfo=UTC)),
    ("Australia/Lord_Howe", datetime(2027, 4, 4, tzinfo=UTC)),
    ("Pacific/Apia", datetime(2011, 12, 30, tzinfo=UTC)),
]


async def run(session: Session, job: Job, revision: int, now: datetime) -> None:
    """Do what a trigger does at a due instant, and end what it has claimed."""
    await plan_ahead(session, job, revision, now=now)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=now), Won)
    await end(session, job, now)


@pytest.mark.parametrize("removed", [False, True], ids=["nothing wrong", "one row removed"])
@pytest.mark.parametrize(
    ("zone", "day"), CHANGES, ids=lambda value: f"{value:%Y-%m}" if isinstance(value, datetime) else value
)
async def test_a_clock_change_alarms_only_of_the_row_that_was_removed(
    database: Database, session: Session, zone: str, day: datetime, *, removed: bool
) -> None:
    schedule = Cron("15 1,2,3 * * *", zone=zone, gap="next_valid", fold="both")
    job, watch = replace(job_at(), schedule=schedule), watch_on(database)
    instants = list(schedule.instants(day - 2 * DAY, day + 2 * DAY))
    revision = await planned(session, job, instants[0] - HOUR)
    missing = instants[len(instants) // 2]
    for instant in instants:
        if removed and instant == missing:
            await session.execute("delete from matins.occurrence where scheduled_at = $1", missing)
        await looked(watch, instant - MINUTE)
        if not (removed and instant == missing):
            await run(session, job, revision, instant + SECOND)
        await looked(watch, instant + 11 * MINUTE)
    expected = [("missed", f"nightly:{missing:%Y-%m-%dT%H:%MZ}")] if removed else []
    assert await open_alerts(session) == expected
    assert [one for one in await told(session) if one[0] != "repeated"] == [("opened", *one) for one in expected]


@pytest.mark.parametrize("watched_before", [True, False], ids=["watched before", "watched for the first time"])
async def test_a_removed_row_is_told_of_once_and_is_over_when_it_is_acknowledged(
    database: Database, session: Session, *, watched_before: bool
) -> None:
    watch = watch_on(database)
    await planned(session, job_at(), DUE - DAY)
    if watched_before:
        await looked(watch, DUE - HOUR)
    await session.execute("delete from matins.occurrence where scheduled_at = $1", DUE)
    for minutes in range(3):
        await looked(watch, LATE + minutes * MINUTE)
    assert await told(session) == [("opened", "missed", SUBJECT)]
    await session.execute(
        "update matins.alert set acknowledged_at = $1, acknowledged_by = 'ann', acknowledge_reason = 'known'", LATE
    )
    for minutes in range(3):
        await looked(watch, LATE + HOUR + minutes * MINUTE)
    assert await open_alerts(session) == []
    assert await told(session) == [("opened", "missed", SUBJECT), ("closed", "missed", SUBJECT)]


async def test_what_nobody_was_there_to_plan_is_not_claimed_until_it_is(database: Database, session: Session) -> None:
    """All triggers are gone for longer than is planned ahead, and workers watch."""
    job, watch = job_at(), watch_on(database)
    await planned(session, job, DUE - 9 * DAY)
    for day in range(-9, 1):
        await looked(watch, LATE + day * DAY)
    late = [("not_claimed", f"nightly:{DUE + day * DAY:%Y-%m-%dT%H:%MZ}") for day in range(-8, 1)]
    assert await open_alerts(session) == late, "also those that have no row"
    assert await session.fetchval("select count(*) from matins.occurrence") < len(late)
    revision = await planned(session, job, LATE + MINUTE)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=LATE + MINUTE), Won)
    await end(session, job, LATE + MINUTE)
    await looked(watch, LATE + 2 * MINUTE)
    opened = {kind for kind, _ in await open_alerts(session)}
    assert opened <= {"missed"}, "what is later than catch_up_within was missed, and the rest has run"
    assert len(await open_alerts(session)) == 8


@pytest.mark.parametrize("standing", ["paused", "retired", "new", "held"])
async def test_what_counts_for_nothing_is_not_missed(database: Database, session: Session, standing: str) -> None:
    watch = watch_on(database)
    await planned(session, job_at(), DUE - DAY)
    await looked(watch, DUE - HOUR)
    await session.execute("delete from matins.occurrence")
    if standing == "paused":
        await session.execute("update matins.job set paused_at = $1, paused_by = 'ann', pause_reason = 'move'", DUE)
    elif standing == "retired":
        await session.execute("update matins.job set retired_at = $1, retired_by = 'ann', retire_reason = 'old'", DUE)
    elif standing == "new":
        await session.execute("update matins.job_revision set effective_from = $1", DUE)
        await session.execute("delete from matins.comparison")
    else:
        await session.execute("update matins.watch set held_at = $1", LATE)
    await looked(watch, LATE)
    assert await open_alerts(session) == []


async def test_a_new_definition_is_compared_from_when_it_counts(database: Database, session: Session) -> None:
    watch = watch_on(database)
    former, current = job_at("0 * * * *"), job_at("30 * * * *")
    await planned(session, former, DUE - DAY)
    await looked(watch, DUE - DAY + MINUTE)
    await session.execute(
        "update matins.occurrence set state = 'skipped', reason = 'catch_up' where scheduled_at <= $1", DUE
    )
    changed = DUE + 10 * MINUTE
    revision = (await register(session, current, instance="new", now=changed)).revision
    for minutes in range(0, 60, 5):
        now = changed + minutes * MINUTE
        if minutes == 20:
            await run(session, current, revision, now)
        await looked(watch, now)
    assert await open_alerts(session) == []


async def test_what_other_time_zone_data_placed_elsewhere_is_not_judged(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await planned(session, job_at(), DUE - DAY)
    await looked(watch, DUE - HOUR)
    await session.execute("update matins.occurrence set tzdata_version = '1999a' where scheduled_at > $1", DUE)
    await session.execute("delete from matins.occurrence where scheduled_at = $1", DUE)
    await looked(watch, LATE)
    assert await open_alerts(session) == []
