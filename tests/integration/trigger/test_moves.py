"""A fleet is replaced one instance at a time while its job moves: each night runs once, whatever the order.

The triggers' own ticks, at the instants of a stepped clock.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import combinations_with_replacement, product
from typing import TYPE_CHECKING, Any, get_args

import pytest

from shared.decisions import CatchUp, Overlap
from shared.job import Cron, Job
from shared.postgres import Database, Session
from tests.integration.trigger.support import DAY, claimant, decisions, job_at, states
from trigger.tick import Tick

if TYPE_CHECKING:
    from trigger.claim_outcome import Claim

MONDAY = datetime(2026, 8, 24, tzinfo=UTC)
ENDED = """
update matins.occurrence set state = 'succeeded', closed_at = claimed_at, report = '{}',
       total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
 where state = 'claimed'
"""
SEEN = """
insert into matins.instance (id, kind, host, version, message_version, tzdata_version, started_at, seen_at, jobs)
values ($1, 'trigger', 'test', '0', 1, 'test', $2, $2, $3)
on conflict (id) do update set seen_at = excluded.seen_at, jobs = excluded.jobs
"""
BERLIN = Cron("0 2 * * *", "Europe/Berlin", "next_valid", "first")


@dataclass
class Fleet:
    """Live triggers by name, and what they ran; a killed one says nothing, one that is stopped says goodbye."""

    database: Database
    session: Session
    ticks: dict[str, Tick] = field(default_factory=dict)
    ran: list[datetime] = field(default_factory=list)

    def start(self, name: str, job: Job) -> None:
        self.ticks[name] = Tick(self.database, {job.name: job}, claimant(name))

    def kill(self, name: str) -> None:
        del self.ticks[name]

    async def stop(self, name: str) -> None:
        del self.ticks[name]
        await self.session.execute("update matins.instance set stopped_at = seen_at where id = $1", name)

    async def pass_to(self, now: datetime) -> None:
        """Let everybody tick twice at an instant: what one did, the others then see."""
        # Whoever lives has said so within seconds, also while the test's clock leapt.
        beat = "update matins.instance set seen_at = $1 where id = any ($2)"
        await self.session.execute(beat, now, list(self.ticks))
        for name, tick in [*self.ticks.items(), *self.ticks.items()]:
            tick.now = now
            await tick.register_pass()
            held = {job: revision for job, revision in tick.revisions.items() if job not in tick.stale}
            await self.session.execute(SEEN, name, now, held)
            claims: list[Claim] = []
            await tick.tick_pass(claims.append)
            assert not tick.troubles
            self.ran += [one.identity.scheduled_at for one in claims]
            await self.session.execute(ENDED)

    def on(self, night: datetime) -> list[str]:
        return [f"{instant:%H:%M}" for instant in self.ran if night <= instant < night + DAY]


def at(night: datetime, clock: str) -> datetime:
    hours, minutes = clock.split(":")
    return night + timedelta(hours=int(hours), minutes=int(minutes))


# What else is decided with a policy.
PACED: dict[str, dict[str, Any]] = {"all": {"catch_up_at_most": 10, "catch_up_pace": timedelta(minutes=1)}}
MOMENTS = ("01:50", "02:00", "02:15", "02:30", "02:40")
ORDERS = [*product(combinations_with_replacement(range(5), 2), ("killed", "started first"), (False, True))]


async def replace(fleet: Fleet, number: int, after: Job, how: str, now: datetime) -> None:
    """Replace an instance: it is killed before the new one starts, or stops when that works."""
    old, new = f"{after.name} old {number}", f"{after.name} new {number}"
    if how == "started first":
        fleet.start(new, after)
        await fleet.pass_to(now)
        await fleet.stop(old)
        return
    fleet.kill(old)
    await fleet.pass_to(now + timedelta(seconds=20))
    fleet.start(new, after)


async def deploy_over_a_night(
    fleet: Fleet, before: Job, after: Job, moments: Sequence[str], order: tuple[tuple[int, int], str, bool]
) -> None:
    """Replace two instances at two of the moments of Tuesday's night; with the last of `order` an old one restarts."""
    (first, second), how, restarts = order
    for number in range(2):
        fleet.start(f"{before.name} old {number}", before)
    for clock in ("00:00", "12:00", "23:00"):
        await fleet.pass_to(at(MONDAY, clock))
    tuesday = MONDAY + DAY
    for place, clock in enumerate(moments):
        now = at(tuesday, clock)
        await fleet.pass_to(now)
        for number in [number for number, when in enumerate((first, second)) if when == place]:
            await replace(fleet, number, after, how, now)
        if restarts and place in range(first, second):
            # As a container is restarted with the image that it had.
            fleet.kill(f"{before.name} old 1")
            fleet.start(f"{before.name} old 1", before)
        await fleet.pass_to(now + timedelta(minutes=2))
    for clock in ("12:00", "23:00"):
        await fleet.pass_to(at(tuesday, clock))
    for clock in ("01:00", "02:00", "02:30", "03:00"):
        await fleet.pass_to(at(tuesday + DAY, clock))


