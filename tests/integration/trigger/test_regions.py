"""A job that prefers a region: the others attempt after its delay, whatever has become of it."""

from datetime import datetime

from shared.job import Job
from shared.postgres import Session
from tests.integration.trigger.support import DAY, DUE, HOUR, LEASE, MINUTE, decisions, job_at, live, planned, states
from trigger.attempting import attempted_now
from trigger.claim import Claimant, Won, claim_due
from trigger.leader import Leadership

HOME, ELSEWHERE = Claimant("home", "eu-1", LEASE), Claimant("elsewhere", "us-1", LEASE)
SECOND = MINUTE / 60


def preferring(cron: str = "0 2 * * *") -> Job:
    return job_at(cron, region="eu-1", region_delay=2 * MINUTE, decisions=decisions(catch_up_within=HOUR))


async def attempts_now(session: Session, job: Job, one: Claimant, now: datetime) -> bool:
    """Make a trigger's pass; tell whether it claimed."""
    found = await attempted_now(session, {job.name: job}, one, Leadership(one.instance, one.lease), now=now)
    return bool(found) and isinstance(await claim_due(session, job, 1, one, now=now), Won)


async def attempted(session: Session) -> list[tuple[str, str, bool]]:
    rows = await session.fetch("select instance, region, won from matins.attempt order by attempted_at, instance")
    return [tuple(row) for row in rows]


async def test_the_others_attempt_after_the_delay(session: Session) -> None:
    await live(session, "home", "elsewhere")
    job = preferring()
    await planned(session, job, DUE - DAY)
    for now in (DUE, DUE + 2 * MINUTE - SECOND):
        assert not await attempts_now(session, job, ELSEWHERE, now)
    assert await attempted(session) == []
    assert await attempts_now(session, job, HOME, DUE + 2 * MINUTE - SECOND)
    assert not await attempts_now(session, job, ELSEWHERE, DUE + 2 * MINUTE)
    assert await attempted(session) == [("home", "eu-1", True), ("elsewhere", "us-1", False)]


async def test_when_the_region_is_away_another_runs_it_after_the_delay(session: Session) -> None:
    await live(session, "elsewhere")
    job = preferring()
    await planned(session, job, DUE - DAY)
    assert await attempts_now(session, job, ELSEWHERE, DUE + 2 * MINUTE)
    assert await attempted(session) == [("elsewhere", "us-1", True)]


async def test_each_instant_waits_for_its_own_delay(session: Session) -> None:
    await live(session, "elsewhere")
    job = preferring("* * * * *")
    await planned(session, job, DUE - SECOND)
    assert await attempts_now(session, job, ELSEWHERE, DUE + 2 * MINUTE)
    found = await states(session)
    assert [found[f"25 02:0{minute}"] for minute in range(3)] == ["claimed", "expected", "expected"]
    instants = await session.fetch("select scheduled_at from matins.attempt")
    assert [row["scheduled_at"] for row in instants] == [DUE]
