"""Leading: one trigger attempts while it gets on; the lead is a row with a time, and the claim beneath decides."""

from datetime import datetime, timedelta

import anyio

from shared.job import Job
from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    LEASE,
    MINUTE,
    attempts,
    claimant,
    decisions,
    job_at,
    live,
    planned,
)
from trigger.attempting import attempted_now
from trigger.claim import Won, claim_due
from trigger.leader import Leadership
from trigger.tick import Tick

SECOND = timedelta(seconds=1)
JOBS = ["nightly"]


def leadership(name: str) -> Leadership:
    return Leadership(name, LEASE)


async def leads(one: Leadership, session: Session, now: datetime) -> bool:
    """Make a pass that ends well, and tell whether it led."""
    led = await one.lead(session, JOBS, now=now)
    one.passed()
    return led == frozenset(JOBS)


async def test_one_leads_for_as_long_as_its_passes_end_well(session: Session) -> None:
    first, second = leadership("one"), leadership("two")
    for seconds in range(0, 300, 10):
        assert await leads(first, session, DUE + seconds * SECOND)
        assert not await leads(second, session, DUE + seconds * SECOND)
    assert first.led == {"nightly": 1}


async def test_a_pass_that_does_not_end_well_is_the_last_that_renews(session: Session) -> None:
    first, second = leadership("one"), leadership("two")
    for seconds in range(0, 31, 2):
        assert await first.lead(session, JOBS, now=DUE + seconds * SECOND), "its lead lasts until it runs out"
        assert not await leads(second, session, DUE + seconds * SECOND)
    assert not await first.lead(session, JOBS, now=DUE + LEASE + SECOND), "whoever asks first, it comes last"
    assert await leads(second, session, DUE + LEASE + SECOND)
    first.passed()
    assert not await leads(first, session, DUE + LEASE + 2 * SECOND)
    assert second.led == {"nightly": 2}, "a new leader is a new epoch"


async def test_a_pass_that_ends_well_after_one_that_did_not_keeps_the_lead(session: Session) -> None:
    first = leadership("one")
    await first.lead(session, JOBS, now=DUE)
    assert await leads(first, session, DUE + 20 * SECOND)
    assert await leads(first, session, DUE + 21 * SECOND)
    assert await leads(first, session, DUE + 50 * SECOND)
    assert first.led == {"nightly": 1}


async def test_trouble_with_one_job_costs_the_lead_of_that_job_alone(session: Session) -> None:
    first, second, both = leadership("one"), leadership("two"), ["good", "nightly"]
    for seconds in range(0, 40, 5):
        await first.lead(session, both, now=DUE + seconds * SECOND)
        first.passed({"nightly"})
    assert first.led.keys() == {"good"}
    assert await second.lead(session, both, now=DUE + 36 * SECOND) == {"nightly"}


async def test_alone_it_leads_again_at_the_second_pass_after_its_lead_ran_out(session: Session) -> None:
    first = leadership("one")
    await first.lead(session, JOBS, now=DUE)
    assert not await leads(first, session, DUE + LEASE + SECOND)
    assert await leads(first, session, DUE + LEASE + 2 * SECOND)


async def test_what_is_given_back_is_led_by_the_next_that_asks(session: Session) -> None:
    first, second = leadership("one"), leadership("two")
    assert await leads(first, session, DUE)
    await first.resign(session, now=DUE + SECOND)
    assert await leads(second, session, DUE + SECOND)
    assert second.led == {"nightly": 2}
    await first.resign(session, now=DUE + SECOND)
    assert await leads(second, session, DUE + 2 * SECOND), "what another leads by now is not given back"


async def test_a_job_that_it_may_no_longer_claim_is_given_back(session: Session) -> None:
    first, second = leadership("one"), leadership("two")
    assert await first.lead(session, ["nightly", "other"], now=DUE) == {"nightly", "other"}
    assert await first.lead(session, ["other"], now=DUE + SECOND) == {"other"}
    assert await second.lead(session, ["nightly", "other"], now=DUE + SECOND) == {"nightly"}


