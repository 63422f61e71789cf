"""Catching up after a downtime: every instant once, in its order and at its pace, or with the reason why not."""

import json
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared.job import Decisions, Job, hours, minutes
from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    MINUTE,
    TABLE,
    claimant,
    decisions,
    end,
    job_at,
    planned,
    states,
    turn,
)
from tests.support.checker import assert_none, check, record_history
from trigger.claim import Nothing, Overlapped, Won, claim_due

CASES = {case["id"]: case for case in json.loads(Path("tests/cases/time_cases.json").read_text("utf-8"))}
SECOND = timedelta(seconds=1)


def every(**changes: Any) -> Decisions:
    """Decide to catch every instant up."""
    usual: dict[str, Any] = {
        "catch_up": "all",
        "catch_up_at_most": 1000,
        "catch_up_pace": minutes(1),
        "catch_up_within": hours(48),
        "start_within": minutes(2),
    }
    return decisions(**(usual | changes))


class Down:
    """A fleet that was down over a case's window, and comes back at its end."""

    def __init__(self, case: str) -> None:
        row = CASES[case]
        self.cron: str = row["cron"]
        self.since = datetime.fromisoformat(row["window_start_utc"])
        self.back = datetime.fromisoformat(row["window_end_utc"])
        self.instants: list[str] = row["expected_utc"]

    async def decided(self, session: Session, job: Job) -> dict[str, int]:
        """Count what became of the window's instants."""
        rows = await session.fetch(
            """select coalesce(reason, state) as became, count(*) as instants from matins.occurrence
                where job = $1 and scheduled_at >= $2 and scheduled_at < $3 group by 1""",
            job.name,
            self.since,
            self.back,
        )
        return {row["became"]: row["instants"] for row in rows}


@pytest.mark.parametrize("case", ["M03-01", "M03-02", "M03-03"])
class TestTheFleetWasDown:
    async def test_all_run_in_order_and_no_faster_than_the_pace(
        self, database: Database, session: Session, case: str
    ) -> None:
        down = Down(case)
        await session.execute(TABLE)
        await record_history(session)
        job = job_at(down.cron, decisions=every(catch_up_pace=30 * SECOND))
        await planned(session, job, down.since - SECOND)
        ran: list[str] = []
        now = down.back
        while len(ran) < len(down.instants):
            found = await turn(database, session, job, now)
            assert len(found) <= 1, "at most one at each pace"
            ran += found
            now += 30 * SECOND
        assert ran == down.instants
        assert await down.decided(session, job) == {"succeeded": len(down.instants)}
        windows = await session.fetch(
            """select scheduled_at, window_since from matins.occurrence where claimed_at is not null
                order by scheduled_at offset 1"""
        )
        assert [row["window_since"] for row in windows] == [
            datetime.fromisoformat(instant) for instant in down.instants[: len(windows)]
        ]
        assert_none(await check(session, effect_table=None, at_rest=False))

    async def test_latest_runs_the_last_one(self, database: Database, session: Session, case: str) -> None:
        down = Down(case)
        await session.execute(TABLE)
        job = job_at(down.cron, decisions=decisions(catch_up_within=hours(48)))
        await planned(session, job, down.since - SECOND)
        assert await turn(database, session, job, down.back - SECOND) == down.instants[-1:]
        assert await down.decided(session, job) == {"succeeded": 1, "coalesced": len(down.instants) - 1}

    async def test_skip_runs_none_and_goes_on(self, database: Database, session: Session, case: str) -> None:
        down = Down(case)
        await session.execute(TABLE)
        policy = decisions(catch_up="skip", start_within=SECOND, catch_up_within=hours(48))
        job = job_at(down.cron, decisions=policy)
        await planned(session, job, down.since - SECOND)
        assert await turn(database, session, job, down.back - MINUTE / 2) == []
        assert await down.decided(session, job) == {"catch_up": len(down.instants)}
        following = job.schedule.next_after(down.back - SECOND)
        assert following is not None
        assert await turn(database, session, job, following) == [f"{following:%Y-%m-%dT%H:%M:%SZ}"]


