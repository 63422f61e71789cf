"""The watch of what runs elsewhere: silence is told once, and is over by itself when it checks in after all."""

from datetime import datetime
from typing import Any

from shared.job import Cron, Job, RunsElsewhere, hours, minutes
from shared.postgres import Database, Session
from tests.integration.trigger.support import DAY, claimant, live, planned
from tests.integration.watch.support import DUE, HOUR, LATE, MINUTE, SUBJECT, looked, open_alerts, told, watch_on
from trigger.check_in import CheckIn, check_in, close_silent
from trigger.claim import claim_due

FOREIGN: Job = RunsElsewhere(
    "nightly", Cron("0 2 * * *"), start_within=minutes(10), finish_within=hours(1), heard_within=hours(20)
)


async def reported(session: Session, event: Any, now: datetime) -> None:
    await check_in(session, CheckIn("nightly", event, "cron", "key 0123abcd", "one"), now=now)


async def test_what_does_not_check_in_raises_one_alert_whoever_looks(database: Database, session: Session) -> None:
    await live(session, "one")
    await planned(session, FOREIGN, DUE - DAY)
    await looked(watch_on(database), DUE + 10 * MINUTE)
    assert await open_alerts(session) == []
    for instance in ("watcher", "another", "watcher"):
        await looked(watch_on(database, instance), LATE)
    assert await open_alerts(session) == [("not_claimed", SUBJECT)]
    assert await told(session) == [("opened", "not_claimed", SUBJECT)]
    summary = await session.fetchval("select told from matins.alert")
    assert "was to check in within 10m; it has not" in summary


async def test_a_late_start_closes_it_and_a_silent_run_raises_the_next(database: Database, session: Session) -> None:
    await live(session, "one")
    await planned(session, FOREIGN, DUE - DAY)
    await looked(watch_on(database), LATE)
    await reported(session, "start", LATE)
    await looked(watch_on(database), LATE + MINUTE)
    assert await open_alerts(session) == []
    over = LATE + HOUR + MINUTE
    for _ in range(2):
        await looked(watch_on(database), over)
    assert await open_alerts(session) == [("not_finished", SUBJECT)]
    await reported(session, "success", over + MINUTE)
    await looked(watch_on(database), over + 2 * MINUTE)
    assert await open_alerts(session) == []


async def test_what_is_given_up_is_told_as_missed_or_failed_until_it_is_mended(
    database: Database, session: Session
) -> None:
    await live(session, "one")
    revision = await planned(session, FOREIGN, DUE - DAY)
    await planned(session, FOREIGN, DUE)
    await reported(session, "start", DUE + MINUTE)
    given_up = DUE + 20 * HOUR + MINUTE
    assert await close_silent(session, "one", now=given_up) == 1
    await looked(watch_on(database), given_up)
    assert await open_alerts(session) == [("failed", SUBJECT)]
    await check_in(
        session, CheckIn("nightly", "success", "cron", "key", "one", scheduled_at=DUE), now=given_up + MINUTE
    )
    await claim_due(session, FOREIGN, revision, claimant(), now=given_up + DAY)
    await looked(watch_on(database), given_up + DAY)
    assert await open_alerts(session) == [("missed", "nightly:2026-08-26T02:00Z")]
