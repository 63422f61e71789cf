from datetime import timedelta
from typing import TYPE_CHECKING

import anyio
import pytest

from shared.accounts import SqlAccounts
from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    DUE,
    HOUR,
    LEASE,
    claimant,
    claimed,
    fanned_out,
    fill,
    job_at,
    ledger_accounts,
)
from tests.support.ledger import ledger, occurrence_row
from trigger.fan_out import FanOut, FanOutEnd, fan_out, seal, take_over, write_page
from trigger.pages import Page, open_pager

if TYPE_CHECKING:
    from trigger.claim import Claim

LATER = DUE + HOUR
ACCOUNT = "select id as account from account"


def small_pages() -> SqlAccounts:
    return SqlAccounts(ACCOUNT, page_size=10)


class TestSteps:
    async def test_a_fan_out_writes_every_account_once_in_order_and_seals(
        self, database: Database, session: Session
    ) -> None:
        await fill(session, 2501)
        job = job_at()
        claim = await claimed(session, job)
        assert await fanned_out(database, job, claim) is FanOutEnd.SEALED
        rows = await ledger_accounts(session, claim)
        assert rows == [(f"account-{number:05d}", number) for number in range(1, 2502)]
        row = await occurrence_row(session, claim.id)
        assert (row["state"], row["accounts_read"], row["lease_until"]) == ("running", 2501, None)
        assert row["sealed_at"] is not None

    async def test_an_occurrence_without_accounts_is_closed_at_once(self, database: Database, session: Session) -> None:
        await fill(session, 0)
        job = job_at()
        claim = await claimed(session, job)
        assert await fanned_out(database, job, claim) is FanOutEnd.SEALED
        row = await occurrence_row(session, claim.id)
        assert (row["state"], row["total"]) == ("succeeded", 0)

    async def test_of_two_interleaved_fan_outs_the_former_one_changes_nothing(
        self, database: Database, session: Session
    ) -> None:
        job = job_at()
        claim = await claimed(session, job)
        former = FanOut(database, job, claimant("one"), now=DUE)
        moved = await write_page(former, claim, Page(("a", "b"), "2", last=False))
        assert moved is not None
        taken = await take_over(session, ["nightly"], claimant("two"), now=LATER)
        assert taken is not None
        assert (taken.epoch, taken.cursor, taken.accounts_read) == (claim.epoch + 1, "2", 2)
        latter = FanOut(database, job, claimant("two"), now=LATER)
        assert await write_page(former, moved, Page(("c", "x"), "4", last=True)) is None
        gone_on = await write_page(latter, taken, Page(("c", "d"), "4", last=True))
        assert gone_on is not None
        assert await write_page(former, moved, Page(("c", "y"), "4", last=True)) is None
        assert await seal(former, moved) is FanOutEnd.FENCED
        assert await seal(latter, gone_on) is FanOutEnd.SEALED
        assert await ledger_accounts(session, claim) == [("a", 1), ("b", 2), ("c", 3), ("d", 4)]

    async def test_of_two_copies_of_one_claim_one_page_is_written(self, database: Database, session: Session) -> None:
        job = job_at()
        claim = await claimed(session, job)
        work = FanOut(database, job, claimant(), now=DUE)
        moved: list[Claim | None] = []

        async def write(name: str) -> None:
            moved.append(await write_page(work, claim, Page((name,), name, last=False)))

        async with anyio.create_task_group() as group:
            for name in "abcdef":
                group.start_soon(write, name)
        assert sum(one is not None for one in moved) == 1
        assert len(await ledger_accounts(session, claim)) == 1

    async def test_an_account_that_comes_twice_keeps_its_row(self, database: Database, session: Session) -> None:
        job = job_at()
        claim = await claimed(session, job)
        work = FanOut(database, job, claimant(), now=DUE)
        moved = await write_page(work, claim, Page(("a", "b"), "2", last=False))
        assert moved is not None
        assert await write_page(work, moved, Page(("b", "c"), "4", last=False)) is not None
        assert await ledger_accounts(session, claim) == [("a", 1), ("b", 2), ("c", 4)]

    async def test_bad_ids_become_failed_rows_and_the_rest_goes_on(self, database: Database, session: Session) -> None:
        await session.execute("create table account (id text)")
        await session.execute("insert into account values ('good'), (''), (repeat('x', 513)), (null), (null)")
        job = job_at()
        claim = await claimed(session, job)
        assert await fanned_out(database, job, claim) is FanOutEnd.SEALED
        rows = await ledger(session, claim.id)
        assert rows["good"]["state"] == "pending"
        bad = {name: row for name, row in rows.items() if name != "good"}
        assert len(bad) == 3
        assert all(name.startswith("invalid:") for name in bad)
        assert {(row["state"], row["error_class"]) for row in bad.values()} == {("failed", "invalid_account")}

    @pytest.mark.parametrize("ending", ["cancel", "deadline"])
    async def test_an_ended_dispatch_stops_the_fan_out(self, database: Database, session: Session, ending: str) -> None:
        await fill(session, 3)
        job = job_at()
        claim = await claimed(session, job)
        await session.execute("update matins.occurrence set ending = $1, epoch = epoch + 1", ending)
        assert await fanned_out(database, job, claim) is FanOutEnd.FENCED
        assert await ledger_accounts(session, claim) == []
        assert await take_over(session, ["nightly"], claimant("two"), now=LATER) is None


