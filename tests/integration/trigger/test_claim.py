import anyio
import pytest

from schemas.occurrence import Identity
from shared.calls import Window
from shared.job import Job
from shared.postgres import Database, Session, database_now
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    MINUTE,
    attempts,
    claimant,
    claimed,
    decisions,
    job_at,
    live,
    planned,
    states,
)
from tests.support.fleet import until
from tests.support.holds import holding
from tests.support.ledger import database_on
from trigger.claim import Held, NotDue, Nothing, Overlapped, Stale, Won, claim_due, claim_one, due_jobs
from trigger.claim_outcome import ClaimOutcome


async def test_of_four_triggers_that_attempt_each_instant_one_wins_two_hundred_times(database_url: str) -> None:
    job = job_at("* * * * *", decisions=decisions(overlap="skip", catch_up_within=HOUR))
    names = [f"trigger-{number}" for number in range(4)]
    async with database_on(database_url, size=9) as database:
        async with database.session() as session:
            await live(session, *names, since=DUE)
            revision = await planned(session, job, DUE)
        wins: list[str] = []
        for number in range(1, 201):
            outcomes: list[ClaimOutcome] = []

            async def attempt(name: str, outcomes: list[ClaimOutcome] = outcomes, number: int = number) -> None:
                async with database.session() as session:
                    outcomes.append(await claim_due(session, job, revision, claimant(name), now=DUE + number * MINUTE))

            async with anyio.create_task_group() as group:
                for name in names + names:
                    group.start_soon(attempt, name)
            won = [outcome for outcome in outcomes if isinstance(outcome, Won)]
            assert len(won) == 1
            wins.append(str(won[0].claim.identity))
            async with database.session() as session:
                await _finish(session, job)
        async with database.session() as session:
            attempted = await session.fetch(
                "select count(*) as all, count(*) filter (where won) as won from matins.attempt group by scheduled_at"
            )
    assert len(set(wins)) == 200
    assert [(row["all"], row["won"]) for row in attempted] == [(4, 1)] * 200


async def _finish(session: Session, job: Job) -> None:
    await session.execute(
        """update matins.occurrence set state = 'succeeded', closed_at = claimed_at, report = '{}',
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where job = $1 and state = 'claimed'""",
        job.name,
    )


async def test_nothing_is_claimed_before_its_time(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    assert await due_jobs(session, [job.name], "one", now=DUE - MINUTE / 60) == set()
    early = await claim_due(session, job, revision, claimant(), now=DUE - MINUTE / 60_000)
    assert early == Nothing()
    assert await due_jobs(session, [job.name], "one", now=DUE) == {job.name}
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE), Won)


