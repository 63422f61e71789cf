"""One alert whoever sees it first: opened, told, told again, closed; and what planned work and people change of it."""

import random
from datetime import timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from shared.postgres import Database, Session
from shared.watch import Finding
from shared.watch_alerts import Alerts
from tests.integration.trigger.support import claimant, end, job_at, live, planned
from tests.integration.watch.support import (
    DUE,
    HOUR,
    LATE,
    MINUTE,
    PASS,
    REPEAT,
    SUBJECT,
    looked,
    open_alerts,
    told,
    watch_on,
)
from trigger.claim import Won, claim_due

LATE_ALERT = ("not_claimed", SUBJECT)
NIGHTLY = job_at()


@pytest.fixture(autouse=True)
async def nightly(session: Session) -> None:
    """A job that was planned a day ahead and that nobody claims."""
    await session.execute("insert into matins.environment (name) values ('test') on conflict do nothing")
    await planned(session, NIGHTLY, DUE - timedelta(days=1))


async def let_others(turns: int) -> None:
    """Let the other tasks go first some times."""
    for _ in range(turns):
        await anyio.lowlevel.checkpoint()


async def claim(session: Session) -> None:
    assert isinstance(await claim_due(session, NIGHTLY, 1, claimant(), now=LATE), Won)


async def test_what_nobody_claims_is_told_once_and_again_in_its_rhythm(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await looked(watch, LATE - MINUTE)
    assert await open_alerts(session) == [], "it may be claimed until then"
    for minutes in range(5):
        await looked(watch, LATE + minutes * MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT)]
    await looked(watch, LATE + REPEAT)
    await looked(watch, LATE + REPEAT + MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT), ("repeated", *LATE_ALERT)]


async def test_a_notice_says_all_that_a_message_needs(database: Database, session: Session) -> None:
    await looked(watch_on(database), LATE)
    body: dict[str, Any] = await session.fetchval("select body from matins.notification")
    assert body["told"] == (
        f"{SUBJECT} was due at 2026-08-25T02:00Z and was to be claimed within 10m; nobody has, and no trigger lives"
    )
    assert (body["environment"], body["severity"], body["job"], body["event"]) == (
        "test",
        "critical",
        "nightly",
        "opened",
    )
    assert body["more"] == f"python -m trigger show {SUBJECT}"
    assert body["runbook"] == "docs/runbook.md#not_claimed"
    assert "whether a trigger lives" in body["advice"]
    assert (body["opened_at"], body["at"]) == (LATE.isoformat(), LATE.isoformat())


