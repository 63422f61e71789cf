"""The clock that decides goes back, leaps forward, or is not quite that of the others: each instant is run once."""

from datetime import datetime, timedelta

from shared.job import Job
from shared.postgres import Database, Session
from tests.integration.trigger.support import DAY, DUE, HOUR, MINUTE, TABLE, claimant, decisions, fanned_out, job_at
from tests.integration.trigger.support import planned as planned_at
from tests.support.checker import assert_none, check, record_history
from trigger.claim import Won, claim_due, due_jobs
from trigger.fan_out import FanOutEnd

SECOND = timedelta(seconds=1)


async def passed(database: Database, session: Session, job: Job, now: datetime) -> list[str]:
    """Do what a trigger does at an instant of the database's clock; give what it ran, to the end."""
    revision = await planned_at(session, job, now)
    ran: list[str] = []
    for _ in range(10):
        if not await due_jobs(session, [job.name], "one", now=now):
            break
        outcome = await claim_due(session, job, revision, claimant(), now=now)
        if isinstance(outcome, Won):
            assert await fanned_out(database, job, outcome.claim) is FanOutEnd.SEALED
            ran.append(f"{outcome.claim.identity.scheduled_at:%d %H:%M}")
    return ran


async def test_a_clock_that_goes_back_and_forth_runs_each_minute_once(database: Database, session: Session) -> None:
    await session.execute(TABLE)
    await record_history(session)
    job = job_at("* * * * *", decisions=decisions(catch_up_within=HOUR))
    await planned_at(session, job, DUE - SECOND)
    assert await passed(database, session, job, DUE + 5 * SECOND) == ["25 02:00"]
    assert await passed(database, session, job, DUE + 65 * SECOND) == ["25 02:01"]
    for back in (DUE - 9 * MINUTE, DUE - 8 * MINUTE, DUE + 65 * SECOND):
        assert await passed(database, session, job, back) == [], "nothing is due, or it was run"
    assert await passed(database, session, job, DUE + 3 * MINUTE) == ["25 02:03"]
    assert await passed(database, session, job, DUE + 25 * HOUR) == ["26 03:00"], "no storm: what was due goes into one"
    states = await session.fetch(
        """select state, count(*) as instants from matins.occurrence
            where scheduled_at between $1 and $2 group by state order by state""",
        DUE,
        DUE + 25 * HOUR,
    )
    found = {row["state"]: row["instants"] for row in states}
    assert set(found) == {"succeeded", "coalesced", "missed"}
    assert sum(found.values()) == 25 * 60 + 1, "each minute has one row"
    assert found["succeeded"] == 4
    assert_none(await check(session, effect_table=None, at_rest=False))


async def test_triggers_within_a_second_of_the_instant_write_that_instant(database: Database, session: Session) -> None:
    await session.execute(TABLE)
    await record_history(session)
    job = job_at()
    await planned_at(session, job, DUE - DAY)
    ran = [
        await passed(database, session, job, DUE + offset)
        for offset in (timedelta(seconds=-0.7), timedelta(0), timedelta(seconds=0.7))
    ]
    assert ran == [[], ["25 02:00"], []], "none early, one at the instant"
    rows = await session.fetch("select scheduled_at from matins.occurrence where claimed_at is not null")
    assert [row["scheduled_at"] for row in rows] == [DUE]
    assert_none(await check(session, effect_table=None, at_rest=False))
