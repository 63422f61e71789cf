from datetime import UTC, datetime, timedelta

import anyio
import pytest

from shared.job import Job
from shared.postgres import Session
from tests.integration.trigger.support import DAY, DUE, HOUR, MINUTE, claimant, decisions, job_at, live, planned, states
from tests.support.ledger import database_on
from trigger.claim import Stale, Won, claim_due
from trigger.plan import plan_ahead, short_plans
from trigger.register import JobRetired, Registered, register, register_if_abandoned

NIGHT = datetime(2026, 8, 25, tzinfo=UTC)


def at(clock: str) -> datetime:
    hour, minute = clock.split(":")
    return NIGHT + timedelta(hours=int(hour), minutes=int(minute))


async def test_a_new_job_is_never_due_for_a_time_before_it_was_known(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE + MINUTE)
    assert min(await states(session)) == "26 02:00"
    assert not isinstance(await claim_due(session, job, revision, claimant(), now=DUE + 2 * MINUTE), Won)


async def test_the_next_48_hours_and_at_least_the_next_instant_are_planned(session: Session) -> None:
    await planned(session, job_at("0 * * * *", name="hourly"), DUE)
    await planned(session, job_at("0 0 1 1 *", name="yearly"), DUE)
    assert len(await states(session, "hourly")) == 49
    assert list(await states(session, "yearly")) == ["01 00:00"]
    partitions = await session.fetch("select relname from pg_class where relname like 'ledger_2%' and relkind = 'r'")
    assert {row["relname"] for row in partitions} >= {"ledger_2026_08", "ledger_2027_01"}


@pytest.mark.parametrize("planned_before", [False, True], ids=["nobody planned it", "planned"])
async def test_a_night_that_is_moved_back_behind_its_time_runs_at_its_old_one(
    session: Session, *, planned_before: bool
) -> None:
    """Also where the first trigger has died between registering the job and planning it."""
    before, after = job_at("0 4 * * *"), job_at("0 2 * * *")
    first = await register(session, before, instance="one", now=at("01:00"))
    if planned_before:
        await plan_ahead(session, before, first.revision, now=at("01:00"))
    await register(session, after, instance="two", now=at("03:00"))
    found = await states(session)
    assert found.pop("25 04:00") == "expected"
    assert found["26 02:00"] == "expected"
    assert {state for when, state in found.items() if when.endswith("04:00")} <= {"skipped: superseded"}


async def test_a_plan_is_short_again_when_time_has_passed(session: Session) -> None:
    hourly, yearly = job_at("0 * * * *", name="hourly"), job_at("0 0 1 1 *", name="yearly")
    for job in (hourly, yearly):
        await planned(session, job, DUE)
    assert await short_plans(session, [hourly, yearly], now=DUE + HOUR / 2) == set()
    assert await short_plans(session, [hourly, yearly], now=DUE + 2 * HOUR) == {"hourly"}
    assert await short_plans(session, [hourly, yearly], now=datetime(2027, 1, 1, 0, 0, 1, tzinfo=UTC)) >= {"yearly"}


async def test_planning_goes_on_in_batches_from_where_it_stopped(session: Session) -> None:
    job = job_at("* * * * *")
    await planned(session, job, DUE)
    later = DUE + 5 * DAY
    passes = 0
    while (await plan_ahead(session, job, 1, batch=500, now=later)).more:
        passes += 1
        if passes == 3:
            # Nothing is decided while the plan is behind: the last due instant is not known yet.
            assert not isinstance(await claim_due(session, job, 1, claimant(), now=later), Won)
    assert passes == 14
    assert await session.fetchval("select count(*) from matins.occurrence") == (5 * 24 + 49) * 60
    assert isinstance(await claim_due(session, job, 1, claimant(), now=later), Won)
    counts = await session.fetch("select state, count(*) as count from matins.occurrence group by state")
    found = {row["state"]: row["count"] for row in counts}
    assert found == {"claimed": 1, "coalesced": 20 * 60, "missed": 5 * 24 * 60 - 1 - 20 * 60, "expected": 49 * 60}


async def test_many_first_starts_at_once_make_one_revision(database_url: str) -> None:
    found: list[Registered] = []
    async with database_on(database_url) as database:

        async def start(number: int) -> None:
            async with database.session() as session:
                found.append(await register(session, job_at(), instance=f"t{number}", now=DUE))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(start, number)
    assert [one.revision for one in found] == [1] * 8
    assert sum(one.changed for one in found) == 1


