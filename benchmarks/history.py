"""Many jobs with a long past, made by the server itself: what the watch has to look through."""

from datetime import datetime
from typing import Final

from shared.definition import definition_of, fingerprint
from shared.job import Cron, Decisions, Job, PerAccount, SqlAccounts, hours, minutes
from shared.postgres import Session

# On a machine that is busy with other things.
MOST_SECONDS: Final = 600.0
HOURLY: Final = Job(
    "job-1",
    schedule=Cron("0 * * * *"),
    accounts=SqlAccounts("select id as account from bench.account"),
    handler=PerAccount("benchmarks.jobs:invoice"),
    decisions=Decisions(
        catch_up="latest", catch_up_within=hours(20), overlap="skip", start_within=minutes(10), finish_within=hours(3)
    ),
    queue="shared",
)
JOBS = """
insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
select 'job-' || n, 1, $2::jsonb, $3::text, date_trunc('hour', $4::timestamptz) - make_interval(hours => $5::integer),
       $4::timestamptz + interval '49 hours'
  from generate_series(1, $1::integer) n"""
REVISIONS = """
insert into matins.job_revision (job, revision, definition, fingerprint, effective_from, recorded_by)
select name, revision, definition, fingerprint, known_since, 'made' from matins.job"""
PAST = """
insert into matins.occurrence (job, scheduled_at, due_at, state, revision, window_since, window_until, tzdata_version,
    claimed_by, claimed_at, opened_at, sealed_at, closed_at, total, succeeded, failed, dead, cancelled, report)
select 'job-' || n, due.at, due.at, 'succeeded', 1, due.at - interval '1 hour', due.at, $4::text,
       'made', due.at, due.at, due.at, due.at, 0, 0, 0, 0, 0, '{}'
  from generate_series(1, $1::integer) n
 cross join generate_series(0, $2::integer - 1) hour
 cross join lateral (select date_trunc('hour', $3::timestamptz) - make_interval(hours => hour) as at) due"""
AHEAD = """
insert into matins.occurrence (job, scheduled_at, due_at, revision, window_since, window_until, tzdata_version)
select 'job-' || n, due.at, due.at, 1, due.at - interval '1 hour', due.at, $4::text
  from generate_series(1, $1::integer) n
 cross join generate_series(1, $2::integer) hour
 cross join lateral (select date_trunc('hour', $3::timestamptz) + make_interval(hours => hour) as at) due"""
INSTANCES = """
insert into matins.instance (id, kind, host, version, message_version, tzdata_version, started_at, seen_at, definitions)
select kind || '-' || n, kind, 'made', '0', 1, 'made', $1::timestamptz - interval '1 day', $1, (
           select jsonb_object_agg(name, fingerprint) from matins.job)
  from unnest(array['trigger', 'worker']) kind cross join generate_series(1, 3) n"""


async def make_history(
    session: Session, *, jobs: int, hours_ago: int, hours_ahead: int, now: datetime, zones: str
) -> None:
    """Make hourly jobs that share a queue, with a past that succeeded and rows ahead, and live processes.

    `now` is what the database's clock is taken to show, and `zones` the release of the time-zone data.
    """
    definition = definition_of(HOURLY)
    await session.execute(JOBS, jobs, definition, fingerprint(definition), now, hours_ago, timeout=MOST_SECONDS)
    await session.execute(REVISIONS, timeout=MOST_SECONDS)
    await session.execute(PAST, jobs, hours_ago, now, zones, timeout=MOST_SECONDS)
    await session.execute(AHEAD, jobs, hours_ahead, now, zones, timeout=MOST_SECONDS)
    await session.execute(INSTANCES, now, timeout=MOST_SECONDS)
    await session.execute("analyze", timeout=MOST_SECONDS)
