"""What falls due while an occurrence of the job still runs, by each policy, and by many sessions at once."""

from datetime import datetime
from itertools import pairwise
from random import Random
from typing import Any

import anyio
import pytest

from schemas.occurrence import Identity
from shared.calls import Window
from shared.decisions import Overlap
from shared.job import Job, minutes
from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    LEASE,
    MINUTE,
    Broker,
    claimant,
    claimed,
    decisions,
    end,
    fanned_out,
    fill,
    job_at,
    live,
    planned,
    states,
)
from tests.integration.trigger.sweeps import publish, sweeping
from tests.support.checker import assert_none, check, record_history
from tests.support.ledger import database_on
from trigger.claim import Nothing, Overlapped, Won, claim_due, claim_one
from trigger.operate import Choice, Order, cancel, fire, rerun
from trigger.publish import Publishing, publish_pass
from trigger.sweep import cancel_ended, sweep_pass

ORDER = Order("ada", "the tax service is back", "one")
ROUNDS = 60
HAMMERS = 20


def hourly(overlap: Overlap, **changes: Any) -> Job:
    """Declare a job that is due at each hour."""
    return job_at("0 * * * *", decisions=decisions(overlap=overlap, **changes))


def at(hour: int) -> Identity:
    """Name the instant so many hours after the first."""
    return Identity("nightly", DUE + hour * HOUR)


async def running(session: Session, job: Job) -> int:
    """Claim the first instant on time; give the revision."""
    revision = await planned(session, job, DUE - MINUTE)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE), Won)
    return revision


class TestQueueOne:
    async def test_one_waits_a_later_one_takes_its_place_and_it_runs_when_the_way_is_free(
        self, session: Session
    ) -> None:
        job = hourly("queue_one")
        revision = await running(session, job)
        waits = Overlapped(str(at(0)), waits=True)
        assert await claim_due(session, job, revision, claimant(), now=DUE + HOUR) == waits
        assert (await states(session))["25 03:00"] == "expected"
        assert await claim_due(session, job, revision, claimant(), now=DUE + 2 * HOUR) == waits
        found = await states(session)
        assert (found["25 03:00"], found["25 04:00"]) == ("coalesced", "expected")
        await end(session, job, DUE + 2 * HOUR)
        won = await claim_due(session, job, revision, claimant(), now=DUE + 2 * HOUR + MINUTE)
        assert isinstance(won, Won)
        assert (won.claim.identity, won.claim.window) == (at(2), Window(DUE, DUE + 2 * HOUR))

    async def test_what_waits_is_not_missed_however_long_it_waits(self, session: Session) -> None:
        job = job_at(decisions=decisions(overlap="queue_one", catch_up_within=HOUR))
        revision = await planned(session, job, DUE - MINUTE)
        await claim_due(session, job, revision, claimant(), now=DUE)
        for moment in (DUE + DAY, DUE + DAY + 9 * HOUR):
            revision = await planned(session, job, moment)
            assert isinstance(await claim_due(session, job, revision, claimant(), now=moment), Overlapped)
        await end(session, job, DUE + DAY + 10 * HOUR)
        won = await claim_due(session, job, revision, claimant(), now=DUE + DAY + 11 * HOUR)
        assert isinstance(won, Won)

    async def test_what_nobody_claims_once_the_way_is_free_is_missed_like_any_other(self, session: Session) -> None:
        job = job_at(decisions=decisions(overlap="queue_one", catch_up_within=HOUR))
        revision = await planned(session, job, DUE - MINUTE)
        await claim_due(session, job, revision, claimant(), now=DUE)
        await claim_due(session, job, await planned(session, job, DUE + DAY), claimant(), now=DUE + DAY)
        await end(session, job, DUE + DAY + MINUTE)
        assert await claim_due(session, job, revision, claimant(), now=DUE + DAY + 2 * HOUR) == Nothing()
        assert (await states(session))["26 02:00"] == "missed"

    async def test_a_wait_is_recorded_once(self, session: Session) -> None:
        job = hourly("queue_one")
        revision = await running(session, job)
        for minute in range(5):
            await claim_due(session, job, revision, claimant(), now=DUE + HOUR + minute * MINUTE)
        told = await session.fetch("select detail ->> 'because_of' as active from matins.audit where kind = 'waits'")
        assert [row["active"] for row in told] == [str(at(0))]


