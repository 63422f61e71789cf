"""What people order about alerts, and what the watch makes of it, whoever comes first."""

from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from schemas.occurrence import parse_identity
from shared.close import close
from shared.postgres import Database, Session, transaction
from shared.settings import load_settings
from shared.terminal import Refused
from tests.integration.operate.night import ORDER, OTHER, closed_night
from tests.integration.trigger.support import claimant, job_at, planned
from tests.integration.watch.support import (
    DUE,
    HOUR,
    LATE,
    MINUTE,
    REPEAT,
    SUBJECT,
    looked,
    open_alerts,
    told,
    watch_on,
)
from trigger.alert_orders import Acted, acknowledge, silence, unsilence
from trigger.alert_standing import read_reference
from trigger.claim import Won, claim_due
from trigger.maintenance import add_maintenance, end_maintenance
from trigger.operate import Choice, rerun
from trigger.status import read_status

LATE_ALERT = ("not_claimed", SUBJECT)
NAMED = read_reference(f"not_claimed:{SUBJECT}")
NIGHTLY = job_at()
PARTIAL = "invoice-run:2026-08-25T02:00Z"


@pytest.fixture
async def nightly(session: Session) -> None:
    """A job that was planned a day ahead and that nobody claims."""
    await session.execute("insert into matins.environment (name) values ('test') on conflict do nothing")
    await planned(session, NIGHTLY, DUE - timedelta(days=1))


@pytest.fixture
async def night(session: Session) -> int:
    """A partial night, which just ended, and is known as one."""
    await session.execute("insert into matins.environment (name) values ('test') on conflict do nothing")
    occurrence, _ = await closed_night(session)
    return occurrence.id


async def claim(session: Session, now: datetime = LATE) -> None:
    assert isinstance(await claim_due(session, NIGHTLY, 1, claimant(), now=now), Won)


@pytest.mark.usefixtures("nightly")
async def test_acknowledged_it_is_told_no_more_and_closes_when_it_is_over(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await acknowledge(session, NAMED, ORDER, now=LATE)
    await looked(watch, LATE + REPEAT)
    await looked(watch, LATE + 3 * REPEAT)
    assert await told(session) == [("opened", *LATE_ALERT)]
    assert await open_alerts(session) == [LATE_ALERT]
    await claim(session, LATE + 3 * REPEAT)
    await looked(watch, LATE + 3 * REPEAT + MINUTE)
    assert await open_alerts(session) == []
    assert await told(session) == [("opened", *LATE_ALERT), ("closed", *LATE_ALERT)]


@pytest.mark.usefixtures("nightly")
async def test_a_silenced_one_is_told_again_at_the_silences_end(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await silence(session, NAMED, REPEAT + 2 * HOUR, ORDER, now=LATE)
    await looked(watch, LATE + REPEAT + HOUR)
    assert await told(session) == [("opened", *LATE_ALERT)]
    for minutes in range(3):
        await looked(watch, LATE + REPEAT + 2 * HOUR + minutes * MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT), ("repeated", *LATE_ALERT)]


@pytest.mark.usefixtures("nightly")
async def test_unsilenced_it_is_told_at_the_next_look(database: Database, session: Session) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await silence(session, NAMED, 6 * HOUR, ORDER, now=LATE)
    await unsilence(session, NAMED, OTHER, now=LATE + MINUTE)
    await looked(watch, LATE + 2 * MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT), ("repeated", *LATE_ALERT)]


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize("job", ["nightly", None], ids=["of the job", "of all"])
async def test_maintenance_that_is_ended_has_what_stands_told(
    database: Database, session: Session, job: str | None
) -> None:
    watch = watch_on(database)
    plan = await add_maintenance(session, job, None, 3 * HOUR, ORDER, now=DUE)
    await looked(watch, LATE)
    assert await open_alerts(session) == [LATE_ALERT]
    assert await told(session) == []
    await end_maintenance(session, plan.id, OTHER, now=LATE + MINUTE)
    await looked(watch, LATE + 2 * MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT)]


