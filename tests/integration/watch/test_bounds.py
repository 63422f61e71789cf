"""What keeps a bad night from being a thousand messages, and a look from being in anybody's way."""

from datetime import timedelta

import anyio
import pytest

from shared.postgres import Database, Session
from shared.watch_progress import NOTE_PROGRESS, PROGRESS
from shared.watch_starts import MOST_OF_A_JOB
from tests.integration.operate.night import nightly
from tests.integration.trigger.support import job_at, planned
from tests.integration.watch.support import DUE, HOUR, LATE, MINUTE, REPEAT, looked, open_alerts, told, watch_on
from tests.support.ledger import running_occurrence
from trigger.fan_out import TAKE_OVER
from trigger.operate import LOCK_OCCURRENCE
from worker.closing import Closing

DAY = timedelta(days=1)


async def test_of_a_job_that_is_due_each_minute_an_outage_tells_the_first_few(
    database: Database, session: Session
) -> None:
    watch = watch_on(database)
    await planned(session, job_at("* * * * *", name="often"), DUE - HOUR)
    await planned(session, job_at(), DUE - HOUR)
    await looked(watch, DUE + 2 * HOUR)
    opened = [subject for kind, subject in await open_alerts(session) if kind == "not_claimed"]
    often = [subject for subject in opened if subject.startswith("often:")]
    assert (len(often), often[0]) == (MOST_OF_A_JOB, "often:2026-08-25T01:01Z")
    assert set(opened) - set(often) == {"nightly:2026-08-25T02:00Z"}
    await looked(watch, DUE + 3 * HOUR)
    assert len(await open_alerts(session)) == MOST_OF_A_JOB + 1, "those that stand keep their place"


async def test_of_several_of_one_job_the_latest_is_told_again(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await planned(session, job_at("0 2,3 * * *"), DUE - HOUR)
    await planned(session, job_at(name="other"), DUE - HOUR)
    await looked(watch, LATE + HOUR)
    assert len(await told(session)) == 3
    await session.execute("delete from matins.notification")
    await looked(watch, LATE + HOUR + REPEAT)
    again = {subject for _, _, subject in await told(session)}
    assert again == {"nightly:2026-08-25T03:00Z", "other:2026-08-25T02:00Z"}
    await session.execute("delete from matins.notification")
    await session.execute(
        """update matins.alert set acknowledged_at = $1, acknowledged_by = 'ann', acknowledge_reason = 'known'
            where subject = 'nightly:2026-08-25T03:00Z'""",
        LATE + 6 * HOUR,
    )
    await looked(watch, LATE + 6 * HOUR)
    assert await told(session) == [], "it has its rhythm still"
    await looked(watch, LATE + HOUR + 2 * REPEAT)
    assert "nightly:2026-08-25T02:00Z" in {subject for _, _, subject in await told(session)}


async def test_an_alert_of_a_kind_that_a_later_release_knows_is_left_to_that(
    database: Database, session: Session
) -> None:
    await session.execute(
        """insert into matins.alert (kind, subject, told, opened_at, opened_by, notices, next_notice_at)
           values ('of_a_later_release', 'x', 'x', $1, 'later', 0, $1)""",
        DUE,
    )
    await looked(watch_on(database), LATE)
    assert await told(session) == []
    assert await open_alerts(session) == [("of_a_later_release", "x")]


async def test_what_a_hold_has_stopped_stands_still_from_its_end(database: Database, session: Session) -> None:
    watch = watch_on(database)
    watch.detectors = (PROGRESS,)
    await running_occurrence(session, nightly(), ["a"])
    await session.execute("insert into matins.environment (name) values ('test') on conflict do nothing")
    await looked(watch, DUE)
    await session.execute("update matins.environment set held_since = $1, held_reason = 'restored'", DUE)
    await session.execute("update matins.watch set looked_at = null")
    assert await watch.watch_pass(DUE + HOUR) is None
    await session.execute("update matins.environment set held_since = null, held_reason = null")
    await looked(watch, DUE + HOUR + MINUTE)
    assert await open_alerts(session) == []
    await looked(watch, DUE + HOUR + 11 * MINUTE)
    assert [kind for kind, _ in await open_alerts(session)] == ["no_progress"]


async def test_a_frozen_look_keeps_no_workers_sign_of_life_waiting_and_nothing_is_lost(
    database: Database, session: Session, other_session: Session
) -> None:
    occurrence = await running_occurrence(session, nightly(), ["a", "b", "c"])
    await session.execute(NOTE_PROGRESS, DUE)
    closing = Closing(database, "worker")
    closing.touch(occurrence.id)
    async with other_session.transaction():
        await other_session.execute(NOTE_PROGRESS, DUE + MINUTE)
        with anyio.fail_after(10):
            await closing.tell_settled(session)
    assert await session.fetchval("select moved_at from matins.progress") == DUE
    await closing.tell_settled(session)
    assert await session.fetchval("select moved_at from matins.progress") > DUE


@pytest.mark.parametrize("act", ["take_over", "lock_occurrence"])
async def test_an_alert_that_is_being_opened_keeps_nobody_from_its_occurrence(
    session: Session, other_session: Session, act: str
) -> None:
    """What the alert's foreign key locks, until the look is over, is no more than that the occurrence stays."""
    job = nightly()
    occurrence = await running_occurrence(session, job, ["a"])
    await session.execute(
        "update matins.occurrence set state = 'claimed', sealed_at = null, lease_until = $1", DUE - MINUTE
    )
    async with other_session.transaction():
        await other_session.execute(
            """insert into matins.alert (kind, subject, occurrence_id, told, opened_by)
               values ('not_finished', 'x', $1, 'x', 'frozen')""",
            occurrence.id,
        )
        with anyio.fail_after(10):
            if act == "take_over":
                row = await session.fetchrow(TAKE_OVER, [job.name], "other", HOUR, 5, DUE)
            else:
                row = await session.fetchrow(LOCK_OCCURRENCE, job.name, DUE, "", DUE)
    assert row is not None