async def test_what_the_cap_leaves_out_is_recorded_and_covered_by_the_first_that_runs(
    database: Database, session: Session
) -> None:
    await session.execute(TABLE)
    job = job_at("0 * * * *", decisions=every(catch_up_at_most=3))
    await planned(session, job, DUE - 5 * HOUR - SECOND)
    assert await turn(database, session, job, DUE + SECOND) == ["2026-08-25T00:00:00Z"]
    found = await states(session)
    assert [found[f"24 {hour}:00"] for hour in (21, 22, 23)] == ["skipped: catch_up_at_most"] * 3
    assert (found["25 01:00"], found["25 02:00"]) == ("expected", "expected")
    since = await session.fetchval("select window_since from matins.occurrence where claimed_at is not null")
    assert since <= DUE - 5 * HOUR


async def test_what_awaits_its_turn_is_not_skipped_for_overlap(session: Session) -> None:
    job = job_at("0 * * * *", decisions=every(catch_up_pace=0 * SECOND))
    revision = await planned(session, job, DUE - 3 * HOUR - SECOND)
    won = await claim_due(session, job, revision, claimant(), now=DUE)
    assert isinstance(won, Won)
    assert won.claim.identity.scheduled_at == DUE - 3 * HOUR
    assert await claim_due(session, job, revision, claimant(), now=DUE + MINUTE) == Nothing()
    assert await claim_due(session, job, revision, claimant(), now=DUE + HOUR) == Nothing(), "3:00 joins the others"
    for hour in (2, 1, 0, -1):
        await end(session, job)
        won = await claim_due(session, job, revision, claimant(), now=DUE + HOUR + (3 - hour) * MINUTE)
        assert isinstance(won, Won)
        assert won.claim.identity.scheduled_at == DUE - hour * HOUR


async def test_what_falls_due_while_one_runs_in_time_overlaps_all_the_same(session: Session) -> None:
    job = job_at("0 * * * *", decisions=every())
    revision = await planned(session, job, DUE - SECOND)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE), Won)
    outcome = await claim_due(session, job, revision, claimant(), now=DUE + HOUR)
    assert outcome == Overlapped("nightly:2026-08-25T02:00Z")
    assert (await states(session))["25 03:00"] == "skipped: overlap"


async def test_what_is_later_than_it_may_be_is_missed_while_the_others_wait(session: Session) -> None:
    job = job_at("0 * * * *", decisions=every(catch_up_within=hours(3)))
    revision = await planned(session, job, DUE - 3 * HOUR - SECOND)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE), Won)
    await end(session, job)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE + HOUR + SECOND), Won)
    found = await states(session)
    assert (found["25 00:00"], found["25 01:00"]) == ("missed", "claimed")


async def test_a_trigger_that_restarts_over_the_due_second_runs_it_late_once_and_says_how_late(
    database: Database, session: Session
) -> None:
    await session.execute(TABLE)
    job = job_at()
    await planned(session, job, DUE - DAY)
    assert await turn(database, session, job, DUE - SECOND) == []
    assert await turn(database, session, job, DUE + 7 * SECOND) == ["2026-08-25T02:00:00Z"]
    assert await turn(database, session, job, DUE + 8 * SECOND) == []
    row = await session.fetchrow(
        "select claimed_at - scheduled_at as lag from matins.occurrence where state = 'succeeded'"
    )
    assert row is not None
    assert row["lag"] == 7 * SECOND


async def test_latest_runs_once_however_many_minutes_nobody_was_there(session: Session) -> None:
    job = job_at("* * * * *", decisions=decisions(catch_up_within=30 * DAY))
    await planned(session, job, DUE - 8 * DAY)
    revision = await planned(session, job, DUE)
    won = await claim_due(session, job, revision, claimant(), now=DUE)
    assert isinstance(won, Won)
    assert won.claim.identity.scheduled_at == DUE
    rows = await session.fetch("select state, count(*) from matins.occurrence where scheduled_at <= $1 group by 1", DUE)
    assert {row["state"]: row["count"] for row in rows} == {"coalesced": 8 * 24 * 60 - 1, "claimed": 1}
