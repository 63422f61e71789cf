"""What a backfill runs again costs the schedule nothing, whatever the overlap policy."""

import pytest

from shared.decisions import Overlap
from shared.postgres import Session
from tests.integration.operate.night import ORDER
from tests.integration.trigger.backfills import NAME, NOW, end, instant, past, step
from tests.integration.trigger.support import HOUR, MINUTE, claimant, decisions, job_at, planned, states
from trigger.backfill import Range, backfill
from trigger.claim import Overlapped, Won, claim_due


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "cancel_previous"])
async def test_a_scheduled_one_waits_for_the_end_of_one_that_a_backfill_runs_again(
    session: Session, overlap: Overlap
) -> None:
    job = job_at("0 * * * *", decisions=decisions(overlap=overlap))
    revision = await past(session, job, {16: "succeeded", 17: "failed"})
    await backfill(session, NAME, Range(instant(17), instant(17), "failed"), ORDER, now=NOW)
    await step(session)
    again = await session.fetchrow("select id, state, generation from matins.occurrence where state = 'running'")
    assert again is not None
    due = NOW + HOUR
    await planned(session, job, due)
    in_the_way = Overlapped(f"{NAME}:2026-08-24T17:00Z", waits=True)
    assert await claim_due(session, job, revision, claimant(), now=due) == in_the_way
    row = await session.fetchrow("select state, ending from matins.occurrence where id = $1", again["id"])
    assert row is not None
    assert tuple(row) == ("running", None), "and nobody ends it"
    await end(session, again["id"], "succeeded", now=due)
    won = await claim_due(session, job, revision, claimant(), now=due)
    assert isinstance(won, Won)
    assert (await states(session))["25 03:00"] == "claimed"


async def test_where_each_is_caught_up_none_is_missed_or_late_for_a_backfilled_one(session: Session) -> None:
    every = decisions(catch_up="all", catch_up_within=HOUR, catch_up_at_most=10, catch_up_pace=MINUTE)
    job = job_at("0 * * * *", decisions=every)
    revision = await past(session, job, {16: "succeeded", 17: "missed"})
    await backfill(session, NAME, Range(instant(17), instant(17)), ORDER, now=NOW)
    first = await step(session)
    assert isinstance(first, Won)
    due = NOW
    for _ in range(3):
        due += HOUR
        await planned(session, job, due)
        assert await claim_due(session, job, revision, claimant(), now=due) == Overlapped(
            str(first.claim.identity), waits=True
        )
    await end(session, first.claim.id, "succeeded", now=due)
    for hour in ("03", "04", "05"):
        won = await claim_due(session, job, revision, claimant(), now=due)
        assert isinstance(won, Won)
        assert f"{won.claim.identity.scheduled_at:%H}" == hour
        await end(session, won.claim.id, "succeeded", now=due)
        due += 2 * MINUTE