async def test_many_starts_with_a_new_definition_make_one_revision(database_url: str) -> None:
    found: list[Registered] = []
    async with database_on(database_url) as database:
        async with database.session() as session:
            await planned(session, job_at(), DUE)

        async def start(number: int) -> None:
            async with database.session() as session:
                found.append(await register(session, job_at("0 3 * * *"), instance=f"t{number}", now=DUE + MINUTE))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(start, number)
    assert [one.revision for one in found] == [2] * 8


async def test_a_retired_job_is_refused(session: Session) -> None:
    job = job_at()
    await planned(session, job, DUE)
    await session.execute("update matins.job set retired_at = $1, retired_by = 'ann', retire_reason = 'replaced'", DUE)
    with pytest.raises(JobRetired, match="retired at 2026-08-25 02:00 UTC by ann: replaced"):
        await register(session, job, instance="one", now=DUE)
    assert (await plan_ahead(session, job, 1, now=DUE + 9 * DAY)).stale


async def claims(session: Session, job: Job, revision: int, now: datetime) -> bool:
    return isinstance(await claim_due(session, job, revision, claimant(), now=now), Won)


async def ended(session: Session) -> None:
    """End what was claimed."""
    await session.execute(
        """update matins.occurrence set state = 'succeeded', closed_at = claimed_at, report = '{}',
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where state = 'claimed'"""
    )


