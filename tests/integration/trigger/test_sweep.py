from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from shared.broker import QueueDepth
from shared.fleet import advance_queues
from shared.job import Job
from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    LEASE,
    MINUTE,
    Broker,
    claimant,
    claimed,
    fanned_out,
    fill,
    job_at,
    live,
)
from tests.support.ledger import ledger, occurrence_row
from trigger.claim import Claim
from trigger.fan_out import ATTEMPTS, FanOut, fan_out, take_over
from trigger.publish import Publishing, publish_pass
from trigger.sweep import PAGES_AT_ONCE, ROWS_AT_ONCE, Sweeping, Swept, stop_silent, sweep_pass

NOW = DUE + HOUR
SECOND = timedelta(seconds=1)
FULL = QueueDepth(messages=5, consumers=1)
EMPTY = QueueDepth(messages=0, consumers=1)


def looks(depth: QueueDepth | None) -> Callable[[], Awaitable[QueueDepth | None]]:
    """Give a look into a queue that finds always the same."""

    async def look() -> QueueDepth | None:
        return depth

    return look


def sweeping(
    database: Database, job: Job, depth: QueueDepth | None = FULL, *, now: object = NOW, holder: str = "one"
) -> Sweeping:
    return Sweeping(database, job, looks(depth), holder, LEASE, MINUTE, now=now)  # type: ignore[arg-type] # an instant


async def published(
    database: Database, session: Session, count: int, job: Job | None = None
) -> tuple[Job, Claim, Broker]:
    """Fan out some accounts and publish them at NOW."""
    await fill(session, count)
    job = job or job_at()
    claim = await claimed(session, job)
    await fanned_out(database, job, claim)
    broker = Broker()
    await publish(database, job, broker, NOW)
    return job, claim, broker


async def publish(database: Database, job: Job, broker: Broker, now: object) -> None:
    work = Publishing(database, job, broker.send, "test.work", "one", LEASE, 100_000, now=now)  # type: ignore[arg-type] # an instant
    while (await publish_pass(work)).more:
        pass


async def settle(session: Session, claim: Claim) -> None:
    """Settle every account that is pending."""
    await session.execute(
        """update matins.ledger set state = 'succeeded', finished_at = $2, epoch = epoch + 1, attempts = 1
            where occurrence_id = $1 and state = 'pending'""",
        claim.id,
        NOW,
    )


async def unpublished(session: Session, claim: Claim) -> list[str]:
    rows = await session.fetch(
        """select account from matins.ledger where occurrence_id = $1 and state = 'pending' and epoch > 0
              and published_at is null
            order by account""",
        claim.id,
    )
    return [row["account"] for row in rows]


class TestExpiredLeases:
    async def test_an_account_of_a_silent_worker_is_opened_again_alone_and_fenced(
        self, database: Database, session: Session
    ) -> None:
        job, claim, _ = await published(database, session, 3)
        await session.execute(
            """update matins.ledger set state = 'running', epoch = 1, starts = 1, worker = 'w',
                      lease_until = $2::timestamptz - interval '1 s' * (account = 'account-00001')::integer
                where occurrence_id = $1 and account < 'account-00003'""",
            claim.id,
            NOW,
        )
        assert await sweep_pass(sweeping(database, job)) == Swept(expired=1)
        rows = await ledger(session, claim.id)
        row = rows["account-00001"]
        assert (row["state"], row["epoch"], row["isolated"], row["starts"]) == ("pending", 2, True, 1)
        assert rows["account-00002"]["state"] == "running"
        assert await unpublished(session, claim) == ["account-00001"]

    async def test_a_running_row_behind_the_watermark_is_found_once_dispatch_has_ended(
        self, database: Database, session: Session
    ) -> None:
        await fill(session, 1)
        job = job_at()
        claim = await claimed(session, job)
        await fanned_out(database, job, claim)
        await session.execute("update matins.ledger set state = 'running', epoch = 1, lease_until = $1", NOW - SECOND)
        await session.execute("update matins.occurrence set ending = 'cancel', ending_reason = 'ada'")
        assert await sweep_pass(sweeping(database, job)) == Swept(expired=1, cancelled=1, closed=1)