class TestAllow:
    async def test_the_next_starts_beside_the_one_before(self, session: Session) -> None:
        job = hourly("allow")
        revision = await running(session, job)
        won = await claim_due(session, job, revision, claimant(), now=DUE + HOUR)
        assert isinstance(won, Won)
        assert won.claim.window == Window(DUE, DUE + HOUR)

    async def test_both_are_published_swept_and_closed(self, database: Database, session: Session) -> None:
        await fill(session, 3)
        await record_history(session)
        job = hourly("allow")
        revision = await planned(session, job, DUE - MINUTE)
        broker = Broker()
        for hour in (0, 1):
            won = await claim_due(session, job, revision, claimant(), now=DUE + hour * HOUR)
            assert isinstance(won, Won)
            await fanned_out(database, job, won.claim)
        await publish(database, job, broker, DUE + HOUR)
        assert len(broker.messages) == 6
        for hour in (1, 0):
            await cancel(session, at(hour), ORDER, now=DUE + HOUR)
        swept = await sweep_pass(sweeping(database, job, now=DUE + HOUR + MINUTE))
        assert (swept.cancelled, swept.closed) == (6, 2)
        assert_none(await check(session, effect_table=None, at_rest=False))

    async def test_a_rerun_goes_beside_another_and_under_any_other_policy_it_does_not(
        self, database: Database, session: Session
    ) -> None:
        await fill(session, 3)
        job = hourly("allow")
        revision = await planned(session, job, DUE - MINUTE)
        won = await claim_due(session, job, revision, claimant(), now=DUE)
        assert isinstance(won, Won)
        await fanned_out(database, job, won.claim)
        await cancel(session, at(0), ORDER, now=DUE)
        await sweep_pass(sweeping(database, job, now=DUE + MINUTE))
        assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE + HOUR), Won)
        started = await rerun(session, at(0), Choice(), ORDER, now=DUE + HOUR)
        assert started.accounts == 3

    async def test_no_more_are_published_than_may_wait_for_the_one_before(
        self, database: Database, session: Session
    ) -> None:
        await fill(session, 5)
        job = hourly("allow", overlap_by="account")
        revision = await planned(session, job, DUE - MINUTE)
        before, after = [await claim_due(session, job, revision, claimant(), now=DUE + hour * HOUR) for hour in (0, 1)]
        assert isinstance(before, Won)
        assert isinstance(after, Won)
        await fanned_out(database, job, after.claim)
        broker = Broker()
        work = Publishing(database, job, broker.send, "test.work", "one", LEASE, 2, now=DUE + HOUR)
        assert (await publish_pass(work)).accounts == 2
        blocked = "update matins.ledger set epoch = 1, not_before = $1, published_at = $2 where position <= 2"
        await session.execute(blocked, DUE + 2 * HOUR, DUE + HOUR)
        assert (await publish_pass(work)).accounts == 0, "two wait for the one before: more would only wait too"
        await session.execute("update matins.ledger set state = 'cancelled', finished_at = now() where position = 1")
        assert (await publish_pass(work)).accounts == 2
        known = await session.fetchval("select count(*) from matins.account_lock where job = $1", job.name)
        assert known == 5, "the fan-out has written the locks"