async def test_told_again_it_says_what_is_known_now(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await live(session, "one")
    await looked(watch, LATE + MINUTE)
    await looked(watch, LATE + REPEAT)
    texts = await session.fetch("select body ->> 'told' as told from matins.notification order by id")
    assert [row["told"].rpartition(", and ")[2] for row in texts] == ["no trigger lives", "1 trigger lives"]


async def test_an_alert_closes_itself_and_both_are_in_the_audit_trail(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await claim(session)
    await looked(watch, LATE + MINUTE)
    assert await open_alerts(session) == []
    assert await told(session) == [("opened", *LATE_ALERT), ("closed", *LATE_ALERT)]
    audited = await session.fetch(
        "select kind, instance, detail from matins.audit where kind like 'alert%' order by id"
    )
    assert [(row["kind"], row["instance"]) for row in audited] == [
        ("alert_opened", "watcher"),
        ("alert_closed", "watcher"),
    ]
    assert audited[0]["detail"]["subject"] == SUBJECT


@pytest.mark.parametrize("seed", range(8))
async def test_ten_that_look_at_once_open_one_alert_and_tell_once(
    database: Database, session: Session, seed: int
) -> None:
    order = random.Random(seed)  # noqa: S311 - the order of a test's tasks

    async def look(name: str, turns: int) -> None:
        await let_others(turns)
        watch = watch_on(database, name)
        watch.interval = timedelta(0)
        await watch.watch_pass(LATE)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(look, f"watcher {number}", order.randrange(30))
    assert await open_alerts(session) == [LATE_ALERT]
    assert await told(session) == [("opened", *LATE_ALERT)]


@pytest.mark.parametrize("seed", range(8))
async def test_ten_transactions_that_raise_the_same_open_one_alert(
    database: Database, session: Session, seed: int
) -> None:
    """The turn is economy: without it the index and the guards decide."""
    order = random.Random(seed)  # noqa: S311 - the order of a test's tasks
    opened: list[str] = []

    async def apply(name: str, turns: int) -> None:
        await let_others(turns)
        async with database.transaction() as own:
            alerts = Alerts("test", name, REPEAT)
            finding = Finding("not_claimed", SUBJECT, "It was due.", "nightly")
            raised = await alerts.apply(own, [finding], {"not_claimed"}, now=LATE)
            opened.extend(row["subject"] for row in raised.opened)

    async with anyio.create_task_group() as group:
        for number in range(10):
            group.start_soon(apply, f"watcher {number}", order.randrange(30))
    assert opened == [SUBJECT]
    assert await told(session) == [("opened", *LATE_ALERT)]


async def test_acknowledged_it_is_not_told_again_and_stays_open(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await session.execute(
        "update matins.alert set acknowledged_at = $1, acknowledged_by = 'ann', acknowledge_reason = 'known'", LATE
    )
    await looked(watch, LATE + REPEAT)
    assert await open_alerts(session) == [LATE_ALERT]
    assert await told(session) == [("opened", *LATE_ALERT)]


@pytest.mark.parametrize("silence", [HOUR, 6 * HOUR], ids=["shorter than the rhythm", "longer"])
async def test_silenced_it_is_told_again_when_the_silence_is_over(
    database: Database, session: Session, silence: timedelta
) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await session.execute(
        "update matins.alert set silenced_until = $1, silenced_by = 'ann', silence_reason = 'at it'", LATE + silence
    )
    await looked(watch, LATE + silence - MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT)]
    for minutes in range(3):
        await looked(watch, LATE + silence + minutes * MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT), ("repeated", *LATE_ALERT)]


@pytest.mark.parametrize("job", ["nightly", None], ids=["of the job", "of all"])
async def test_planned_work_is_told_of_when_it_is_over_if_it_still_stands(
    database: Database, session: Session, job: str | None
) -> None:
    watch = watch_on(database)
    await session.execute(
        "insert into matins.maintenance (job, since, until, actor, reason) values ($1, $2, $3, 'ann', 'move')",
        job,
        DUE,
        DUE + HOUR,
    )
    await looked(watch, LATE)
    assert await open_alerts(session) == [LATE_ALERT]
    assert await told(session) == []
    await looked(watch, DUE + HOUR)
    assert await told(session) == [("opened", *LATE_ALERT)]


async def test_what_is_over_before_the_planned_work_is_never_told(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await session.execute(
        "insert into matins.maintenance (since, until, actor, reason) values ($1, $2, 'ann', 'move')", DUE, DUE + HOUR
    )
    await looked(watch, LATE)
    await claim(session)
    await looked(watch, LATE + MINUTE)
    await end(session, NIGHTLY, LATE + MINUTE)
    await looked(watch, DUE + 2 * HOUR)
    assert await open_alerts(session) == []
    assert await told(session) == []


async def test_what_comes_and_goes_is_told_of_seldom(database: Database, session: Session) -> None:
    watch = watch_on(database)
    for minutes in range(0, 40, 2):
        await session.execute("update matins.job set paused_at = null")
        await looked(watch, LATE + minutes * MINUTE)
        await session.execute("update matins.job set paused_at = $1", DUE)
        await looked(watch, LATE + (minutes + 1) * MINUTE)
    opened = await session.fetchval("select count(*) from matins.alert")
    events = [event for event, *_ in await told(session)]
    assert opened == 20
    assert events == ["opened", "closed"] * (len(events) // 2)
    assert 5 <= len(events) // 2 <= 7, "each waits for five minutes of quiet"


async def test_while_everything_is_held_nothing_is_judged(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await session.execute("update matins.environment set held_since = $1, held_reason = 'restored'", DUE)
    await session.execute("update matins.watch set looked_at = null")
    assert await watch.watch_pass(LATE) is None
    await session.execute("update matins.environment set held_since = null, held_reason = null")
    await looked(watch, LATE + MINUTE)
    assert await open_alerts(session) == [], "it is late by the time since the hold"
    await looked(watch, LATE + 11 * MINUTE)
    assert await open_alerts(session) == [LATE_ALERT]


async def test_another_looks_only_when_the_last_look_is_over_for_long_enough(database: Database) -> None:
    first, second = watch_on(database, "first"), watch_on(database, "second")
    assert await first.watch_pass(LATE) is not None
    assert await second.watch_pass(LATE + PASS / 4) is None
    assert await second.watch_pass(LATE + PASS / 2) is not None


async def test_one_that_is_frozen_in_its_look_keeps_nobody_waiting(database: Database, session: Session) -> None:
    watch = watch_on(database)
    async with session.transaction():
        await session.execute("update matins.watch set looked_by = 'frozen'")
        assert await watch.watch_pass(LATE) is None
    assert await watch.watch_pass(LATE) is not None