async def test_an_acknowledged_bad_night_leaves_status_well_until_a_rerun_fails(
    database: Database, session: Session, night: int
) -> None:
    watch = watch_on(database)
    now = await session.fetchval("select closed_at from matins.occurrence where id = $1", night)
    await looked(watch, now)
    assert ("opened", "partial", PARTIAL) in await told(session)
    assert await partial_problems(session) == 1
    await acknowledge(session, read_reference(f"partial:{PARTIAL}"), ORDER, now=now + MINUTE)
    assert await partial_problems(session) == 0
    for minutes in (2, 3):
        await looked(watch, now + minutes * MINUTE)
    assert ("partial", PARTIAL) not in await open_alerts(session)
    assert [one[:2] for one in await told(session) if one[1] == "partial"] == [
        ("opened", "partial"),
        ("closed", "partial"),
    ]
    reason = await session.fetchval("select close_reason from matins.alert where kind = 'partial'")
    assert reason == "acknowledged by ann: the tax service is back"
    assert await partial_problems(session) == 0
    await rerun_in_vain(session, night, now)
    await looked(watch, now + 2 * HOUR)
    assert ("partial", PARTIAL) in await open_alerts(session)
    assert await partial_problems(session) == 1


async def partial_problems(session: Session) -> int:
    status = await read_status(session, load_settings({}, need=frozenset()), 3650)
    return sum("is partial" in one for one in status.problems)


async def rerun_in_vain(session: Session, night: int, now: Any) -> None:
    """Run what did not succeed again, later, and have it fail as before."""
    await rerun(session, parse_identity(PARTIAL), Choice(), ORDER, now=now + HOUR)
    await session.execute(
        """update matins.ledger
              set state = 'failed', error_class = 'TaxServiceDown', error = 'no answer', epoch = epoch + 1,
                  started_at = $2, finished_at = $2
            where occurrence_id = $1 and finished_at is null""",
        night,
        now + HOUR,
    )
    assert await close(session, night, by="test", now=now + HOUR + MINUTE) is not None


Act = Callable[[Session], Awaitable[Acted]]


async def say_known(session: Session) -> Acted:
    return await acknowledge(session, NAMED, ORDER, now=LATE + MINUTE)


async def say_nothing(session: Session) -> Acted:
    return await silence(session, NAMED, 2 * REPEAT, ORDER, now=LATE + MINUTE)


async def waits(session: Session) -> None:
    """Wait until somebody waits for a lock in this database."""
    while not await session.fetchval(
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    ):
        await anyio.lowlevel.checkpoint()


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize("act", [say_known, say_nothing])
async def test_an_order_that_comes_first_keeps_the_watch_from_telling_again(
    database: Database, session: Session, other_session: Session, act: Act
) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    raised: list[int] = []

    async def look() -> None:
        raised.append(len((await looked(watch, LATE + REPEAT)).told))

    async with anyio.create_task_group() as group, transaction(session):
        await act(session)
        group.start_soon(look)
        await waits(other_session)
    assert raised == [0]
    assert await told(session) == [("opened", *LATE_ALERT)]


@pytest.mark.usefixtures("nightly")
@pytest.mark.parametrize("act", [say_known, say_nothing])
async def test_a_watch_that_closes_it_first_has_the_order_refused(
    database: Database, session: Session, other_session: Session, act: Act
) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await claim(session)
    refused: list[str] = []

    async def order() -> None:
        with pytest.raises(Refused) as error:
            await act(session)
        refused.append(str(error.value))

    # The watch has closed the alert and waits for the outbox, so that its transaction is still open.
    async with anyio.create_task_group() as group, transaction(other_session):
        await other_session.execute("lock table matins.notification in share mode")
        group.start_soon(looked, watch, LATE + MINUTE)
        await waits(other_session)
        group.start_soon(order)
        while (
            await other_session.fetchval(
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
            )
            < 2
        ):
            await anyio.lowlevel.checkpoint()
    assert "is over since" in refused[0]
    assert await told(session) == [("opened", *LATE_ALERT), ("closed", *LATE_ALERT)]


@pytest.mark.usefixtures("nightly")
async def test_an_order_that_comes_first_is_closed_with_its_name(
    database: Database, session: Session, other_session: Session
) -> None:
    watch = watch_on(database)
    await looked(watch, LATE)
    await claim(session)
    async with anyio.create_task_group() as group, transaction(session):
        await say_known(session)
        group.start_soon(looked, watch, LATE + 2 * MINUTE)
        await waits(other_session)
    row: Any = await session.fetchrow("select * from matins.alert")
    assert (row["acknowledged_by"], row["closed_at"]) == ("ann", LATE + 2 * MINUTE)
    assert await told(session) == [("opened", *LATE_ALERT), ("closed", *LATE_ALERT)]
