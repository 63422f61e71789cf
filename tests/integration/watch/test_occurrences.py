"""What is told of occurrences: not claimed, not finished, standing still, ended badly; and what is nobody's fault."""

from datetime import datetime, timedelta

import pytest

from shared.job import Job, Outside, PerAccount, hours, minutes
from shared.postgres import Database, Session
from shared.watch_progress import PROGRESS
from tests.integration.operate.night import closed_night, nightly, nothing
from tests.integration.trigger.support import claimant, decisions, end, job_at, live, planned
from tests.integration.watch.support import DUE, HOUR, LATE, MINUTE, SUBJECT, looked, open_alerts, told, watch_on
from tests.support.ledger import running_occurrence
from trigger.claim import Won, claim_due
from worker.closing import Closing

DAY = timedelta(days=1)
INVOICES = "invoice-run:2026-08-25T02:00Z"
OVERDUE = DUE + 3 * HOUR + MINUTE


async def claimed_on(session: Session, job: Job, now: datetime = DUE) -> int:
    revision = await planned(session, job, now - MINUTE)
    outcome = await claim_due(session, job, revision, claimant(), now=now)
    assert isinstance(outcome, Won)
    return outcome.claim.id


@pytest.mark.parametrize(
    "standing",
    [
        "paused_at = $1, paused_by = 'ann', pause_reason = 'move'",
        "paused_at = $1, paused_by = 'ann', pause_reason = 'move', meanwhile = 'hold'",
        "retired_at = $1, retired_by = 'ann', retire_reason = 'old'",
    ],
)
async def test_a_job_that_is_paused_or_retired_raises_nothing(
    database: Database, session: Session, standing: str
) -> None:
    watch = watch_on(database)
    await planned(session, job_at(), DUE - DAY)
    await session.execute(f"update matins.job set {standing}", DUE - HOUR)
    await looked(watch, LATE)
    assert await open_alerts(session) == []