async def test_a_claim_names_its_occurrence_by_the_schedule_and_not_by_the_clock(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    late = await claim_due(session, job, revision, claimant(), now=DUE + MINUTE + MINUTE / 7)
    assert isinstance(late, Won)
    assert late.claim.identity == Identity("nightly", DUE)
    assert late.claim.window == Window(DUE - DAY, DUE)
    row = await session.fetchrow("select * from matins.occurrence where id = $1", late.claim.id)
    assert row is not None
    assert row["finish_by"] - row["claimed_at"] == 3 * HOUR
    assert row["claimed_by"] == "one"


async def test_a_loser_leaves_one_attempt_and_is_told_who_holds_the_occurrence(session: Session) -> None:
    await live(session, "one", "two")
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    assert isinstance(await claim_due(session, job, revision, claimant("one"), now=DUE), Won)
    assert await due_jobs(session, [job.name], "two", now=DUE) == {job.name}
    lost = await claim_due(session, job, revision, claimant("two"), now=DUE)
    assert lost == Held(DUE, "claimed", "one", DUE)
    assert await due_jobs(session, [job.name], "two", now=DUE) == set()
    assert await claim_due(session, job, revision, claimant("two"), now=DUE) == Nothing()
    assert await attempts(session) == [("one", True), ("two", False)]


async def test_a_trigger_that_starts_later_does_not_attempt_what_was_due_before_it(session: Session) -> None:
    await live(session, "one")
    await live(session, "late", since=DUE + HOUR)
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    await claim_due(session, job, revision, claimant("one"), now=DUE)
    assert await due_jobs(session, [job.name], "late", now=DUE + HOUR) == set()
    assert await claim_due(session, job, revision, claimant("late"), now=DUE + HOUR) == Nothing()


async def test_another_revision_claims_nothing(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    assert await claim_due(session, job, revision + 1, claimant(), now=DUE) == Stale(revision)


async def test_a_retired_job_claims_nothing(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    await session.execute("update matins.job set retired_at = $1", DUE)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE), Stale)


async def test_a_paused_job_records_what_was_due_as_skipped(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    await session.execute("update matins.job set paused_at = $1", DUE - HOUR)
    assert await claim_due(session, job, revision, claimant(), now=DUE) == Nothing()
    assert (await states(session))["25 02:00"] == "skipped: paused"


async def test_an_active_occurrence_has_the_next_one_skipped_and_is_named(session: Session) -> None:
    job = job_at()
    await claimed(session, job)
    outcome = await claim_due(session, job, 1, claimant(), now=DUE + DAY)
    assert outcome == Overlapped("nightly:2026-08-25T02:00Z")
    assert (await states(session))["26 02:00"] == "skipped: overlap"
    named = await session.fetchval("select detail ->> 'because_of' from matins.audit where reason = 'overlap'")
    assert named == "nightly:2026-08-25T02:00Z"


async def test_windows_of_occurrences_that_ran_join_without_a_seam(session: Session) -> None:
    job = job_at()
    first = await claimed(session, job)
    await claim_due(session, job, 1, claimant(), now=DUE + DAY)
    await _finish(session, job)
    await planned(session, job, DUE + DAY)
    third = await claim_due(session, job, 1, claimant(), now=DUE + 2 * DAY)
    assert isinstance(third, Won)
    assert third.claim.window == Window(first.window.until, DUE + 2 * DAY)


async def test_decisions_leave_an_audit(session: Session) -> None:
    claim = await claimed(session, job_at())
    rows = await session.fetch("select kind, instance from matins.audit where occurrence_id = $1", claim.id)
    assert [(row["kind"], row["instance"]) for row in rows] == [("claim", "one")]


class TestFiring:
    async def test_wins_like_the_schedule_and_the_second_is_told(self, session: Session) -> None:
        job = job_at()
        await planned(session, job, DUE - DAY)
        identity = Identity("nightly", DUE)
        won = await claim_one(session, identity, claimant(), fired_by="ada", reason="early", now=DUE)
        assert isinstance(won, Won)
        second = await claim_one(session, identity, claimant("two"), fired_by="bob", now=DUE + MINUTE)
        assert second == Held(DUE, "claimed", "one", DUE)
        row = await session.fetchrow("select actor, reason from matins.audit where kind = 'claim'")
        assert row is not None
        assert tuple(row) == ("ada", "early")

    async def test_of_many_who_fire_and_the_schedule_one_wins(self, database: Database) -> None:
        job = job_at()
        async with database.session() as session:
            revision = await planned(session, job, DUE - DAY)
        outcomes: list[object] = []

        async def fire(number: int) -> None:
            async with database.session() as session:
                if number % 2:
                    outcomes.append(await claim_due(session, job, revision, claimant(f"t{number}"), now=DUE))
                else:
                    identity = Identity("nightly", DUE)
                    outcomes.append(await claim_one(session, identity, claimant(f"t{number}"), fired_by="ada", now=DUE))

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(fire, number)
        assert sum(isinstance(outcome, Won) for outcome in outcomes) == 1

    async def test_is_refused_before_the_time_and_for_what_was_never_planned(self, session: Session) -> None:
        await planned(session, job_at(), DUE - DAY)
        early = await claim_one(session, Identity("nightly", DUE), claimant(), fired_by="ada", now=DUE - MINUTE)
        assert early == NotDue(known=True)
        unknown = Identity("nightly", DUE + MINUTE)
        assert await claim_one(session, unknown, claimant(), fired_by="ada", now=DUE + HOUR) == NotDue(known=False)
        stranger = Identity("stranger", DUE)
        assert await claim_one(session, stranger, claimant(), fired_by="ada", now=DUE) == NotDue(known=False)

    async def test_waits_for_nobody_who_runs(self, session: Session) -> None:
        job = job_at()
        await claimed(session, job)
        later = Identity("nightly", DUE + DAY)
        outcome = await claim_one(session, later, claimant(), fired_by="ada", now=DUE + DAY)
        assert outcome == Overlapped("nightly:2026-08-25T02:00Z")
        assert (await states(session))["26 02:00"] == "expected"

    async def test_claims_an_ad_hoc_occurrence(self, session: Session) -> None:
        await planned(session, job_at(), DUE - DAY)
        await session.execute(
            """insert into matins.occurrence (job, scheduled_at, variant, origin, revision, window_since, window_until,
                                              tzdata_version)
               values ('nightly', $1, '+once', 'ad_hoc', 1, $1, $1, 'test')""",
            DUE - HOUR,
        )
        identity = Identity("nightly", DUE - HOUR, "+once")
        won = await claim_one(session, identity, claimant(), fired_by="ada", now=DUE - HOUR)
        assert isinstance(won, Won)
        assert won.claim.identity == identity


@pytest.mark.parametrize("policy", ["latest", "skip"])
class TestAfterADowntime:
    """The fleet is down from the 20th, 03:00 to the 25th, 02:05; the job is due at 02:00 of each day."""

    async def test_five_days_leave_five_days_of_rows(self, session: Session, policy: str) -> None:
        job = job_at(decisions=decisions(catch_up=policy))
        await planned(session, job, DUE - 5 * DAY + HOUR)
        revision = await planned(session, job, DUE + 5 * MINUTE)
        outcome = await claim_due(session, job, revision, claimant(), now=DUE + 5 * MINUTE)
        assert isinstance(outcome, Won)
        assert outcome.claim.window == Window(DUE - 5 * DAY, DUE)
        assert await states(session) == {
            "21 02:00": "missed",
            "22 02:00": "missed",
            "23 02:00": "missed",
            "24 02:00": "missed",
            "25 02:00": "claimed",
            "26 02:00": "expected",
            "27 02:00": "expected",
        }


class TestWhatWasDueMeanwhile:
    async def test_the_last_missed_instant_runs_the_time_of_those_before_it(self, session: Session) -> None:
        job = job_at("0 * * * *", decisions=decisions(catch_up_within=HOUR * 7 / 2))
        revision = await planned(session, job, DUE - DAY)
        await claim_due(session, job, revision, claimant(), now=DUE - 6 * HOUR)
        await _finish(session, job)
        outcome = await claim_due(session, job, revision, claimant(), now=DUE + MINUTE)
        assert isinstance(outcome, Won)
        assert outcome.claim.window == Window(DUE - 6 * HOUR, DUE)
        found = await states(session)
        assert [
            found[f"{day} {hour:02d}:00"] for day, hour in ((24, 21), (24, 22), (24, 23), (25, 0), (25, 1), (25, 2))
        ] == [
            "missed",
            "missed",
            "coalesced",
            "coalesced",
            "coalesced",
            "claimed",
        ]
        into = await session.fetch("select distinct coalesced_into from matins.occurrence where state = 'coalesced'")
        assert {row["coalesced_into"] for row in into} >= {outcome.claim.id}

    async def test_what_is_too_late_for_a_job_that_skips_is_skipped(self, session: Session) -> None:
        job = job_at(decisions=decisions(catch_up="skip"))
        revision = await planned(session, job, DUE - DAY)
        assert await claim_due(session, job, revision, claimant(), now=DUE + 11 * MINUTE) == Nothing()
        assert (await states(session))["25 02:00"] == "skipped: catch_up"

    async def test_an_instant_behind_one_that_was_fired_by_hand_goes_into_that_one(self, session: Session) -> None:
        job = job_at("0 * * * *")
        revision = await planned(session, job, DUE - 3 * HOUR)
        won = await claim_one(session, Identity("nightly", DUE), claimant(), fired_by="ada", now=DUE)
        assert isinstance(won, Won)
        assert won.claim.window.since == DUE - 3 * HOUR
        await _finish(session, job)
        assert await claim_due(session, job, revision, claimant(), now=DUE + MINUTE) == Nothing()
        found = await states(session)
        assert (found["25 00:00"], found["25 01:00"]) == ("coalesced", "coalesced")

    async def test_fifteen_days_of_minutes_are_recorded_in_passes(self, session: Session) -> None:
        job = job_at("* * * * *", decisions=decisions(catch_up_within=HOUR))
        await planned(session, job, DUE - 15 * DAY)
        revision = await planned(session, job, DUE)
        outcomes = [await claim_due(session, job, revision, claimant(), now=DUE) for _ in range(3)]
        assert outcomes[:2] == [Nothing(more=True)] * 2
        assert isinstance(outcomes[2], Won)
        assert outcomes[2].claim.identity.scheduled_at == DUE
        left = await session.fetchval(
            "select count(*) from matins.occurrence where state = 'expected' and scheduled_at <= $1", DUE
        )
        assert left == 0


async def test_a_claim_is_no_earlier_than_the_close_that_made_way_for_it(database_url: str, session: Session) -> None:
    present = await database_now(session)
    job = job_at("* * * * *")
    revision = await planned(session, job, present - 3 * MINUTE)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=present - MINUTE), Won)
    outcomes: list[ClaimOutcome] = []

    async def attempt(database: Database) -> None:
        async with database.session() as other:
            outcomes.append(await claim_due(other, job, revision, claimant("two")))

    async with (
        database_on(database_url) as database,
        holding(database_url, "matins.attempt", "insert", "true") as hold,
        anyio.create_task_group() as group,
    ):
        group.start_soon(attempt, database)
        held = "select count(*) from pg_locks where locktype = 'advisory' and not granted and objid = $1"
        await until(lambda: hold.session.fetchval(held, hold.key))
        closed_at = await session.fetchval(
            """update matins.occurrence set state = 'succeeded', closed_at = clock_timestamp(), report = '{}',
                      total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
                where job = $1 and state = 'claimed' returning closed_at""",
            job.name,
        )
        await hold.let_go()
    [won] = outcomes
    assert isinstance(won, Won)
    assert won.claim.claimed_at > closed_at
