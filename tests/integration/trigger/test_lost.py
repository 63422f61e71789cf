"""A message is lost on evidence alone: what was started behind it, or a queue that was empty."""

from dataclasses import replace

from shared.fleet import advance_queues
from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DAY,
    HOUR,
    MINUTE,
    Broker,
    claimed,
    fanned_out,
    fill,
    job_at,
)
from tests.integration.trigger.sweeps import (
    EMPTY,
    FULL,
    NOW,
    SECOND,
    looks,
    publish,
    published,
    settle,
    sweeping,
    unpublished,
)
from trigger.sweep import ROWS_AT_ONCE, Swept, note_emptiness, sweep_pass


async def test_nothing_is_lost_without_evidence_however_late_it_is(database: Database, session: Session) -> None:
    job, claim, _ = await published(database, session, 10)
    for minutes in range(1, 61):
        assert await sweep_pass(sweeping(database, job, now=NOW + minutes * MINUTE)) == Swept()
    assert await sweep_pass(sweeping(database, job, None, now=NOW + 2 * HOUR)) == Swept()
    assert await unpublished(session, claim) == []


async def test_an_outage_of_an_hour_resends_nothing(database: Database, session: Session) -> None:
    """The workers are down; the queue is full all the time; then they work it off in order."""
    job, claim, broker = await published(database, session, 100)
    later = NOW + HOUR
    for minutes in range(1, 61):
        await sweep_pass(sweeping(database, job, now=NOW + minutes * MINUTE))
        await publish(database, job, broker, NOW + minutes * MINUTE)
    # The first message is started: it says nothing of those that were published with it.
    await advance_queues(session, {job.queue: NOW})
    assert await sweep_pass(sweeping(database, job, now=later)) == Swept()
    assert len(broker.messages) == 100
    await settle(session, claim)
    assert await sweep_pass(sweeping(database, job, EMPTY, now=later)) == Swept(closed=1)
    assert len(broker.messages) == 100


async def test_a_broker_that_lost_everything_is_sent_everything_again(database: Database, session: Session) -> None:
    job, claim, broker = await published(database, session, 100)
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + MINUTE / 2)) == Swept()
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE)) == Swept(lost=100)
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE)) == Swept()
    await publish(database, job, broker, NOW + 2 * MINUTE)
    assert len(broker.messages) == 200
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE + SECOND)) == Swept()
    assert await unpublished(session, claim) == []


async def test_a_message_is_lost_when_one_published_later_by_a_margin_was_started(
    database: Database, session: Session
) -> None:
    job, claim, _ = await published(database, session, 3)
    await advance_queues(session, {job.queue: NOW + 5 * SECOND})
    assert await sweep_pass(sweeping(database, job, now=NOW + HOUR)) == Swept()
    await advance_queues(session, {job.queue: NOW + 6 * SECOND})
    assert await sweep_pass(sweeping(database, job, now=NOW + MINUTE)) == Swept()
    assert await sweep_pass(sweeping(database, job, now=NOW + MINUTE + SECOND)) == Swept(lost=3)
    assert len(await unpublished(session, claim)) == 3


async def test_an_empty_queue_says_nothing_of_what_may_have_been_on_its_way_to_it(
    database: Database, session: Session
) -> None:
    """A page is read at NOW, the queue is looked at, still empty, and only then the page is confirmed."""
    await fill(session, 3)
    job = job_at()
    claim = await claimed(session, job)
    await fanned_out(database, job, claim)
    await session.execute("insert into matins.publication values ($1, 1, $2)", claim.id, NOW - DAY)
    work = replace(sweeping(database, job, EMPTY, now=NOW + 9 * SECOND), margin=10 * SECOND)
    await note_emptiness(work)
    await publish(database, job, Broker(), NOW)
    later = replace(work, depth=looks(FULL), now=NOW + HOUR)
    assert await sweep_pass(later) == Swept(lost=1), "only what was published long before"
    await note_emptiness(replace(work, now=NOW + 11 * SECOND))
    assert await sweep_pass(later) == Swept(lost=2)


async def test_a_broker_that_lost_many_is_made_good_in_one_pass_past_a_locked_row(
    database: Database, session: Session, other_session: Session
) -> None:
    count = 3 * ROWS_AT_ONCE + 10
    job, claim, _ = await published(database, session, count)
    async with other_session.transaction():
        await other_session.execute("select from matins.ledger where account = 'account-00005' for update")
        swept = await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE))
    assert swept == Swept(lost=count - 1)
    assert len(await unpublished(session, claim)) == count - 1
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE)) == Swept(lost=1)


async def test_what_is_published_again_counts_from_then(database: Database, session: Session) -> None:
    job, claim, broker = await published(database, session, 3)
    await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE))
    await publish(database, job, broker, NOW + 2 * MINUTE)
    await advance_queues(session, {job.queue: NOW + 2 * MINUTE})
    assert await sweep_pass(sweeping(database, job, now=NOW + HOUR)) == Swept()
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR)) == Swept(lost=3)
    assert len(await unpublished(session, claim)) == 3


async def test_a_retry_in_a_delay_queue_is_not_lost_before_its_time(database: Database, session: Session) -> None:
    job, claim, _ = await published(database, session, 1)
    await session.execute(
        "update matins.ledger set epoch = 1, attempts = 1, published_at = $1, not_before = $2", NOW, NOW + HOUR
    )
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR + MINUTE / 2)) == Swept()
    assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR + 2 * MINUTE)) == Swept(lost=1)
    assert await unpublished(session, claim) == ["account-00001"]


async def test_a_row_that_is_executed_is_neither_waited_for_nor_lost(
    database: Database, session: Session, other_session: Session
) -> None:
    job, claim, _ = await published(database, session, 2)
    async with other_session.transaction():
        await other_session.execute("select from matins.ledger where account = 'account-00001' for update")
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR)) == Swept(lost=1)
    assert await unpublished(session, claim) == ["account-00002"]
