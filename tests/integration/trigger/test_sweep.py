from typing import TYPE_CHECKING

import pytest

from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    claimant,
    claimed,
    fanned_out,
    fill,
    job_at,
    live,
)
from tests.integration.trigger.sweeps import (
    NOW,
    SECOND,
    published,
    settle,
    sweeping,
    unpublished,
)
from tests.support.ledger import ledger, occurrence_row
from trigger.fan_out import ATTEMPTS, FanOut, fan_out, take_over
from trigger.sweep import PAGES_AT_ONCE, ROWS_AT_ONCE, Swept, stop_silent, sweep_pass

if TYPE_CHECKING:
    from trigger.claim import Claim


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
