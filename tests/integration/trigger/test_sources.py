from collections.abc import AsyncIterator
from datetime import timedelta
from typing import TYPE_CHECKING

import anyio
import pytest

from shared.accounts import AccountAt, GeneratedAccounts, SourceCall
from shared.postgres import Database, Session
from tests.integration.trigger.support import DUE, LEASE, claimant, claimed, fanned_out, fill, job_at, ledger_accounts
from tests.support.ledger import occurrence_row
from trigger.claim_outcome import Claimant
from trigger.fan_out import ATTEMPTS, FanOut, FanOutEnd, fan_out, take_over

if TYPE_CHECKING:
    from trigger.claim import Claim


async def test_a_generator_gives_pages_and_goes_on_behind_its_cursor(database: Database, session: Session) -> None:
    calls: list[str | None] = []
    closed: list[bool] = []

    async def tenants(call: SourceCall) -> AsyncIterator[AccountAt]:
        calls.append(call.cursor)
        try:
            for number in range(int(call.cursor or 0) + 1, 26):
                yield AccountAt(f"tenant-{number}", str(number))
        finally:
            closed.append(True)

    job = job_at(accounts=GeneratedAccounts(tenants, page_size=10))
    claim = await claimed(session, job)
    written: list[int] = []
    first = FanOut(
        database, job, claimant("one"), stopping=lambda: len(written) == 1, written=lambda: written.append(1)
    )
    assert await fan_out(first, claim) is FanOutEnd.RELEASED
    assert closed == [True]
    taken = await take_over(session, ["nightly"], claimant("two"))
    assert taken is not None
    assert await fanned_out(database, job, taken) is FanOutEnd.SEALED
    assert calls == [None, "10"]
    assert await ledger_accounts(session, claim) == [(f"tenant-{number}", number) for number in range(1, 26)]


async def test_a_generator_may_be_named(database: Database, session: Session) -> None:
    job = job_at(accounts=GeneratedAccounts("tests.integration.trigger.test_sources:some_tenants"))
    claim = await claimed(session, job)
    assert await fanned_out(database, job, claim) is FanOutEnd.SEALED
    assert await ledger_accounts(session, claim) == [("acme", 1)]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("no_such_module:tenants", "cannot import no_such_module:tenants"),
        ("tests.integration.trigger.test_sources:nothing", "cannot import"),
        ("tests.integration.trigger.test_sources:standing", "does not move: 'here' came twice"),
        ("tests.integration.trigger.test_sources:unshaped", "gives str; it must give AccountAt"),
        ("tests.integration.trigger.test_sources:no_generator", "is not an async generator function"),
        ("tests.integration.trigger.test_sources:broken", "ValueError: no tenants\ufffdtoday"),
    ],
)
async def test_what_is_wrong_with_a_generator_is_recorded(
    database: Database, session: Session, name: str, said: str
) -> None:
    job = job_at(accounts=GeneratedAccounts(name))
    claim = await claimed(session, job)
    assert await fanned_out(database, job, claim) is FanOutEnd.FAILED
    row = await occurrence_row(session, claim.id)
    assert said.replace("\ufffd", "?") in row["fan_out_error"]
    assert row["state"] == "claimed"


async def test_a_source_that_fails_five_times_ends_the_occurrence(database: Database, session: Session) -> None:
    job = job_at()
    claim: Claim | None = await claimed(session, job)
    now = DUE
    waits = []
    for attempt in range(1, ATTEMPTS + 1):
        assert claim is not None
        work = FanOut(database, job, claimant(), now=now)
        assert await fan_out(work, claim) is FanOutEnd.FAILED
        row = await occurrence_row(session, claim.id)
        assert row["fan_out_attempts"] == attempt
        waits.append((row["lease_until"] - now).total_seconds())
        now = row["lease_until"] + timedelta(seconds=1)
        claim = await take_over(session, ["nightly"], claimant(), now=now)
    assert waits == [5, 10, 20, 40, 80]
    assert claim is None
    row = await session.fetchrow("select * from matins.occurrence where job = 'nightly' and ending is not null")
    assert row is not None
    assert row["ending"] == "fan_out"
    assert 'relation "account" does not exist' in row["ending_reason"]


async def test_progress_forgives_earlier_failures(database: Database, session: Session) -> None:
    await fill(session, 3)
    job = job_at()
    claim = await claimed(session, job)
    await session.execute("update matins.occurrence set fan_out_attempts = 4 where id = $1", claim.id)
    assert await fanned_out(database, job, claim) is FanOutEnd.SEALED


async def test_the_lease_is_kept_while_a_page_is_slow(database: Database, session: Session) -> None:
    await session.execute("create table account (id text)")
    lease = timedelta(seconds=0.6)
    reading, renewed = anyio.Event(), anyio.Event()

    async def slow(_call: SourceCall) -> AsyncIterator[AccountAt]:
        reading.set()
        await renewed.wait()
        yield AccountAt("acme", "1")

    job = job_at(accounts=GeneratedAccounts(slow))
    claim = await claimed(session, job)
    ends: list[FanOutEnd] = []

    async def run() -> None:
        ends.append(await fan_out(FanOut(database, job, Claimant("one", "", lease)), claim))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await reading.wait()
        with anyio.fail_after(20):
            while (await occurrence_row(session, claim.id))["lease_until"] < DUE + 2 * LEASE:
                pass
        renewed.set()
    assert ends == [FanOutEnd.SEALED]


async def test_a_slow_page_is_left_when_another_has_taken_over(database: Database, session: Session) -> None:
    async def endless(_call: SourceCall) -> AsyncIterator[AccountAt]:
        await session.execute("update matins.occurrence set epoch = epoch + 1 where id = $1", claim.id)
        await anyio.Event().wait()
        yield AccountAt("never", "1")

    job = job_at(accounts=GeneratedAccounts(endless))
    claim = await claimed(session, job)
    work = FanOut(database, job, Claimant("one", "", timedelta(seconds=0.3)))
    with anyio.fail_after(20):
        assert await fan_out(work, claim) is FanOutEnd.FENCED


async def some_tenants(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """Give one account."""
    yield AccountAt("acme", "1")


async def standing(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """Give a cursor twice."""
    yield AccountAt("acme", "here")
    yield AccountAt("bolt", "here")


async def unshaped(_call: SourceCall) -> AsyncIterator[str]:
    """Give what is no account with a cursor."""
    yield "acme"


async def no_generator(_call: SourceCall) -> list[AccountAt]:
    """Give everything at once."""
    return []


async def broken(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """Fail before the first account."""
    for name in no_tenants():
        yield AccountAt(name, name)


def no_tenants() -> list[str]:
    """Fail with a text that no database stores."""
    message = "no tenants\ud800today"
    raise ValueError(message)