class TestCancelPrevious:
    async def test_the_next_starts_only_once_the_one_before_is_over(self, database: Database, session: Session) -> None:
        await fill(session, 3)
        await record_history(session)
        job = hourly("cancel_previous")
        revision = await planned(session, job, DUE - MINUTE)
        won = await claim_due(session, job, revision, claimant(), now=DUE)
        assert isinstance(won, Won)
        await fanned_out(database, job, won.claim)
        await session.execute("begin; select from matins.ledger where account = 'account-00002' for update")
        async with database.session() as other:
            outcome = await claim_due(other, job, revision, claimant(), now=DUE + HOUR)
            assert isinstance(outcome, Overlapped)
            assert (outcome.waits, [one.id for one in outcome.ended]) == (True, [won.claim.id])
            await cancel_ended(other, outcome.ended, by="one")
            again = await claim_due(other, job, revision, claimant(), now=DUE + HOUR + MINUTE)
            assert again == Overlapped(str(at(0)), waits=True), "one account is being executed: it settles first"
        await session.execute("rollback")
        await cancel_ended(session, outcome.ended, by="one")
        assert (await states(session))["25 02:00"] == "cancelled"
        assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE + HOUR + 2 * MINUTE), Won)
        told = await session.fetchrow("select reason, report from matins.occurrence where id = $1", won.claim.id)
        assert told is not None
        assert told["reason"] == f"cancel: cancel_previous: {at(1)} is due"
        assert told["report"]["counts"]["cancelled"] == 3
        assert_none(await check(session, effect_table=None, at_rest=False))

    async def test_what_fans_out_still_is_fenced(self, database: Database, session: Session) -> None:
        await fill(session, 3)
        job = hourly("cancel_previous")
        revision = await planned(session, job, DUE - MINUTE)
        won = await claim_due(session, job, revision, claimant(), now=DUE)
        assert isinstance(won, Won)
        outcome = await claim_due(session, job, revision, claimant("two"), now=DUE + HOUR)
        assert isinstance(outcome, Overlapped)
        assert str(await fanned_out(database, job, won.claim)) == "fenced"

    async def test_a_later_one_takes_the_place_of_the_one_that_waits(self, session: Session) -> None:
        job = hourly("cancel_previous")
        revision = await running(session, job)
        first = await claim_due(session, job, revision, claimant(), now=DUE + HOUR)
        second = await claim_due(session, job, revision, claimant(), now=DUE + 2 * HOUR)
        assert isinstance(first, Overlapped)
        assert len(first.ended) == 1
        assert second == Overlapped(str(at(0)), waits=True), "it ends already"
        assert (await states(session))["25 03:00"] == "coalesced"


class TestFiring:
    async def test_waits_or_cancels_as_the_policy_says(self, session: Session) -> None:
        job = hourly("cancel_previous")
        await running(session, job)
        outcome = await fire(session, at(1), ORDER, now=DUE + HOUR)
        assert isinstance(outcome, Overlapped)
        assert outcome.waits
        row = await session.fetchrow("select state, ending from matins.occurrence where scheduled_at = $1", DUE)
        assert row is not None
        assert row["ending"] == "cancel"
        actor = await session.fetchval("select actor from matins.audit where kind = 'cancel'")
        assert actor == "ada"

    async def test_ends_nothing_that_was_due_later(self, session: Session) -> None:
        job = hourly("cancel_previous")
        await planned(session, job, DUE - MINUTE)
        assert isinstance(await fire(session, at(1), ORDER, now=DUE + HOUR), Won)
        assert await fire(session, at(0), ORDER, now=DUE + HOUR) == Overlapped(str(at(1)))
        assert await session.fetchval("select count(*) from matins.occurrence where ending is not null") == 0

    async def test_runs_beside_another_where_that_is_allowed(self, session: Session) -> None:
        await running(session, hourly("allow"))
        assert isinstance(await fire(session, at(1), ORDER, now=DUE + HOUR), Won)

    async def test_waits_in_the_queue(self, session: Session) -> None:
        await running(session, hourly("queue_one"))
        assert await fire(session, at(1), ORDER, now=DUE + HOUR) == Overlapped(str(at(0)), waits=True)


async def test_what_waits_and_is_called_off_does_not_run(session: Session) -> None:
    job = hourly("queue_one")
    revision = await running(session, job)
    await claim_due(session, job, revision, claimant(), now=DUE + HOUR)
    await cancel(session, at(1), ORDER, now=DUE + HOUR)
    await end(session, job)
    assert await claim_due(session, job, revision, claimant(), now=DUE + HOUR + MINUTE) == Nothing()


