"""Writing an occurrence's ledger rows a page at a time, sealing it, and taking over where another has gone silent.

A page's rows and its cursor commit together, under the epoch of the claim: of two fan-outs of one occurrence the former
one's next write changes nothing, and it stops. The lease is renewed by each page, and beside a slow one.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial

import anyio

from shared import clock
from shared.closing import close_and_tell
from shared.job import Job
from shared.logs import logger
from shared.postgres import Database, DatabaseError, DriverError, Session, is_transient
from shared.role_names import NO_OTHER_NAMES, RoleNames
from shared.sql_files import statement
from shared.telemetry import Span, fan_out_span, metrics, takeover_span
from trigger.account_id import checked
from trigger.claim_outcome import Claim, Claimant
from trigger.decide import claim_of
from trigger.page_query import FaultySource
from trigger.pages import PAGE_SECONDS, Page, Pager, open_pager
from trigger.source_faults import cancel_requests, described, forgive_cancelling, is_ours

TAKE_OVER = statement("trigger", "take_over")
RENEW_CLAIM = statement("trigger", "renew_claim")
RELEASE_CLAIM = statement("trigger", "release_claim")
MOVE_CURSOR = statement("trigger", "move_cursor")
WRITE_PAGE = statement("trigger", "write_page")
KNOW_ACCOUNTS = statement("trigger", "know_accounts")
SEAL = statement("trigger", "seal")
FAIL_FAN_OUT = statement("trigger", "fail_fan_out")

ATTEMPTS = 5
FIRST_PAUSE = timedelta(seconds=5)
_log = logger(__name__)


class FanOutEnd(StrEnum):
    """How a process's part in a fan-out ended.

    FENCED: another has taken over, or dispatch was ended. RELEASED: given up between pages, for any other to go on.
    FAILED: the source failed; it is tried again after a pause, or the occurrence is ending.
    """

    SEALED = "sealed"
    FENCED = "fenced"
    RELEASED = "released"
    FAILED = "failed"


class _SourceFailed(Exception):
    """The source of the accounts raised."""


@dataclass(frozen=True, slots=True)
class FanOut:
    """What a fan-out works with; `stopping` is asked between pages, `written` called after each; `names` of roles."""

    database: Database
    job: Job
    claimant: Claimant
    stopping: Callable[[], bool] = lambda: False
    written: Callable[[], None] = lambda: None
    names: RoleNames = NO_OTHER_NAMES
    now: datetime | None = None


async def take_over(
    session: Session, jobs: list[str], claimant: Claimant, *, now: datetime | None = None
) -> Claim | None:
    """Take one claimed occurrence whose lease ran out, at the next epoch; None when there is none.

    One whose holders fell silent too often without a page is not taken: its dispatch is ended.
    """
    arguments = (jobs, claimant.instance, claimant.lease, ATTEMPTS, now)
    while (row := await session.fetchrow(TAKE_OVER, *arguments)) is not None:
        claim = claim_of(row)
        name, job = str(claim.identity), claim.identity.job
        if row["ending_reason"] is not None:
            _log.error("the fan-out is given up", job=job, occurrence=name, reason=row["ending_reason"])
            continue
        with takeover_span(job, name, parent=claim.trace_context, epoch=claim.epoch):
            metrics.takeovers.add(1, job=job)
        return claim
    return None


async def release(
    session: Session, claim: Claim, *, pause: timedelta = timedelta(0), now: datetime | None = None
) -> None:
    """Let another trigger go on after a pause; by default at once."""
    await session.execute(RELEASE_CLAIM, claim.id, claim.epoch, pause, now)


async def resume(session: Session, claim: Claim, claimant: Claimant, *, now: datetime | None = None) -> bool:
    """Hold a claim again that was given back; False when another has taken over since."""
    return await session.fetchval(RENEW_CLAIM, claim.id, claim.epoch, claimant.lease, now) is not None


async def fan_out(work: FanOut, claim: Claim) -> FanOutEnd:
    """Read and write pages from the claim's cursor on, until the occurrence is sealed or something is in the way.

    Raises the database's passing errors; the lease then lets another go on, which counts as a failed attempt unless
    the claim is given back.
    """
    name = str(claim.identity)
    with fan_out_span(work.job.name, name, parent=claim.trace_context, epoch=claim.epoch) as span:
        try:
            end = await _write_pages(work, claim, span)
        except _SourceFailed as failure:
            end = await _fail(work, claim, failure.__cause__ or failure, span)
        except Exception as error:
            if is_transient(error):
                raise
            end = await _fail(work, claim, error, span)
        span.set(outcome=end.value)
    if end is FanOutEnd.FENCED:
        metrics.fenced_writes.add(1, job=work.job.name, where="fan_out")
        _log.info("fan-out was taken over", job=work.job.name, occurrence=name, epoch=claim.epoch)
    if end is FanOutEnd.SEALED:
        async with work.database.session() as session:
            await close_and_tell(session, claim.id, by=work.claimant.instance)
    return end


async def _write_pages(work: FanOut, claim: Claim, span: Span) -> FanOutEnd:
    pages = 0
    async with open_pager(work.database, work.job, claim, work.names) as pager:
        while not work.stopping():
            page = await _read(work, pager, claim)
            if page is None:
                return FanOutEnd.FENCED
            if page.accounts:
                moved = await write_page(work, claim, page)
                if moved is None:
                    return FanOutEnd.FENCED
                claim, pages = moved, pages + 1
                work.written()
                span.set(pages=pages, accounts=claim.accounts_read)
            if page.last:
                return await seal(work, claim)
    async with work.database.session() as session:
        await release(session, claim, now=work.now)
    return FanOutEnd.RELEASED


async def write_page(work: FanOut, claim: Claim, page: Page) -> Claim | None:
    """Move the cursor and write the page's rows in one transaction; None when another has taken over."""
    entries = [checked(account) for account in page.accounts]
    lease = work.claimant.lease
    async with work.database.transaction() as session:
        moved = await session.fetchrow(
            MOVE_CURSOR, claim.id, claim.epoch, claim.cursor, page.cursor, len(entries), lease, work.now
        )
        if moved is None:
            return None
        await session.execute(
            WRITE_PAGE,
            claim.id,
            claim.identity.scheduled_at,
            moved["generation"],
            moved["accounts_read"] - len(entries),
            [account for account, _ in entries],
            [problem for _, problem in entries],
            work.now,
        )
        if work.job.decisions.overlap_by == "account":
            await session.execute(KNOW_ACCOUNTS, work.job.name, [one for one, problem in entries if problem is None])
    return replace(claim, cursor=page.cursor, accounts_read=moved["accounts_read"])