def named(prefix: str) -> Iterator[str]:
    number = 0
    while True:
        number += 1
        yield f"{prefix}-{number}"


@pytest.mark.parametrize(("before", "after"), [("0 2 * * *", "30 2 * * *"), ("30 2 * * *", "0 2 * * *")])
async def test_a_deploy_across_both_times_runs_once_that_night_in_every_order(
    database: Database, session: Session, before: str, after: str
) -> None:
    for order, name in zip(ORDERS[::3], named("night"), strict=False):
        fleet = Fleet(database, session)
        await deploy_over_a_night(fleet, job_at(before, name=name), job_at(after, name=name), MOMENTS, order)
        assert len(fleet.on(MONDAY + DAY)) == 1, (order, fleet.ran, await states(session, name))
        assert len(fleet.on(MONDAY + 2 * DAY)) == 1, (order, fleet.ran, await states(session, name))


@pytest.mark.parametrize("catch_up", get_args(CatchUp))
@pytest.mark.parametrize("overlap", get_args(Overlap))
async def test_a_deploy_across_both_times_runs_once_under_every_policy(
    database: Database, session: Session, catch_up: str, overlap: str
) -> None:
    decided = decisions(catch_up=catch_up, overlap=overlap, **PACED.get(catch_up, {}))
    for order, name in zip(ORDERS[::12], named("night"), strict=False):
        fleet = Fleet(database, session)
        before, after = (job_at(cron, name=name, decisions=decided) for cron in ("0 2 * * *", "30 2 * * *"))
        await deploy_over_a_night(fleet, before, after, MOMENTS, order)
        assert len(fleet.on(MONDAY + DAY)) == 1, (order, fleet.ran, await states(session, name))


@pytest.mark.parametrize("catch_up", get_args(CatchUp))
async def test_a_deploy_that_changes_only_the_policies_runs_once(
    database: Database, session: Session, catch_up: str
) -> None:
    for order, name in zip(ORDERS[::12], named("night"), strict=False):
        fleet = Fleet(database, session)
        former = job_at(name=name, decisions=decisions(catch_up=catch_up, **PACED.get(catch_up, {})))
        changed = job_at(name=name, decisions=decisions(catch_up="latest", finish_within=timedelta(hours=2)))
        await deploy_over_a_night(fleet, former, changed, MOMENTS, order)
        assert fleet.on(MONDAY + DAY) == ["02:00"], (order, fleet.ran)
        assert fleet.on(MONDAY + 2 * DAY) == ["02:00"], (order, fleet.ran)


ZONES = ("00:00", "00:10", "01:00", "02:00", "02:20")


@pytest.mark.parametrize("to_utc", [True, False])
async def test_a_deploy_that_changes_the_zone_runs_once_that_night(
    database: Database, session: Session, *, to_utc: bool
) -> None:
    """02:00 in Berlin is midnight in UTC; the night begins an hour before."""
    schedules = [BERLIN, Cron("0 2 * * *")]
    for order, name in zip(ORDERS[::6], named("zone"), strict=False):
        fleet = Fleet(database, session)
        before, after = (
            dataclasses.replace(job_at(name=name), schedule=schedule) for schedule in schedules[:: 1 if to_utc else -1]
        )
        await deploy_over_a_night(fleet, before, after, ZONES, order)
        assert len(fleet.on(MONDAY + DAY)) == 1, (order, fleet.ran, await states(session, name))


@pytest.mark.parametrize(("before", "after"), [("0 2 * * 1", "0 2 * * *"), ("0 2 * * *", "0 2 * * 1")])
async def test_a_deploy_from_weekly_to_daily_and_back_runs_no_night_twice(
    database: Database, session: Session, before: str, after: str
) -> None:
    for order, name in zip(ORDERS[::6], named("weekly"), strict=False):
        fleet = Fleet(database, session)
        await deploy_over_a_night(fleet, job_at(before, name=name), job_at(after, name=name), MOMENTS, order)
        (first, _), _, restarts = order
        nights = [fleet.on(MONDAY + number * DAY) for number in range(3)]
        assert nights[0] == ["02:00"], "Monday, by either definition"
        assert all(len(night) <= 1 for night in nights), (order, nights)
        assert len(nights[2]) == (after == "0 2 * * *"), (order, nights)
        if first == 0 and not restarts:
            assert len(nights[1]) == (after == "0 2 * * *"), (order, nights)
        assert set((await states(session, name)).values()) <= {
            "succeeded",
            "expected",
            "skipped: superseded",
            "coalesced",
        }
