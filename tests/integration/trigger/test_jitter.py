"""Jitter: an occurrence keeps its name and its window, and is claimed when it is due, and late from then."""

from dataclasses import replace

import pytest

from schemas.occurrence import Identity
from shared.job import minutes
from shared.postgres import IntegrityViolation, Session
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
from trigger.claim import NotDue, Nothing, Won, claim_due, claim_one, due_jobs
from trigger.operate import LATEST_DUE

SECOND = MINUTE / 60
JOB = job_at(jitter=minutes(5))
DUE_LATER = Timing.of(JOB).due_at(DUE)


async def test_nothing_is_claimed_attempted_or_fired_before_it_is_due(session: Session) -> None:
    assert DUE + 10 * SECOND < DUE_LATER <= DUE + minutes(5)
    revision = await planned(session, JOB, DUE - DAY)
    await live(session, "one")
    early = DUE_LATER - SECOND
    assert await due_jobs(session, [JOB.name], "one", now=early) == set()
    assert await claim_due(session, JOB, revision, claimant(), now=early) == Nothing()
    identity = Identity(JOB.name, DUE)
    assert await claim_one(session, identity, claimant(), fired_by="ada", now=early) == NotDue(known=True)
    assert await session.fetchval(LATEST_DUE, JOB.name, early) is None
    assert await attempts(session) == []
    assert await session.fetchval(LATEST_DUE, JOB.name, DUE_LATER) == DUE
    assert await due_jobs(session, [JOB.name], "one", now=DUE_LATER) == {JOB.name}
    won = await claim_due(session, JOB, revision, claimant(), now=DUE_LATER)
    assert isinstance(won, Won)
    assert won.claim.identity == identity
    assert won.claim.window.until == DUE
    assert won.claim.lag == SECOND * 0, "it is not late, though its instant is over"
    assert await attempts(session) == [("one", True)]


@pytest.mark.parametrize(("after", "state"), [(HOUR, "claimed"), (HOUR + SECOND, "missed")])
async def test_lateness_counts_from_when_it_is_due(session: Session, after: object, state: str) -> None:
    job = replace(JOB, decisions=decisions(catch_up_within=HOUR))
    revision = await planned(session, job, DUE - DAY)
    await claim_due(session, job, revision, claimant(), now=DUE_LATER + after)  # type: ignore[operator] # a duration
    assert (await states(session))["25 02:00"] == state


async def test_a_new_jitter_holds_for_what_is_planned_already_and_waits_for_no_new_instant(session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    later = await planned(session, JOB, DUE - HOUR)
    assert await session.fetchval("select due_at from matins.occurrence where scheduled_at = $1", DUE) == DUE_LATER
    less = job_at(jitter=SECOND * 0)
    again = await planned(session, less, DUE - MINUTE)
    assert again == later + 1
    assert isinstance(await claim_due(session, less, again, claimant(), now=DUE), Won)


async def test_a_changed_jitter_runs_what_was_put_off_when_the_definition_changed(session: Session) -> None:
    await planned(session, JOB, DUE - DAY)
    changed = replace(JOB, jitter=minutes(1), description="changed")
    revision = await planned(session, changed, DUE + SECOND)
    assert await claim_due(session, changed, revision, claimant(), now=DUE_LATER - SECOND) == Nothing()
    assert isinstance(await claim_due(session, changed, revision, claimant(), now=DUE_LATER), Won)


async def test_a_release_that_knows_of_no_jitter_writes_rows_that_are_due_when_scheduled(session: Session) -> None:
    await planned(session, JOB, DUE - DAY)
    insert = """insert into matins.occurrence
                       (job, scheduled_at, revision, window_since, window_until, tzdata_version{0})
                values ('nightly', $1, 1, $1, $1, 'test'{1}) returning due_at"""
    later = DUE + MINUTE
    assert await session.fetchval(insert.format("", ""), later) == later
    with pytest.raises(IntegrityViolation):
        await session.fetchval(insert.format(", due_at", ", $1::timestamptz - interval '1 second'"), later + MINUTE)