class TestLostMessages:
    async def test_nothing_is_lost_without_evidence_however_late_it_is(
        self, database: Database, session: Session
    ) -> None:
        job, claim, _ = await published(database, session, 10)
        for minutes in range(1, 61):
            assert await sweep_pass(sweeping(database, job, now=NOW + minutes * MINUTE)) == Swept()
        assert await sweep_pass(sweeping(database, job, None, now=NOW + 2 * HOUR)) == Swept()
        assert await unpublished(session, claim) == []

    async def test_an_outage_of_an_hour_resends_nothing(self, database: Database, session: Session) -> None:
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

    async def test_a_broker_that_lost_everything_is_sent_everything_again(
        self, database: Database, session: Session
    ) -> None:
        job, claim, broker = await published(database, session, 100)
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + MINUTE / 2)) == Swept()
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE)) == Swept(lost=100)
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE)) == Swept()
        await publish(database, job, broker, NOW + 2 * MINUTE)
        assert len(broker.messages) == 200
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE + SECOND)) == Swept()
        assert await unpublished(session, claim) == []

    async def test_a_message_is_lost_when_one_published_later_by_a_margin_was_started(
        self, database: Database, session: Session
    ) -> None:
        job, claim, _ = await published(database, session, 3)
        await advance_queues(session, {job.queue: NOW + 5 * SECOND})
        assert await sweep_pass(sweeping(database, job, now=NOW + HOUR)) == Swept()
        await advance_queues(session, {job.queue: NOW + 6 * SECOND})
        assert await sweep_pass(sweeping(database, job, now=NOW + MINUTE)) == Swept()
        assert await sweep_pass(sweeping(database, job, now=NOW + MINUTE + SECOND)) == Swept(lost=3)
        assert len(await unpublished(session, claim)) == 3

    async def test_what_is_published_again_counts_from_then(self, database: Database, session: Session) -> None:
        job, claim, broker = await published(database, session, 3)
        await sweep_pass(sweeping(database, job, EMPTY, now=NOW + 2 * MINUTE))
        await publish(database, job, broker, NOW + 2 * MINUTE)
        await advance_queues(session, {job.queue: NOW + 2 * MINUTE})
        assert await sweep_pass(sweeping(database, job, now=NOW + HOUR)) == Swept()
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR)) == Swept(lost=3)
        assert len(await unpublished(session, claim)) == 3

    async def test_a_retry_in_a_delay_queue_is_not_lost_before_its_time(
        self, database: Database, session: Session
    ) -> None:
        job, claim, _ = await published(database, session, 1)
        await session.execute(
            "update matins.ledger set epoch = 1, attempts = 1, published_at = $1, not_before = $2", NOW, NOW + HOUR
        )
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR + MINUTE / 2)) == Swept()
        assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR + 2 * MINUTE)) == Swept(lost=1)
        assert await unpublished(session, claim) == ["account-00001"]

    async def test_a_row_that_is_executed_is_neither_waited_for_nor_lost(
        self, database: Database, session: Session, other_session: Session
    ) -> None:
        job, claim, _ = await published(database, session, 2)
        async with other_session.transaction():
            await other_session.execute("select from matins.ledger where account = 'account-00001' for update")
            assert await sweep_pass(sweeping(database, job, EMPTY, now=NOW + HOUR)) == Swept(lost=1)
        assert await unpublished(session, claim) == ["account-00002"]