async def test_what_a_pause_has_held_is_late_from_its_end(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await planned(session, job_at(), DUE - DAY)
    await session.execute("update matins.job set resumed_at = $1", DUE + HOUR)
    await looked(watch, DUE + HOUR + 9 * MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, DUE + HOUR + 11 * MINUTE)
    assert await open_alerts(session) == [("not_claimed", SUBJECT)]


async def test_what_waits_for_another_is_late_from_the_others_end(database: Database, session: Session) -> None:
    queueing = decisions(overlap="queue_one", finish_within=hours(9), no_progress_within=hours(9))
    job, watch = job_at("0 * * * *", decisions=queueing), watch_on(database)
    await claimed_on(session, job, DUE)
    await claim_due(session, job, 1, claimant(), now=DUE + HOUR)
    await looked(watch, LATE + HOUR)
    assert await open_alerts(session) == [], "it was made to wait"
    ended = DUE + HOUR + 30 * MINUTE
    await end(session, job, ended)
    await looked(watch, ended + 9 * MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, ended + 11 * MINUTE)
    assert await open_alerts(session) == [("not_claimed", "nightly:2026-08-25T03:00Z")]


async def test_what_is_not_finished_in_time_is_told_and_is_over_with_it(database: Database, session: Session) -> None:
    job, watch = job_at(decisions=decisions(no_progress_within=hours(9))), watch_on(database)
    await claimed_on(session, job)
    await looked(watch, DUE + 3 * HOUR)
    assert await open_alerts(session) == []
    await looked(watch, OVERDUE)
    assert await open_alerts(session) == [("not_finished", SUBJECT)]
    text = await session.fetchval("select told from matins.alert")
    assert text.startswith(f"{SUBJECT} was to be finished by 2026-08-25T05:00Z; it is claimed since 2026-08-25T02:00Z")
    await end(session, job, OVERDUE)
    await looked(watch, OVERDUE + MINUTE)
    assert await open_alerts(session) == []


async def settled(session: Session, account: str, now: datetime) -> None:
    await session.execute(
        "update matins.ledger set state = 'succeeded', finished_at = $2 where account = $1", account, now
    )


async def test_what_stands_still_is_told_until_it_gets_on(database: Database, session: Session) -> None:
    job, watch = nightly(), watch_on(database)
    await running_occurrence(session, job, ["a", "b", "c", "d"])
    for minute in (0, 5, 10):
        await looked(watch, DUE + minute * MINUTE)
    assert await open_alerts(session) == [], "ten minutes are not over"
    await looked(watch, LATE)
    assert await open_alerts(session) == [("no_progress", INVOICES)]
    await settled(session, "a", LATE)
    await looked(watch, LATE + MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, LATE + 12 * MINUTE)
    assert await open_alerts(session) == [("no_progress", INVOICES)]


async def test_what_workers_say_that_they_settle_is_progress(database: Database, session: Session) -> None:
    """In the middle of the fan-out, where no look at its ends sees it."""
    watch = watch_on(database)
    # It says so by the database's own clock.
    watch.detectors = (PROGRESS,)
    occurrence = await running_occurrence(session, nightly(), ["a", "b", "c", "d"])
    await looked(watch, DUE)
    closing = Closing(database, "worker")
    closing.touch(occurrence.id)
    await closing.tell_settled(session)
    said = await session.fetchval("select moved_at from matins.progress")
    assert said > DUE
    await looked(watch, said + 9 * MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, said + 11 * MINUTE)
    assert await open_alerts(session) == [("no_progress", INVOICES)]


async def test_reading_and_publishing_is_progress(database: Database, session: Session) -> None:
    watch = watch_on(database)
    occurrence = await claimed_on(session, job_at())
    for step, change in enumerate(
        (
            "update matins.occurrence set accounts_read = 1000 where id = $1",
            "insert into matins.publication values ($1, 500, clock_timestamp())",
            "insert into matins.publication values ($1, 1000, clock_timestamp())",
            "update matins.occurrence set accounts_read = 2000 where id = $1",
        )
    ):
        await looked(watch, DUE + 9 * step * MINUTE)
        await session.execute(change, occurrence)
    assert await open_alerts(session) == []
    await looked(watch, DUE + 36 * MINUTE)
    await session.execute("update matins.occurrence set epoch = epoch + 1, lease_until = $1", DUE + HOUR)
    await looked(watch, DUE + 47 * MINUTE)
    assert await open_alerts(session) == [("no_progress", SUBJECT)], "a takeover alone is none"


async def test_accounts_that_wait_for_their_next_try_do_not_stand_still(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await running_occurrence(session, nightly(), ["a", "b"])
    await session.execute("update matins.ledger set not_before = $1", DUE + HOUR)
    await looked(watch, DUE)
    await looked(watch, DUE + HOUR + 9 * MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, DUE + HOUR + 11 * MINUTE)
    assert await open_alerts(session) == [("no_progress", INVOICES)]


@pytest.mark.parametrize(
    ("job", "within"),
    [
        (nightly(handler=PerAccount(nothing, timeout=minutes(15))), 30),
        (nightly(handler=Outside(nothing, key_valid_for=hours(1), timeout=minutes(20))), 40),
        (nightly(decisions=decisions(no_progress_within=minutes(3))), 3),
    ],
    ids=["long handler", "longer handler", "as declared"],
)
async def test_how_long_it_may_stand_still_is_the_jobs(
    database: Database, session: Session, job: Job, within: int
) -> None:
    watch = watch_on(database)
    await running_occurrence(session, job, ["a"])
    await looked(watch, DUE)
    await looked(watch, DUE + within * MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, DUE + within * MINUTE + MINUTE)
    assert await open_alerts(session) == [("no_progress", INVOICES)]


async def test_what_is_over_is_forgotten(database: Database, session: Session) -> None:
    job, watch = nightly(), watch_on(database)
    await running_occurrence(session, job, ["a"])
    await looked(watch, DUE)
    assert await session.fetchval("select count(*) from matins.progress") == 1
    await end(session, job, DUE)
    await looked(watch, DUE + MINUTE)
    assert await session.fetchval("select count(*) from matins.progress") == 0


async def rerun_to(session: Session, state: str) -> None:
    """Run the occurrence once more, to an end."""
    await session.execute("update matins.occurrence set generation = generation + 1, state = 'running'")
    await session.execute("update matins.occurrence set state = $1, closed_at = $2", state, OVERDUE)


async def acknowledge(session: Session) -> None:
    await session.execute(
        """update matins.alert set acknowledged_at = clock_timestamp(), acknowledged_by = 'ann',
                  acknowledge_reason = 'known' where closed_at is null"""
    )


async def test_what_ended_badly_is_told_until_it_is_mended(database: Database, session: Session) -> None:
    watch = watch_on(database)
    _, closed = await closed_night(session)
    await looked(watch, OVERDUE)
    assert await open_alerts(session) == [(closed.state, INVOICES)]
    text = await session.fetchval("select told from matins.alert")
    assert text == f"{INVOICES} is partial: 4 of 5 accounts did not succeed"
    await session.execute("update matins.occurrence set generation = 2, state = 'running', closed_at = null")
    await looked(watch, OVERDUE + MINUTE)
    assert ("partial", INVOICES) in await open_alerts(session), "it is run again, and nobody knows how that ends"
    await rerun_to(session, "succeeded")
    await looked(watch, OVERDUE + 2 * MINUTE)
    assert await open_alerts(session) == []
    assert await told(session) == [("opened", "partial", INVOICES), ("closed", "partial", INVOICES)]


async def test_acknowledged_it_is_over_and_told_anew_when_it_ends_so_again(
    database: Database, session: Session
) -> None:
    watch = watch_on(database)
    await closed_night(session)
    await looked(watch, OVERDUE)
    await acknowledge(session)
    for minute in range(1, 4):
        await looked(watch, OVERDUE + minute * MINUTE)
    assert await open_alerts(session) == []
    await rerun_to(session, "partial")
    await looked(watch, OVERDUE + 5 * MINUTE)
    assert await open_alerts(session) == [("partial", INVOICES)]
    await rerun_to(session, "partial")
    await looked(watch, OVERDUE + 6 * MINUTE)
    assert [event for event, *_ in await told(session)] == ["opened", "closed", "opened", "closed", "opened"]


async def test_another_bad_end_takes_the_place_of_the_first(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await closed_night(session)
    await looked(watch, OVERDUE)
    await rerun_to(session, "failed")
    await looked(watch, OVERDUE + MINUTE)
    assert await open_alerts(session) == [("failed", INVOICES)]


async def test_what_was_missed_is_told_however_long_ago_in_the_last_days(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await planned(session, job_at(), DUE - 9 * DAY)
    await session.execute(
        """update matins.occurrence set state = 'missed', reason = 'not claimed within catch_up_within'
            where scheduled_at < $1""",
        DUE - 7 * DAY,
    )
    await looked(watch, DUE + HOUR)
    missed = [subject for kind, subject in await open_alerts(session) if kind == "missed"]
    assert missed == ["nightly:2026-08-17T02:00Z"]
    await looked(watch, DUE + 40 * DAY)
    assert ("missed", missed[0]) in await open_alerts(session), "it stays until somebody has seen to it"
    await session.execute("update matins.job set retired_at = $1, retired_by = 'ann', retire_reason = 'old'", DUE)
    await looked(watch, DUE + 41 * DAY)
    assert await open_alerts(session) == []


async def test_a_detector_that_fails_stops_no_other_and_closes_nothing(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await planned(session, job_at(), DUE - DAY)
    await live(session, "one")
    await looked(watch, LATE)
    before = await open_alerts(session)
    await session.execute(
        """update matins.job set definition = jsonb_set(definition, '{decisions,start_within}', '"soon"')"""
    )
    await closed_night(session)
    await looked(watch, LATE + MINUTE)
    assert "starts: InvalidTextRepresentationError" in (watch.problem() or "")
    assert set(await open_alerts(session)) == {*before, ("partial", INVOICES)}
    await session.execute(
        """update matins.job set definition = jsonb_set(definition, '{decisions,start_within}', '600')"""
    )
    await session.execute("delete from matins.comparison")
    await looked(watch, LATE + 2 * MINUTE)
    assert watch.problem() is None
