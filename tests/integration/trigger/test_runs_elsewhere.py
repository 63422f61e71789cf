"""What runs elsewhere and never checks in: written ahead like any other, claimed by nobody, and missed in the end."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from schemas.occurrence import Identity
from shared.definition import definition_of
from shared.job import Cron, Job, RunsElsewhere, hours, minutes
from shared.postgres import Database, Session
from shared.terminal import Refused
from tests.integration.operate.night import ORDER
from tests.integration.trigger.support import DAY, DUE, HOUR, MINUTE, attempts, claimant, job_at, live, planned, states
from tests.integration.trigger.sweeps import sweeping
from trigger.ad_hoc import fire_ad_hoc
from trigger.attempting import attempted_now
from trigger.backfill import Range, backfill
from trigger.check_in import CheckIn, check_in
from trigger.claim import Nothing, claim_due
from trigger.claim_outcome import Foreign
from trigger.doctor_database import Looked
from trigger.doctor_fleet import check_fleet
from trigger.fan_out import take_over
from trigger.leader import Leadership
from trigger.operate import cancel, fire
from trigger.outside_call import Call, Declined, answer
from trigger.pauses import pause, resume, retire, unretire
from trigger.sweep import sweep_pass, undeclared_jobs
from trigger.tick import Tick

HEARD_WITHIN = 20 * HOUR


def elsewhere(cron: str = "0 2 * * *", **bounds: Any) -> Job:
    usual = {"start_within": minutes(10), "finish_within": hours(1), "heard_within": hours(20)}
    return RunsElsewhere("nightly", Cron(cron), **usual | bounds)


async def noticed(session: Session, job: Job, now: datetime) -> bool:
    """Tell whether a trigger's pass has anything to do with the job."""
    found = await attempted_now(session, {job.name: job}, claimant(), Leadership("one", HOUR), now=now)
    return job.name in found


async def passed(session: Session, job: Job, revision: int, now: datetime) -> dict[str, str]:
    """Do what a trigger's pass does, and give the states."""
    if await noticed(session, job, now):
        assert await claim_due(session, job, revision, claimant(), now=now) == Nothing()
    return await states(session)


async def test_its_instants_are_written_ahead_and_no_trigger_claims_them(session: Session) -> None:
    await live(session, "one")
    job = elsewhere()
    revision = await planned(session, job, DUE - DAY)
    for now in (DUE, DUE + HOUR, DUE + HEARD_WITHIN):
        assert (await passed(session, job, revision, now))["25 02:00"] == "expected"
    row = await session.fetchrow("select * from matins.occurrence where scheduled_at = $1", DUE)
    assert row is not None
    assert row["due_at"] == DUE
    assert await attempts(session) == []
    assert await session.fetchval("select count(*) from matins.ledger") == 0


async def test_what_is_not_heard_of_was_missed(session: Session) -> None:
    job = elsewhere()
    revision = await planned(session, job, DUE - DAY)
    now = DUE + HEARD_WITHIN + MINUTE
    assert (await passed(session, job, revision, now))["25 02:00"] == "missed"
    reason = await session.fetchval("select reason from matins.occurrence where scheduled_at = $1", DUE)
    assert reason == "no check-in within heard_within"
    assert not await noticed(session, job, now), "it is decided"


async def test_each_of_many_missed_instants_is_missed_by_itself(session: Session) -> None:
    job = elsewhere("*/10 * * * *", heard_within=hours(2))
    revision = await planned(session, job, DUE)
    # Somebody ran the last of them: that has covered nobody else's time.
    await session.execute(
        """update matins.occurrence set state = 'claimed', claimed_at = $1, opened_at = $1, epoch = 1
            where scheduled_at = $1""",
        DUE + HOUR,
    )
    assert not await noticed(session, job, DUE + HOUR)
    found = await passed(session, job, revision, DUE + 2 * HOUR + 31 * MINUTE)
    assert [found[f"25 02:{minute}0"] for minute in range(1, 6)] == ["missed"] * 3 + ["expected"] * 2


async def test_what_falls_due_while_it_is_paused_is_skipped_and_nothing_can_be_held(session: Session) -> None:
    job = elsewhere()
    revision = await planned(session, job, DUE - DAY)
    with pytest.raises(Refused, match="nightly runs elsewhere, so that nothing of it can wait; only skip"):
        await pause(session, job.name, ORDER, "hold", now=DUE - HOUR)
    await pause(session, job.name, ORDER, now=DUE - HOUR)
    assert (await passed(session, job, revision, DUE + MINUTE))["25 02:00"] == "skipped: paused"
    await resume(session, job.name, ORDER, now=DUE + HOUR)
    assert (await passed(session, job, revision, DUE + DAY))["26 02:00"] == "expected"