class TestTakingOver:
    """A process that dies after any step leaves what another goes on from."""

    async def test_nobody_takes_over_while_the_lease_lasts(self, session: Session) -> None:
        await claimed(session, job_at())
        assert await take_over(session, ["nightly"], claimant("two"), now=DUE + LEASE) is None
        assert await take_over(session, ["other"], claimant("two"), now=LATER) is None
        assert await take_over(session, ["nightly"], claimant("two"), now=DUE + LEASE + timedelta(seconds=1))

    async def test_of_many_who_take_over_one_does(self, database: Database, session: Session) -> None:
        await claimed(session, job_at())
        taken: list[Claim | None] = []

        async def take(number: int) -> None:
            async with database.session() as own:
                taken.append(await take_over(own, ["nightly"], claimant(f"t{number}"), now=LATER))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(take, number)
        assert sum(one is not None for one in taken) == 1

    @pytest.mark.parametrize("pages", [0, 1, 2, 3])
    async def test_after_the_claim_and_after_each_page(self, database: Database, session: Session, pages: int) -> None:
        await fill(session, 25)
        job = job_at(accounts=small_pages())
        claim = await claimed(session, job)
        work = FanOut(database, job, claimant("one"), now=DUE)
        async with open_pager(database, job, claim) as pager:
            for _ in range(pages):
                moved = await write_page(work, claim, await pager.read(claim.cursor))
                assert moved is not None
                claim = moved
        taken = await take_over(session, ["nightly"], claimant("two"), now=LATER)
        assert taken is not None
        assert await fanned_out(database, job, taken) is FanOutEnd.SEALED
        assert await ledger_accounts(session, claim) == [(f"account-{number:05d}", number) for number in range(1, 26)]

    async def test_nothing_is_taken_over_after_the_seal(self, database: Database, session: Session) -> None:
        await fill(session, 3)
        job = job_at()
        claim = await claimed(session, job)
        await fanned_out(database, job, claim)
        assert await take_over(session, ["nightly"], claimant("two"), now=LATER) is None

    async def test_a_process_that_stops_lets_another_go_on_at_once(self, database: Database, session: Session) -> None:
        await fill(session, 25)
        job = job_at(accounts=small_pages())
        claim = await claimed(session, job)
        written: list[int] = []
        work = FanOut(
            database, job, claimant("one"), stopping=lambda: len(written) == 1, written=lambda: written.append(1)
        )
        assert await fan_out(work, claim) is FanOutEnd.RELEASED
        taken = await take_over(session, ["nightly"], claimant("two"))
        assert taken is not None
        assert taken.accounts_read == 10