async def hammered(database: Database, job: Job, revision: int, number: int, now: datetime, random: Random) -> None:
    """Do what one of many sessions may do at an instant: claim, fire, or end what is active."""
    async with database.session() as session:
        act = random.random()
        if act < 0.7:
            outcome: object = await claim_due(session, job, revision, claimant(f"t{number}"), now=now)
        elif act < 0.9:
            due = now.replace(minute=0)
            outcome = await claim_one(
                session, Identity(job.name, due), claimant(f"t{number}"), fired_by="ada", reason="now", now=now
            )
        else:
            await end(session, job, now)
            return
        if isinstance(outcome, Overlapped):
            await cancel_ended(session, outcome.ended, by=f"t{number}")


@pytest.mark.parametrize("overlap", ["skip", "queue_one", "cancel_previous"])
@pytest.mark.parametrize("catch_up", ["latest", "all"])
async def test_of_twenty_that_hammer_at_most_one_occurrence_is_active_ever(
    database_url: str, overlap: Overlap, catch_up: str
) -> None:
    more = {"catch_up_at_most": 5, "catch_up_pace": minutes(0)} if catch_up == "all" else {}
    job = hourly(overlap, catch_up=catch_up, **more)
    random = Random(f"{overlap} {catch_up}")  # noqa: S311 - a seed makes the run
    async with database_on(database_url, size=HAMMERS + 1) as database:
        async with database.session() as session:
            await record_history(session)
            await live(session, *(f"t{number}" for number in range(HAMMERS)), since=DUE - DAY)
            # Whoever makes a second one active is refused at once, and the test with it.
            await session.execute(
                "create unique index one_active on matins.occurrence (job) where state in ('claimed', 'running')"
            )
            await planned(session, job, DUE - MINUTE)
        now = DUE
        for number in range(ROUNDS):
            now = DUE + number * HOUR / 2
            async with database.session() as session:
                revision = await planned(session, job, now)
            async with anyio.create_task_group() as group:
                for hammer in range(HAMMERS):
                    group.start_soon(hammered, database, job, revision, hammer, now, random)
        async with database.session() as session:
            await end(session, job, now)
            rows = await session.fetch(
                """select state, count(*) as instants from matins.occurrence where scheduled_at <= $1 group by 1""", now
            )
            found = {row["state"]: row["instants"] for row in rows}
            assert sum(found.values()) == ROUNDS / 2
            assert found.get("succeeded", 0) + found.get("cancelled", 0) > 5
            claimed_at = await session.fetch("select scheduled_at from matins.occurrence where claimed_at is not null")
            assert len(claimed_at) == found.get("succeeded", 0) + found.get("cancelled", 0)
            wins = await session.fetch("select count(*) as won from matins.attempt where won group by scheduled_at")
            assert {row["won"] for row in wins} == {1}


async def test_of_twenty_that_hammer_several_are_active_where_that_is_allowed(database_url: str) -> None:
    job = hourly("allow")
    async with database_on(database_url, size=HAMMERS + 1) as database:
        async with database.session() as session:
            revision = await planned(session, job, DUE - MINUTE)
        for number in range(10):
            async with anyio.create_task_group() as group:
                for hammer in range(HAMMERS):

                    async def attempt(hammer: int = hammer, now: datetime = DUE + number * HOUR) -> None:
                        async with database.session() as session:
                            await claim_due(session, job, revision, claimant(f"t{hammer}"), now=now)

                    group.start_soon(attempt)
        async with database.session() as session:
            rows = await session.fetch(
                "select scheduled_at, window_since from matins.occurrence where state = 'claimed' order by 1"
            )
            assert len(rows) == 10
            assert all(later["window_since"] == one["scheduled_at"] for one, later in pairwise(rows))


async def test_a_policy_that_changes_while_several_run_waits_for_all_of_them(session: Session) -> None:
    job = hourly("allow")
    revision = await running(session, job)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE + HOUR), Won)
    strict = hourly("cancel_previous")
    revision = await planned(session, strict, DUE + HOUR + MINUTE)
    outcome = await claim_due(session, strict, revision, claimant(), now=DUE + 2 * HOUR)
    assert isinstance(outcome, Overlapped)
    assert len(outcome.ended) == 2


async def test_a_plain_skip_is_as_ever(session: Session) -> None:
    job = job_at()
    await claimed(session, job)
    assert await claim_due(session, job, 1, claimant(), now=DUE + DAY) == Overlapped("nightly:2026-08-25T02:00Z")