class TestEnding:
    async def test_cancelling_goes_in_pages_and_leaves_what_runs(self, database: Database, session: Session) -> None:
        count = ROWS_AT_ONCE * 2 + 10
        job, claim, _ = await published(database, session, count)
        assert count < ROWS_AT_ONCE * PAGES_AT_ONCE
        await session.execute(
            """update matins.ledger set state = 'running', epoch = 1, lease_until = $1
                where account = 'account-00001'""",
            NOW + HOUR,
        )
        await session.execute(
            "update matins.occurrence set ending = 'cancel', ending_reason = 'ada: wrong price', epoch = epoch + 1"
        )
        assert await sweep_pass(sweeping(database, job)) == Swept(cancelled=count - 1)
        await session.execute(
            """update matins.ledger set state = 'succeeded', lease_until = null, finished_at = $1, epoch = 2
                where account = 'account-00001'""",
            NOW,
        )
        assert await sweep_pass(sweeping(database, job)) == Swept(closed=1)
        row = await occurrence_row(session, claim.id)
        assert (row["state"], row["reason"]) == ("cancelled", "cancel: ada: wrong price")
        assert (row["total"], row["succeeded"], row["cancelled"]) == (count, 1, count - 1)

    async def test_a_locked_row_is_cancelled_by_a_later_pass(
        self, database: Database, session: Session, other_session: Session
    ) -> None:
        job, _, _ = await published(database, session, 3)
        await session.execute("update matins.occurrence set ending = 'cancel', ending_reason = 'ada'")
        async with other_session.transaction():
            await other_session.execute("select from matins.ledger where account = 'account-00002' for update")
            assert await sweep_pass(sweeping(database, job)) == Swept(cancelled=2)
        assert await sweep_pass(sweeping(database, job)) == Swept(cancelled=1, closed=1)

    @pytest.mark.parametrize("policy", ["stop", "alert"])
    async def test_the_deadline_stops_only_where_it_was_decided(
        self, database: Database, session: Session, policy: str
    ) -> None:
        job, claim, _ = await published(database, session, 3, job_at(on_finish_within=policy))
        assert await sweep_pass(sweeping(database, job, now=DUE + 3 * HOUR)) == Swept()
        swept = await sweep_pass(sweeping(database, job, now=DUE + 3 * HOUR + SECOND))
        row = await occurrence_row(session, claim.id)
        if policy == "alert":
            assert (swept, row["state"]) == (Swept(), "running")
            return
        assert swept == Swept(cancelled=3, closed=1)
        assert (row["state"], row["reason"]) == ("partial", "deadline: not finished by 2026-08-25T05:00:00Z")
        kinds = await session.fetch("select kind from matins.audit where occurrence_id = $1 order by id", claim.id)
        assert [one["kind"] for one in kinds] == ["claim", "sealed", "ending", "closed"]

    async def test_a_fan_out_that_was_given_up_closes_as_failed(self, database: Database, session: Session) -> None:
        job = job_at()
        claim: Claim | None = await claimed(session, job)
        now = DUE
        for _ in range(ATTEMPTS):
            assert claim is not None
            await fan_out(FanOut(database, job, claimant(), now=now), claim)
            now += HOUR
            claim = await take_over(session, ["nightly"], claimant(), now=now)
        assert await sweep_pass(sweeping(database, job, now=now)) == Swept(closed=1)
        row = await session.fetchrow("select * from matins.occurrence where closed_at is not null")
        assert row is not None
        assert row["state"] == "failed"
        assert row["reason"].startswith("fan_out: UndefinedTableError")

    async def test_what_is_over_is_closed_whoever_settled_last(self, database: Database, session: Session) -> None:
        job, claim, _ = await published(database, session, 3)
        await settle(session, claim)
        assert await sweep_pass(sweeping(database, job)) == Swept(closed=1)
        assert (await occurrence_row(session, claim.id))["state"] == "succeeded"


async def test_one_sweeper_at_a_time_holds_the_job(database: Database, session: Session) -> None:
    job, claim, _ = await published(database, session, 3)
    await sweep_pass(sweeping(database, job))
    await settle(session, claim)
    assert await sweep_pass(sweeping(database, job, holder="two")) == Swept()
    assert await sweep_pass(sweeping(database, job, holder="two", now=NOW + HOUR)) == Swept(closed=1)


async def test_silent_processes_are_said_to_have_ended(database: Database, session: Session) -> None:
    await live(session, "silent", "beating")
    await session.execute("update matins.instance set seen_at = $1 where id = 'silent'", NOW - DAY)
    assert await stop_silent(database) == 1
    stopped = await session.fetchval("select id from matins.instance where stopped_at is not null")
    assert stopped == "silent"
