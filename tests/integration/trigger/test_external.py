"""A job for an outside scheduler: planned like any other, fired from outside alone, missed when nobody calls."""

from datetime import datetime
from typing import Any

from schemas.occurrence import Identity
from shared.job import Job
from shared.postgres import Session
from tests.integration.operate.night import ORDER
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
from trigger.attempting import attempted_now
from trigger.backfill import Range, backfill
from trigger.backfill_pass import advance_backfill
from trigger.claim import Held, Nothing, Overlapped, Won, claim_due, claim_one
from trigger.claim_outcome import FireOutcome
from trigger.leader import Leadership

WITHIN = 20 * HOUR


def outside(**more: Any) -> Job:
    return job_at(coordination="external", **more)


async def noticed(session: Session, job: Job, now: datetime) -> bool:
    """Tell whether a trigger's pass has anything to do with the job."""
    found = await attempted_now(session, {job.name: job}, claimant(), Leadership("one", HOUR), now=now)
    return job.name in found


async def called(session: Session, job: Job, now: datetime, at: datetime = DUE) -> FireOutcome:
    return await claim_one(
        session,
        Identity(job.name, at),
        claimant("caller"),
        fired_by="platform",
        now=now,
    )


async def test_nothing_fires_inside_and_a_call_claims(session: Session) -> None:
    await live(session, "one")
    job = outside()
    revision = await planned(session, job, DUE - DAY)
    for now in (DUE, DUE + HOUR, DUE + WITHIN):
        assert not await noticed(session, job, now)
        assert await claim_due(session, job, revision, claimant(), now=now) == Nothing()
    assert (await states(session))["25 02:00"] == "expected"
    assert await attempts(session) == [], "the triggers attempt nothing"
    assert isinstance(await called(session, job, DUE + WITHIN), Won)
    assert isinstance(await called(session, job, DUE + WITHIN), Held)
    assert await attempts(session) == [("caller", True)]


async def test_what_is_not_called_in_time_was_missed_and_is_claimed_no_more(session: Session) -> None:
    job = outside()
    revision = await planned(session, job, DUE - DAY)
    late = DUE + WITHIN + MINUTE
    assert await noticed(session, job, late)
    assert await claim_due(session, job, revision, claimant(), now=late) == Nothing()
    row = await session.fetchrow("select state, reason from matins.occurrence where scheduled_at = $1", DUE)
    assert row is not None
    assert tuple(row) == ("missed", "not claimed within catch_up_within")
    assert not await noticed(session, job, late), "it is decided"
    outcome = await called(session, job, late)
    assert isinstance(outcome, Held)
    assert outcome.state == "missed"


async def test_a_call_for_a_later_instant_covers_the_time_of_an_earlier_one(session: Session) -> None:
    job = outside(decisions=decisions(catch_up_within=60 * HOUR))
    revision = await planned(session, job, DUE - DAY)
    await planned(session, job, DUE + DAY)
    assert isinstance(await called(session, job, DUE + DAY, DUE + DAY), Won)
    assert await noticed(session, job, DUE + DAY)
    await claim_due(session, job, revision, claimant(), now=DUE + DAY)
    assert (await states(session))["25 02:00"] == "coalesced"
    since = await session.fetchval("select window_since from matins.occurrence where claimed_at is not null")
    assert since <= DUE - DAY


async def test_skip_leaves_a_late_instant_to_be_called(session: Session) -> None:
    job = outside(decisions=decisions(catch_up="skip"))
    revision = await planned(session, job, DUE - DAY)
    await claim_due(session, job, revision, claimant(), now=DUE + HOUR)
    assert (await states(session))["25 02:00"] == "expected"
    assert isinstance(await called(session, job, DUE + HOUR), Won)


async def test_a_call_while_the_former_still_runs_is_told_of_it(session: Session) -> None:
    job = outside()
    await planned(session, job, DUE - DAY)
    await planned(session, job, DUE + HOUR)
    await called(session, job, DUE)
    assert await called(session, job, DUE + DAY, DUE + DAY) == Overlapped("nightly:2026-08-25T02:00Z")
    assert (await states(session))["26 02:00"] == "expected", "it may be called again"


async def test_a_later_instant_that_a_backfill_runs_covers_none_and_keeps_no_trigger_busy(session: Session) -> None:
    job = outside(decisions=decisions(catch_up_within=2 * DAY))
    await planned(session, job, DUE - 2 * DAY)
    await session.execute("update matins.occurrence set state = 'missed', reason = 'r' where scheduled_at = $1", DUE)
    await backfill(session, job.name, Range(DUE, DUE), ORDER, now=DUE + MINUTE)
    assert isinstance(await advance_backfill(session, job.name, 1, claimant(), now=DUE + MINUTE), Won)
    assert not await noticed(session, job, DUE + HOUR)
    assert (await states(session))["24 02:00"] == "expected"