async def test_of_eight_that_ask_at_once_one_leads_a_hundred_times(database: Database) -> None:
    for number in range(100):
        now = DUE + number * (LEASE + SECOND)
        found: list[frozenset[str]] = []

        async def ask(name: str, now: datetime = now, found: list[frozenset[str]] = found) -> None:
            async with database.session() as session:
                found.append(await leadership(name).lead(session, ["first", "second"], now=now))

        async with anyio.create_task_group() as group:
            for name in range(8):
                group.start_soon(ask, f"t{name}")
        assert sorted(job for led in found for job in led) == ["first", "second"]


async def passes(session: Session, job: Job, by: dict[str, Leadership], now: datetime) -> list[str]:
    """Let each trigger make its pass, and give who claimed."""
    won = []
    for name, one in by.items():
        for due in await attempted_now(session, {job.name: job}, claimant(name), one, now=now):
            assert due == job.name
            if isinstance(await claim_due(session, job, 1, claimant(name), now=now), Won):
                won.append(name)
        one.passed()
    return won


async def finish(session: Session) -> None:
    await session.execute(
        """update matins.occurrence set state = 'succeeded', closed_at = claimed_at, report = '{}',
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where state = 'claimed'"""
    )


async def test_of_three_triggers_only_the_leader_attempts(session: Session) -> None:
    job = job_at("* * * * *", coordination="leader", decisions=decisions(catch_up_within=HOUR))
    by = {name: leadership(name) for name in ("one", "two", "three")}
    await live(session, *by)
    await planned(session, job, DUE)
    for minute in range(1, 11):
        # Between two instants the lead is renewed, as each tick does.
        for seconds in (0, 20, 40):
            won = await passes(session, job, by, DUE + minute * MINUTE + seconds * SECOND)
            assert won == (["one"] if seconds == 0 else [])
        await finish(session)
    assert await attempts(session) == [("one", True)] * 10
    await by["one"].resign(session, now=DUE + 11 * MINUTE)
    del by["one"]
    assert await passes(session, job, by, DUE + 11 * MINUTE) == ["two"]
    assert (await attempts(session))[10:] == [("two", True)], "what its predecessor has claimed it does not attempt"


async def test_two_that_take_themselves_for_the_leader_claim_once(database: Database, session: Session) -> None:
    job = job_at(coordination="leader")
    await live(session, "one", "two")
    await planned(session, job, DUE - DAY)
    frozen, second = leadership("one"), leadership("two")
    late = DUE + LEASE + SECOND
    assert await attempted_now(session, {job.name: job}, claimant("one"), frozen, now=DUE) == {"nightly"}
    assert await attempted_now(session, {job.name: job}, claimant("two"), second, now=late) == {"nightly"}
    won: list[str] = []

    async def claim(name: str) -> None:
        async with database.session() as own:
            if isinstance(await claim_due(own, job, 1, claimant(name), now=late), Won):
                won.append(name)

    async with anyio.create_task_group() as group:
        group.start_soon(claim, "one")
        group.start_soon(claim, "two")
    assert len(won) == 1
    assert await session.fetchval("select count(*) from matins.audit where kind = 'claim'") == 1


async def test_a_tick_that_gets_nowhere_with_a_job_does_not_renew_its_lead(
    database: Database, session: Session
) -> None:
    job = job_at(coordination="leader")
    tick = Tick(database, {job.name: job}, claimant("one"))
    await tick.register_pass()
    await tick.tick_pass(lambda _: None)
    first = await session.fetchval("select until from matins.lease")
    await tick.tick_pass(lambda _: None)
    second = await session.fetchval("select until from matins.lease")
    assert second > first, "renewed by the pass"
    await session.execute("alter table matins.attempt add constraint nobody_wins check (not won)")
    await session.execute(
        """insert into matins.occurrence (job, scheduled_at, revision, window_since, window_until, tzdata_version)
           values ('nightly', date_trunc('second', clock_timestamp()), 1, clock_timestamp(), clock_timestamp(), '')"""
    )
    await tick.tick_pass(lambda _: None)
    third = await session.fetchval("select until from matins.lease")
    assert third > second, "the pass before had ended well"
    for _ in range(3):
        await tick.tick_pass(lambda _: None)
    assert await session.fetchval("select until from matins.lease") == third
    assert "nightly" in tick.troubles
    await session.execute("alter table matins.attempt drop constraint nobody_wins")
    for _ in range(2):
        await tick.tick_pass(lambda _: None)
    assert await session.fetchval("select until from matins.lease") > third
    await tick.resign()
    assert await session.fetchval("select until < clock_timestamp() from matins.lease")
