from datetime import datetime
from typing import Any

import anyio

from shared.definition import definition_of, fingerprint
from shared.job import Job
from shared.postgres import Database, Session
from tests.integration.operate.night import ORDER
from tests.integration.trigger.support import DAY, DUE, MINUTE, claimant, decisions, job_at, planned, states
from tests.support.fleet import until
from trigger.claim import Nothing, Won, claim_due
from trigger.failures import failing_jobs, pause_failing
from trigger.pauses import resume

JOB = job_at(pause_after_failures=3)


async def night(session: Session, number: int, state: str, job: Job = JOB) -> Any:
    """Claim what is due on a day, and have it end in a state."""
    now = DUE + number * DAY
    revision = await planned(session, job, now)
    outcome = await claim_due(session, job, revision, claimant(), now=now)
    if isinstance(outcome, Won):
        await ended(session, state, now)
    return outcome


async def ended(session: Session, state: str, now: datetime) -> None:
    await session.execute(
        """update matins.occurrence set state = $1, reason = 'r', closed_at = $2, report = '{}', sealed_at = $2,
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where state in ('claimed', 'running')""",
        state,
        now + MINUTE,
    )


async def standing(session: Session) -> tuple[bool, str | None]:
    row: Any = await session.fetchrow("select paused_at, pause_reason from matins.job")
    return row["paused_at"] is not None, row["pause_reason"]


async def test_after_so_many_failed_in_a_row_the_job_is_paused_before_the_next_claim(session: Session) -> None:
    await planned(session, JOB, DUE - DAY)
    for number in range(3):
        assert await failing_jobs(session, [JOB]) == set()
        assert isinstance(await night(session, number, "failed"), Won)
    assert await failing_jobs(session, [JOB]) == {"nightly"}
    assert await night(session, 3, "succeeded") == Nothing()
    assert await standing(session) == (True, "paused after 3 failed in a row")
    assert (await states(session))["28 02:00"] == "skipped: paused"
    row: Any = await session.fetchrow("select * from matins.audit where kind = 'pause'")
    assert (row["actor"], row["instance"], row["reason"]) == (None, "one", "paused after 3 failed in a row")
    assert row["detail"]["after"]["meanwhile"] == "skip"
    assert await failing_jobs(session, [JOB]) == set()


async def test_the_last_failure_counts_that_is_written_while_the_next_is_being_decided(database: Database) -> None:
    """Held where it records its attempt, behind its first look at the failures: the last one is closed meanwhile."""
    async with database.session() as session, database.session() as other:
        revision = await planned(session, JOB, DUE - DAY)
        for number in range(2):
            await night(session, number, "failed")
        now = DUE + 2 * DAY
        await planned(session, JOB, now)
        assert isinstance(await claim_due(session, JOB, revision, claimant(), now=now), Won)
        following = now + DAY
        await planned(session, JOB, following)
        outcomes: list[Any] = []

        async def decide_next() -> None:
            outcomes.append(await claim_due(session, JOB, revision, claimant(), now=following))

        async with anyio.create_task_group() as group, other.transaction():
            await other.execute(
                """insert into matins.attempt (job, scheduled_at, instance, attempted_at)
                       values ('nightly', $1, 'one', $1)""",
                following,
            )
            group.start_soon(decide_next)
            await until_blocked(database)
            async with database.session() as third:
                await ended(third, "failed", now)
        assert outcomes == [Nothing(more=True)]
        assert await standing(session) == (True, "paused after 3 failed in a row")


async def until_blocked(database: Database) -> None:
    """Wait until a session waits for another's lock."""

    async def look() -> bool:
        async with database.session() as session:
            return bool(
                await session.fetchval(
                    """select count(*) from pg_stat_activity
                        where datname = current_database() and wait_event_type = 'Lock'"""
                )
            )

    await until(look)


async def test_it_is_paused_as_soon_as_a_trigger_looks_with_nothing_due(session: Session) -> None:
    await planned(session, JOB, DUE - DAY)
    for number in range(3):
        await night(session, number, "failed")
    await pause_failing(session, "nightly", "one", now=DUE + 2 * DAY + 2 * MINUTE)
    assert await standing(session) == (True, "paused after 3 failed in a row")


async def test_one_that_did_not_fail_begins_the_row_anew(session: Session) -> None:
    await planned(session, JOB, DUE - DAY)
    for number, state in enumerate(["failed", "failed", "partial", "failed", "failed", "succeeded", "failed"]):
        assert isinstance(await night(session, number, state), Won)
    assert await standing(session) == (False, None)


async def test_one_that_runs_again_stands_among_them_and_has_not_failed(session: Session) -> None:
    """Without it a re-run of the partial one makes its neighbours look as if they had failed in a row."""
    job = job_at(decisions=decisions(overlap="allow"), pause_after_failures=3)
    await planned(session, job, DUE - DAY)
    for number, state in enumerate(["failed", "failed", "partial", "failed"]):
        assert isinstance(await night(session, number, state, job), Won)
    await session.execute(
        """update matins.occurrence set state = 'running', generation = 2, epoch = epoch + 1, closed_at = null
            where state = 'partial'"""
    )
    assert await failing_jobs(session, [job]) == set()
    await pause_failing(session, "nightly", "one", now=DUE + 4 * DAY)
    assert await standing(session) == (False, None)


async def test_what_failed_before_the_job_was_resumed_counts_no_more(session: Session) -> None:
    await planned(session, JOB, DUE - DAY)
    for number in range(4):
        await night(session, number, "failed")
    await resume(session, "nightly", ORDER, now=DUE + 3 * DAY + MINUTE)
    for number in range(4, 7):
        assert isinstance(await night(session, number, "failed"), Won)
    assert await night(session, 7, "failed") == Nothing()
    assert await session.fetchval("select count(*) from matins.audit where kind = 'pause'") == 2


async def test_who_does_not_ask_for_it_is_never_paused_and_keeps_the_fingerprint(session: Session) -> None:
    job = job_at()
    await planned(session, job, DUE - DAY)
    for number in range(6):
        assert isinstance(await night(session, number, "failed", job), Won)
    assert "pause_after_failures" not in definition_of(job)
    assert fingerprint(definition_of(job)) != fingerprint(definition_of(JOB))


async def test_of_many_triggers_at_once_one_pauses_and_none_claims(database: Database) -> None:
    async with database.session() as session:
        await planned(session, JOB, DUE - DAY)
        for number in range(3):
            await night(session, number, "failed")
        now = DUE + 3 * DAY
        revision = await planned(session, JOB, now)
    outcomes: list[Any] = []

    async def claim(number: int) -> None:
        async with database.session() as session:
            outcomes.append(await claim_due(session, JOB, revision, claimant(f"t{number}"), now=now))

    async with anyio.create_task_group() as group:
        for number in range(8):
            group.start_soon(claim, number)
    assert not any(isinstance(outcome, Won) for outcome in outcomes)
    async with database.session() as session:
        assert await session.fetchval("select count(*) from matins.audit where kind = 'pause'") == 1
