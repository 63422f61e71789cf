"""Sources that raise what ends processes, and what no process survives: the occurrence ends, the triggers don't."""

import asyncio
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, NoReturn

import anyio
import pytest

from shared.accounts import AccountAt, GeneratedAccounts, SourceCall, SqlAccounts
from shared.job import Job
from shared.parts import PartDied
from shared.postgres import Database, Session
from shared.stopping import Stopping
from tests.integration.trigger.support import DUE, HOUR, claimant, claimed, fill, job_at, planned
from tests.support.ledger import database_on, occurrence_row
from trigger.claim import claim_due
from trigger.claim_outcome import Claim, Nothing, Won
from trigger.fan_out import ATTEMPTS, FanOut, fan_out, release, take_over
from trigger.fan_outs import FanOuts

HOURLY = "0 * * * *"


class Unspeakable(Exception):
    """Cannot say what it is."""

    def __str__(self) -> str:
        """Fail to say it."""
        raise TypeError


async def exits(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """End the process."""
    yield AccountAt("a", "1")
    raise SystemExit(3)


async def interrupts(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """End the process otherwise."""
    yield AccountAt("a", "1")
    raise KeyboardInterrupt


async def raises_cancelled(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """Say that it was cancelled, as a library may."""
    yield AccountAt("a", "1")
    raise asyncio.CancelledError


async def cancels_itself(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """Cancel the task that reads it."""
    yield AccountAt("a", "1")
    task = asyncio.current_task()
    assert task is not None
    task.cancel()
    await asyncio.Event().wait()


async def unspeakable(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """Raise what cannot be told."""
    yield AccountAt("a", "1")
    raise Unspeakable


def exits_when_called(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """End the process before the first page."""
    raise SystemExit(3)


async def exits_when_closed(_call: SourceCall) -> AsyncIterator[AccountAt]:
    """End the process after a failure has been seen."""
    try:
        yield AccountAt("a", "1")
        yield AccountAt("b", "1")
    finally:
        raise SystemExit(3)


async def given_back(session: Session, job: Job) -> None:
    """Claim what is due, and let any trigger go on."""
    await release(session, await claimed(session, job))


async def started(database: Database, session: Session, job: Job, passes: int) -> Any:
    """Have triggers, one after the other, start what there is, each as soon as the pause is over."""
    for number in range(passes):
        await session.execute(
            "update matins.occurrence set lease_until = now() - interval '1 s' where state = 'claimed'"
        )
        fan_outs = FanOuts(database, {job.name: job}, claimant(f"t{number}"), 4, lambda _: None, Stopping())
        async with anyio.create_task_group() as work:
            await fan_outs.start_pass(work)
    return await session.fetchrow("select * from matins.occurrence where claimed_at is not null")


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (exits, "SystemExit: 3"),
        (interrupts, "KeyboardInterrupt: "),
        (raises_cancelled, "CancelledError: "),
        (cancels_itself, "CancelledError: "),
        (unspeakable, "Unspeakable: <Unspeakable: TypeError>"),
        (exits_when_called, "FaultySource: the generator cannot be called: SystemExit: 3"),
        (exits_when_closed, "FaultySource: the generator's cursor does not move: '1' came twice"),
    ],
)
async def test_what_a_generator_raises_ends_its_occurrence_and_no_trigger(
    database: Database, session: Session, source: Any, said: str
) -> None:
    job = job_at(accounts=GeneratedAccounts(source, page_size=10))
    await given_back(session, job)
    row = await started(database, session, job, 1)
    assert (row["fan_out_attempts"], row["fan_out_error"], row["ending"]) == (1, said, None)
    row = await started(database, session, job, ATTEMPTS - 1)
    assert (row["fan_out_attempts"], row["ending"]) == (ATTEMPTS, "fan_out")


@pytest.mark.parametrize("failure", ["raise OSError('no disk')", "raise SystemExit(3)", "raise TimeoutError"])
async def test_a_module_that_fails_as_it_is_imported_counts(
    database: Database, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    (tmp_path / "source_that_fails.py").write_text(failure)
    monkeypatch.syspath_prepend(tmp_path)
    job = job_at(accounts=GeneratedAccounts("source_that_fails:tenants"))
    await given_back(session, job)
    row = await started(database, session, job, ATTEMPTS)
    assert (row["fan_out_attempts"], row["ending"]) == (ATTEMPTS, "fan_out")
    assert "FaultySource: cannot import source_that_fails:tenants: " in row["fan_out_error"]


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("select id as account from account where $1::bigint is not null and place > $2::bigint", "InterfaceError"),
        ("select id as account from account where pg_terminate_backend(pg_backend_pid())", "terminating connection"),
    ],
)
async def test_a_query_that_breaks_its_own_session_counts(
    database: Database, session: Session, query: str, said: str
) -> None:
    await fill(session, 10)
    job = job_at(accounts=SqlAccounts(query, page_size=10))
    await given_back(session, job)
    row = await started(database, session, job, ATTEMPTS)
    assert (row["fan_out_attempts"], row["ending"]) == (ATTEMPTS, "fan_out")
    assert said in row["fan_out_error"]


class TestSilence:
    """A source may end the process that reads it; nobody is left who could count that."""

    async def test_five_silent_holders_without_a_page_end_the_occurrence(self, session: Session) -> None:
        claim: Claim | None = await claimed(session, job_at())
        now = DUE
        for number in range(1, ATTEMPTS):
            now += HOUR
            claim = await take_over(session, ["nightly"], claimant(f"t{number}"), now=now)
            assert claim is not None
            assert claim.fan_out_attempts == number
        assert await take_over(session, ["nightly"], claimant("last"), now=now + HOUR) is None
        row = await occurrence_row(session, claim.id if claim else 0)
        assert (row["state"], row["ending"]) == ("claimed", "fan_out")
        assert row["ending_reason"] == "5 attempts without a page, the last of them by a trigger that fell silent"
        kinds = await session.fetch("select kind from matins.audit where occurrence_id = $1 order by id", row["id"])
        assert [one["kind"] for one in kinds] == ["claim", *["takeover"] * (ATTEMPTS - 1), "fan_out_failed"]

    async def test_another_that_waits_is_taken_in_its_place(self, session: Session) -> None:
        given_up = await claimed(session, job_at())
        other = await claimed(session, job_at(name="other"))
        await session.execute(
            "update matins.occurrence set fan_out_attempts = $2 where id = $1", given_up.id, ATTEMPTS - 1
        )
        taken = await take_over(session, ["nightly", "other"], claimant("two"), now=DUE + HOUR)
        assert taken is not None
        assert taken.id == other.id

    async def test_a_holder_that_gives_its_claim_back_does_not_count(self, session: Session) -> None:
        claim: Claim | None = await claimed(session, job_at())
        now = DUE
        for number in range(2 * ATTEMPTS):
            assert claim is not None
            await release(session, claim, now=now)
            now += timedelta(seconds=1)
            claim = await take_over(session, ["nightly"], claimant(f"t{number}"), now=now)
            assert claim is not None
            assert claim.fan_out_attempts == 0

    async def test_a_database_that_is_away_is_no_failure_of_the_source(
        self, database_url: str, session: Session
    ) -> None:
        """Nothing can be recorded then; the next holder counts the silence."""
        await fill(session, 10)
        job = job_at()
        claim = await claimed(session, job)
        away = Away(lambda: database_url, name="test", size=1, timeout=timedelta(seconds=1))
        with pytest.raises(OSError, match="away"):
            await fan_out(FanOut(away, job, claimant()), claim)
        assert (await occurrence_row(session, claim.id))["fan_out_attempts"] == 0
        taken = await take_over(session, ["nightly"], claimant("two"), now=DUE + HOUR)
        assert taken is not None
        assert taken.fan_out_attempts == 1


class Away(Database):
    """A pool whose server is away."""

    def session(self) -> NoReturn:
        """Fail as a connect does then."""
        problem = "away"
        raise ConnectionRefusedError(problem)


async def test_a_claim_without_a_slot_is_gone_on_with_by_its_own_trigger_or_by_another(
    database_url: str, session: Session
) -> None:
    reading, goes_on = anyio.Event(), anyio.Event()

    async def slow(_call: SourceCall) -> AsyncIterator[AccountAt]:
        reading.set()
        await goes_on.wait()
        yield AccountAt("slow", "1")

    names = ("first", "second", "third")
    jobs = {name: job_at(HOURLY, name=name, accounts=GeneratedAccounts(slow)) for name in names}
    claims = [await claimed_now(session, job) for job in jobs.values()]
    async with database_on(database_url) as database:
        fan_outs = FanOuts(database, jobs, claimant(), 1, lambda _: None, Stopping())
        async with anyio.create_task_group() as work:
            for claim in claims:
                fan_outs.accept(claim)
            await fan_outs.start_pass(work)
            await reading.wait()
            assert [claim.identity.job for claim in fan_outs.offered] == ["second", "third"]
            taken = await take_over(session, ["second"], claimant("two"))
            assert taken is not None
            goes_on.set()
            while fan_outs.running:
                await anyio.lowlevel.checkpoint()
            await fan_outs.start_pass(work)
    sealed = await session.fetch("select job from matins.occurrence where sealed_at is not null order by job")
    assert [row["job"] for row in sealed] == ["first", "third"]
    takeovers = await session.fetch("select job, instance from matins.audit where kind = 'takeover'")
    assert [tuple(row) for row in takeovers] == [("second", "two")]


async def test_a_fan_out_that_no_server_and_no_source_has_stopped_is_named(database_url: str, session: Session) -> None:
    job = job_at(HOURLY)
    await fill(session, 3)
    claim = await claimed_now(session, job)
    await session.execute("alter table matins.occurrence rename to gone")
    stopping = Stopping()

    async def work(fan_outs: FanOuts) -> None:
        async with anyio.create_task_group() as group:
            fan_outs.accept(claim)
            await fan_outs.start_pass(group)

    async with database_on(database_url) as database:
        with pytest.raises(ExceptionGroup) as died:
            await work(FanOuts(database, {job.name: job}, claimant(), 1, lambda _: None, stopping))
    [part] = died.value.exceptions
    assert isinstance(part, PartDied)
    assert part.name == f"fan out {claim.identity}"
    assert "matins.occurrence" in part.reason
    assert stopping.requested


async def test_a_claim_that_cannot_be_given_back_hides_nothing(database_url: str, session: Session) -> None:
    """The server has lost the table while a fan-out is being ended: whoever ends it hears of no second fault."""
    reading = anyio.Event()

    async def endless(_call: SourceCall) -> AsyncIterator[AccountAt]:
        reading.set()
        await anyio.sleep_forever()
        yield AccountAt("never", "1")

    job = job_at(HOURLY, accounts=GeneratedAccounts(endless))
    claim = await claimed_now(session, job)
    async with database_on(database_url) as database:
        fan_outs = FanOuts(database, {job.name: job}, claimant(), 1, lambda _: None, Stopping())
        async with anyio.create_task_group() as work:
            fan_outs.accept(claim)
            await fan_outs.start_pass(work)
            await reading.wait()
            await session.execute("alter table matins.occurrence rename to gone")
            work.cancel_scope.cancel()
    assert fan_outs.running == 0


async def claimed_now(session: Session, job: Job) -> Claim:
    """Claim the latest instant of an hourly job, so that its lease lasts from now."""
    now: datetime = await session.fetchval("select clock_timestamp()")
    revision = await planned(session, job, now - 2 * HOUR)
    await planned(session, job, now)
    while not isinstance(outcome := await claim_due(session, job, revision, claimant(), now=now), Won):
        assert isinstance(outcome, Nothing), outcome
        assert outcome.more, outcome
    return outcome.claim
