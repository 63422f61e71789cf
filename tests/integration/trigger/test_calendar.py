"""Exclusions, intervals and instants on the plan: what is left out has its row, and a schedule may end."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from schemas.occurrence import Identity, format_instant
from shared.job import Calendar, Cron, Every, Except, Instants, Job, Weekdays, minutes
from shared.postgres import Session
from shared.schedule_protocol import Schedule
from shared.timing import Timing
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    MINUTE,
    attempts,
    claimant,
    decisions,
    job_at,
    live,
    planned,
    states,
)
from trigger.claim import Held, Nothing, Won, claim_due, claim_one, due_jobs
from trigger.last_runs import read_last_runs
from trigger.lint import LastRuns
from trigger.operate import LATEST_DUE
from trigger.plan import short_plans
from trigger.preview import preview

# The 25th of August 2026 is a Tuesday.
LEFT_OUT = "skipped: calendar"


def job_of(schedule: Schedule, **more: Any) -> Job:
    return replace(job_at(**more), schedule=schedule)


def off(*days: int) -> Except:
    return Except(Cron("0 2 * * *"), [Calendar("off", [f"2026-08-{day}" for day in days])])


async def test_an_instant_that_is_left_out_has_its_row_and_is_neither_claimed_nor_attempted_nor_fired(
    session: Session,
) -> None:
    job = job_of(off(25))
    revision = await planned(session, job, DUE - DAY - HOUR)
    await live(session, "one", since=DUE - 2 * DAY)
    assert await states(session) == {"24 02:00": "expected", "25 02:00": LEFT_OUT, "26 02:00": "expected"}
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE - DAY), Won)
    await session.execute(
        """update matins.occurrence set state = 'failed', sealed_at = claimed_at, closed_at = claimed_at, report = '{}',
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0 where state = 'claimed'"""
    )
    assert await due_jobs(session, [job.name], "one", now=DUE) == set()
    assert await claim_due(session, job, revision, claimant(), now=DUE) == Nothing()
    assert await attempts(session) == [("one", True)]
    fired = await claim_one(session, Identity(job.name, DUE), claimant(), fired_by="ada", now=DUE)
    assert fired == Held(DUE, "skipped", None, None, "calendar")
    assert await session.fetchval(LATEST_DUE, job.name, DUE) == DUE - DAY
    await planned(session, job, DUE + HOUR)
    won = await claim_due(session, job, revision, claimant(), now=DUE + DAY)
    assert isinstance(won, Won)
    assert won.claim.window.since == DUE - DAY, "the time that was left out is covered by the next run"


async def test_days_in_which_nobody_planned_have_their_rows_too(session: Session) -> None:
    job = job_of(off(26, 27))
    await planned(session, job, DUE - MINUTE)
    await planned(session, job, DUE + 5 * DAY)
    found = await states(session)
    assert [found[f"{day} 02:00"] for day in (25, 26, 27, 28)] == ["expected", LEFT_OUT, LEFT_OUT, "expected"]


async def test_a_changed_calendar_is_a_new_revision_and_takes_days_out_and_back(session: Session) -> None:
    now = DUE - HOUR
    first = await planned(session, job_of(off(25)), now)
    assert await states(session) == {"25 02:00": LEFT_OUT, "26 02:00": "expected", "27 02:00": "expected"}
    second = await planned(session, job_of(off(26)), now + MINUTE)
    assert second == first + 1
    assert await states(session) == {"25 02:00": "expected", "26 02:00": LEFT_OUT, "27 02:00": "expected"}
    back = await planned(session, job_of(off(25)), now + 2 * MINUTE)
    assert await states(session) == {"25 02:00": LEFT_OUT, "26 02:00": "expected", "27 02:00": "expected"}
    assert await claim_due(session, job_of(off(25)), back, claimant(), now=DUE) == Nothing()
    assert isinstance(await claim_due(session, job_of(off(25)), back, claimant(), now=DUE + DAY), Won)


async def test_a_day_off_that_ran_already_stays_what_it_was(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - HOUR)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE), Won)
    await planned(session, job_of(off(25)), DUE + MINUTE)
    assert (await states(session))["25 02:00"] == "claimed"


async def test_planner_and_preview_hold_the_same_rows(session: Session) -> None:
    schedule = Except(Cron("*/20 * * * *", "Europe/Berlin", "next_valid", "both"), [Weekdays(["sun"])])
    job = replace(job_of(schedule), jitter=minutes(3))
    start = datetime.fromisoformat("2026-10-23T20:10Z")
    await planned(session, job, start)
    rows = await session.fetch("select scheduled_at, due_at, state, window_since from matins.occurrence order by 1")
    until = rows[-1]["scheduled_at"]
    shown = preview(Timing.of(job), start, until, 10_000)
    assert [
        (_written(row["scheduled_at"]), _written(row["due_at"]) if row["state"] == "expected" else None) for row in rows
    ] == [(one.scheduled_at, one.due_at) for one in shown]
    assert until >= start + timedelta(hours=48)
    occasions = Timing.of(job).occasions(start, until)
    assert [row["window_since"] for row in rows] == [one.since for one in occasions]


def _written(instant: datetime) -> str:
    return f"{instant:%Y-%m-%dT%H:%M:%SZ}"


async def test_an_interval_does_not_drift_after_a_downtime(session: Session) -> None:
    job = job_of(Every(minutes=50, anchor="2026-08-25T00:10Z"), decisions=decisions(catch_up="latest"))
    revision = await planned(session, job, DUE - HOUR)
    later = DUE + 3 * DAY + 7 * MINUTE
    await planned(session, job, later)
    won = await claim_due(session, job, revision, claimant(), now=later)
    assert isinstance(won, Won)
    minutes_since = (won.claim.identity.scheduled_at - datetime.fromisoformat("2026-08-25T00:10Z")) / MINUTE
    assert minutes_since % 50 == 0
    assert later - won.claim.identity.scheduled_at < 50 * MINUTE
    apart = await session.fetch(
        """select distinct scheduled_at - lag(scheduled_at) over (order by scheduled_at) as step
             from matins.occurrence order by 1"""
    )
    assert [row["step"] for row in apart] == [50 * MINUTE, None]


async def test_a_schedule_that_ends_is_planned_to_its_end_and_then_left_alone(session: Session) -> None:
    instants = [format_instant(DUE), format_instant(DUE + 10 * DAY)]
    job = job_of(Instants(instants))
    revision = await planned(session, job, DUE - HOUR)
    assert await states(session) == {"25 02:00": "expected"}
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE), Won)
    await planned(session, job, DUE + HOUR)
    assert await session.fetchval("select max(scheduled_at) from matins.occurrence") == DUE + 10 * DAY
    beyond = DUE + 20 * DAY
    await planned(session, job, beyond)
    assert await short_plans(session, [job], now=beyond) == set()
    assert await session.fetchval("select count(*) from matins.occurrence") == 2
    changed = await planned(session, job_of(Instants([*instants, format_instant(beyond + DAY)])), beyond + HOUR)
    assert changed == revision + 1
    assert await session.fetchval("select max(scheduled_at) from matins.occurrence") == beyond + DAY
    assert await planned(session, job_of(Instants(instants)), beyond + 2 * HOUR) == changed + 1
    assert "skipped: superseded" in (await states(session)).values()


async def test_what_the_last_runs_took_is_read_of_finished_ones_alone(session: Session) -> None:
    job = job_at("*/30 * * * *")
    await planned(session, job, DUE - DAY)
    assert await read_last_runs(session, [job.name]) == {}
    await session.execute(
        """update matins.occurrence
              set state = 'succeeded', claimed_at = scheduled_at, opened_at = scheduled_at, sealed_at = scheduled_at,
                  closed_at = scheduled_at + case when scheduled_at = $1 then interval '42 minutes' else '1 minute' end,
                  report = '{}', total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where scheduled_at <= $1""",
        DUE,
    )
    assert await read_last_runs(session, [job.name, "other"]) == {job.name: LastRuns(20, 42 * MINUTE)}