class TestMoving:
    """A job at 02:00, planned the day before, gets another time."""

    async def test_later_before_it_was_due(self, session: Session) -> None:
        await planned(session, job_at(), at("00:00") - DAY)
        moved = job_at("0 3 * * *")
        assert await planned(session, moved, at("01:00")) == 2
        assert {"25 02:00": "skipped: superseded", "25 03:00": "expected"}.items() <= (await states(session)).items()
        assert not await claims(session, moved, 2, at("02:30"))
        assert await claims(session, moved, 2, at("03:00"))

    async def test_later_after_it_was_claimed(self, session: Session) -> None:
        old, moved = job_at(), job_at("0 3 * * *")
        await planned(session, old, at("00:00") - DAY)
        assert await claims(session, old, 1, at("02:00"))
        assert await planned(session, moved, at("02:30")) == 2
        found = await states(session)
        assert found["25 03:00"] == "skipped: superseded"
        assert found["26 03:00"] == "expected"
        assert not await claims(session, moved, 2, at("03:00"))

    async def test_earlier_before_its_new_time(self, session: Session) -> None:
        await planned(session, job_at(), at("00:00") - DAY)
        moved = job_at("0 1 * * *")
        assert await planned(session, moved, at("00:30")) == 2
        assert await claims(session, moved, 2, at("01:00"))
        assert (await states(session))["25 02:00"] == "skipped: superseded"

    async def test_earlier_after_its_new_time(self, session: Session) -> None:
        await planned(session, job_at(), at("00:00") - DAY)
        moved = job_at("0 1 * * *")
        assert await planned(session, moved, at("01:30")) == 2
        assert await claims(session, moved, 2, at("02:00"))
        assert await states(session) == {
            "24 02:00": "missed",
            "25 02:00": "claimed",
            "26 01:00": "expected",
            "27 01:00": "expected",
        }

    async def test_the_old_code_claims_and_plans_nothing_any_more(self, session: Session) -> None:
        old, moved = job_at(), job_at("0 1 * * *")
        await planned(session, old, at("00:00") - DAY)
        await planned(session, moved, at("01:30"))
        assert await claim_due(session, old, 1, claimant(), now=at("02:00")) == Stale(2)
        assert (await plan_ahead(session, old, 1, now=at("02:00"))).stale

    async def test_rolled_back_in_time_takes_the_superseded_instant_back(self, session: Session) -> None:
        old, moved = job_at(), job_at("0 3 * * *")
        await planned(session, old, at("00:00") - DAY)
        await planned(session, moved, at("01:00"))
        assert await planned(session, old, at("01:10")) == 3
        assert {"25 02:00": "expected", "25 03:00": "skipped: superseded"}.items() <= (await states(session)).items()
        assert await claims(session, old, 3, at("02:00"))

    async def test_from_often_to_seldom_takes_back_what_was_planned(self, session: Session) -> None:
        await planned(session, job_at("*/10 * * * *"), at("00:00"))
        await planned(session, job_at("0 2 * * *"), at("00:01"))
        found = await states(session)
        assert [instant for instant, state in found.items() if state == "expected"] == ["25 02:00", "26 02:00"]

    async def test_what_was_due_while_the_fleet_was_down_is_recorded_by_the_old_times(self, session: Session) -> None:
        await planned(session, job_at(decisions=decisions(catch_up_within=HOUR)), at("12:00") - 6 * DAY)
        moved = job_at("0 5 * * *", decisions=decisions(catch_up_within=HOUR))
        await planned(session, moved, at("12:00"))
        assert not await claims(session, moved, 2, at("12:00"))
        found = await states(session)
        assert [instant for instant, state in found.items() if state == "missed"] == [
            f"{day} 02:00" for day in range(20, 26)
        ]
        assert [instant for instant, state in found.items() if state == "expected"] == ["26 05:00", "27 05:00"]

    @pytest.mark.parametrize("rare", ["0 2 * * 0", "0 2 1 1 *"])
    async def test_a_rare_job_made_nightly_runs_every_night_and_rare_again_it_does_not(
        self, session: Session, rare: str
    ) -> None:
        monday = at("12:00") - DAY
        await planned(session, job_at(rare), monday)
        nightly = job_at()
        revision = await planned(session, nightly, monday + HOUR)
        for day in range(8):
            now = at("02:00") + day * DAY
            await planned(session, nightly, now)
            assert await claims(session, nightly, revision, now), f"night {day}"
            await ended(session)
        again = job_at(rare)
        revision = await planned(session, again, at("12:00") + 7 * DAY)
        for day in range(8, 14):
            await planned(session, again, at("02:00") + day * DAY)
            is_due = rare == "0 2 * * 0" and day == 12
            assert await claims(session, again, revision, at("02:00") + day * DAY) is is_due
        assert set((await states(session)).values()) <= {"succeeded", "claimed", "expected", "skipped: superseded"}

    async def test_only_decisions_change_and_the_instants_stay(self, session: Session) -> None:
        await planned(session, job_at(), at("00:00") - DAY)
        changed = job_at(decisions=decisions(finish_within=HOUR))
        assert await planned(session, changed, at("02:00")) == 2
        assert await claims(session, changed, 2, at("02:01"))

    async def test_leaves_an_audit(self, session: Session) -> None:
        await planned(session, job_at(), at("00:00") - DAY)
        await planned(session, job_at("0 3 * * *"), at("01:00"))
        rows = await session.fetch("select kind, detail from matins.audit order by id")
        assert [row["kind"] for row in rows] == ["definition", "superseded", "definition"]
        assert rows[1]["detail"]["count"] == 1


class TestAbandonedRevision:
    """An old process that restarts during a rolling deploy takes the revision back; then its kind is gone."""

    async def test_stays_while_a_live_trigger_holds_it(self, session: Session) -> None:
        await planned(session, job_at("0 3 * * *"), DUE, instance="old")
        await live(session, "old")
        await session.execute("update matins.job_revision set effective_from = $1", DUE - DAY)
        await session.execute("update matins.instance set seen_at = $1", DUE)
        assert await register_if_abandoned(session, job_at(), instance="new", now=DUE) is None

    async def test_stays_when_it_was_made_just_now(self, session: Session) -> None:
        await planned(session, job_at("0 3 * * *"), DUE, instance="old")
        assert await register_if_abandoned(session, job_at(), instance="new", now=DUE + MINUTE / 2) is None

    async def test_is_replaced_when_nobody_holds_it(self, session: Session) -> None:
        await planned(session, job_at("0 3 * * *"), DUE, instance="old")
        found = await register_if_abandoned(session, job_at(), instance="new", now=DUE + 2 * MINUTE)
        assert found == Registered(2, changed=True)

    async def test_is_followed_when_it_is_the_same_definition_again(self, session: Session) -> None:
        await planned(session, job_at(), DUE, instance="old")
        found = await register_if_abandoned(session, job_at(), instance="new", now=DUE)
        assert found == Registered(1, changed=False)