async def test_a_retired_one_is_expected_no_more_and_can_come_back(session: Session) -> None:
    job = elsewhere()
    await planned(session, job, DUE - DAY)
    await retire(session, job.name, ORDER, now=DUE - HOUR)
    assert (await states(session))["25 02:00"] == "skipped: retired"
    await unretire(session, job.name, ORDER, now=DUE - MINUTE)
    assert (await states(session))["25 02:00"] == "expected"


async def test_one_that_is_not_to_be_waited_for_can_be_cancelled(session: Session) -> None:
    job = elsewhere()
    await planned(session, job, DUE - DAY)
    _, state = await cancel(session, Identity(job.name, DUE), ORDER, now=DUE)
    assert state == "skipped"


async def test_nothing_of_it_is_fired_made_up_for_or_called(session: Session) -> None:
    job = elsewhere()
    await planned(session, job, DUE - DAY)
    assert await fire(session, Identity(job.name, DUE), ORDER, now=DUE) == Foreign()
    with pytest.raises(Refused, match="runs elsewhere: there is nothing to run beside it here"):
        await fire_ad_hoc(session, job.name, ORDER, None, None, now=DUE)
    with pytest.raises(Refused, match="runs elsewhere: what was not run is to be made up for there"):
        await backfill(session, job.name, Range(DUE - DAY, DUE), ORDER, now=DUE)
    declined = await answer(session, Call("cron", job.name, "token", DUE), claimant(), now=DUE)
    assert isinstance(declined, Declined)
    assert declined.outcome == "elsewhere"
    assert (await states(session))["25 02:00"] == "expected"


async def test_what_has_started_is_left_alone_by_every_sweep_also_of_a_release_that_knows_no_such_job(
    database: Database, session: Session
) -> None:
    job = elsewhere()
    await planned(session, job, DUE - DAY)
    await check_in(session, CheckIn(job.name, "start", "cron", "key", "one"), now=DUE)
    await session.execute("update matins.occurrence set claimed_by = 'gone' where claimed_at is not null")
    late = DUE + 10 * DAY
    (found,) = await undeclared_jobs(session, [])
    assert found == (job.name, None)
    swept = await sweep_pass(sweeping(database, job, now=late))
    other = replace(sweeping(database, job, now=late), queue=None, holder="two")
    for done in (swept, await sweep_pass(other)):
        assert (done.expired, done.lost, done.cancelled, done.closed) == (0, 0, 0, 0)
    assert await take_over(session, [job.name], claimant(), now=late) is None
    assert (await states(session))["25 02:00"] == "claimed"


async def test_a_triggers_pass_closes_what_fell_silent_also_of_a_job_that_it_does_not_declare(
    database: Database, session: Session
) -> None:
    job = elsewhere()
    await planned(session, job, DUE - DAY)
    await check_in(session, CheckIn(job.name, "start", "cron", "key", "one"), now=DUE)
    tick = Tick(database, {}, claimant(), now=DUE + HEARD_WITHIN + MINUTE)
    await tick.tick_pass(lambda _claim: None)
    assert (await states(session))["25 02:00"] == "failed"


async def test_a_triggers_passes_record_what_never_checked_in(database: Database, session: Session) -> None:
    job = elsewhere()
    await planned(session, job, DUE - DAY)
    tick = Tick(database, {job.name: job}, claimant(), now=DUE + HEARD_WITHIN + MINUTE)
    await tick.register_pass()
    await tick.tick_pass(lambda _claim: None)
    assert (await states(session))["25 02:00"] == "missed"
    assert tick.troubles == {}


def test_the_doctor_asks_no_worker_for_its_code() -> None:
    looked, job = Looked(), elsewhere()
    looked.instances = [{"kind": "worker", "id": "one", "jobs": {}, "version": "0", "tzdata_version": "0"}]
    looked.jobs = [{"name": job.name, "revision": 1, "definition": definition_of(job)}]
    assert [one for one in check_fleet(looked, {job.name: job}) if one.check == "handlers"] == []


async def test_a_job_can_become_one_and_cease_to_be(session: Session) -> None:
    ours, foreign = job_at(), elsewhere()
    await planned(session, ours, DUE - DAY)
    revision = await planned(session, foreign, DUE - HOUR)
    assert revision == 2
    assert (await passed(session, foreign, revision, DUE + MINUTE))["25 02:00"] == "expected"
    assert await planned(session, ours, DUE + MINUTE) == 3
    assert (await states(session))["25 02:00"] == "expected", "the schedule is the same, and so is the night"