async def seal(work: FanOut, claim: Claim) -> FanOutEnd:
    """End the fan-out: the total is fixed."""
    async with work.database.session() as session:
        sealed = await session.fetchval(SEAL, claim.id, claim.epoch, claim.cursor, work.claimant.instance, work.now)
    return FanOutEnd.FENCED if sealed is None else FanOutEnd.SEALED


async def _read(work: FanOut, pager: Pager, claim: Claim) -> Page | None:
    """Read a page while the lease is kept; None when another has taken over meanwhile. Raises _SourceFailed."""
    page: Page | None = None
    problem: BaseException | None = None
    requests = cancel_requests()
    async with anyio.create_task_group() as group:
        group.start_soon(partial(_keep_lease, work, claim, group.cancel_scope))
        try:
            with anyio.fail_after(PAGE_SECONDS):
                page = await pager.read(claim.cursor)
            if page.accounts and page.cursor == claim.cursor and page.cursor is not None:
                problem = FaultySource(f"the cursor does not move: {page.cursor[:100]!r} ended two pages")
        except BaseException as error:
            if is_ours(error):
                raise
            forgive_cancelling(requests)
            problem = _first_said(error)
        group.cancel_scope.cancel()
    if problem is None:
        return page
    # Also where a session of ours was lost: if the server is away, recording the failure raises what says so.
    raise _SourceFailed from problem


def _first_said(error: BaseException) -> BaseException:
    """Give what the server said, where the driver then failed over the session that had ended."""
    return (
        error.__context__ if isinstance(error.__context__, DatabaseError) and isinstance(error, DriverError) else error
    )


async def _keep_lease(work: FanOut, claim: Claim, reading: anyio.CancelScope) -> None:
    """Renew the claim while a page is read; end the reading when the claim is another's."""
    while True:
        await clock.sleep(work.claimant.lease.total_seconds() / 3)
        try:
            async with work.database.session() as session:
                kept = await session.fetchval(RENEW_CLAIM, claim.id, claim.epoch, work.claimant.lease, work.now)
        except Exception as error:
            if not is_transient(error):
                raise
            continue
        if kept is None:
            reading.cancel()
            return


async def _fail(work: FanOut, claim: Claim, error: BaseException, span: Span) -> FanOutEnd:
    """Count the failure in the row; the next attempt is anybody's after a pause."""
    told = described(error)
    span.fail(type(error).__name__, told)
    instance = work.claimant.instance
    async with work.database.session() as session:
        row = await session.fetchrow(
            FAIL_FAN_OUT, claim.id, claim.epoch, told, ATTEMPTS, FIRST_PAUSE, instance, work.now
        )
    if row is None:
        return FanOutEnd.FENCED
    report = _log.error if row["ending"] else _log.warning
    report(
        "the accounts' source failed",
        job=work.job.name,
        occurrence=str(claim.identity),
        error_class=type(error).__name__,
        error=told,
        attempt=row["fan_out_attempts"],
        attempts=ATTEMPTS,
    )
    return FanOutEnd.FAILED
