"""Running one account by hand, in the ordinary way of the job's handler, without a ledger row and without the broker.

In a transaction the effect is kept or, in a dry run, rolled back. A second run in the same transaction shows whether
the handler is idempotent: PostgreSQL counts the rows that each run wrote, table by table.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, cast

import anyio

from schemas.occurrence import Identity
from shared import clock
from shared.calls import OutsideCall, Window, idempotency_key
from shared.errors import MatinsError
from shared.job import EveryWorker, Job, Outside, SetBased
from shared.lifecycle import instance_id
from shared.postgres import Row, Session, connect, is_over
from shared.role_names import RoleNames
from shared.settings import Settings
from shared.sql_files import statement
from worker.evidence import record_trial
from worker.invoke import Function, Invocation
from worker.occurrences import WorkOccurrence
from worker.outcome import Outcome, Result
from worker.outside import OutsideRunner
from worker.savepoints import silent_at_most
from worker.transaction import FROZEN_MARGIN, Runner

WRITTEN_ROWS = statement("worker", "written_rows")
GOOD = (Result.SUCCEEDED, Result.NOTHING_TO_DO)
# No ledger row stands behind a trial: an id that no occurrence has.
NO_OCCURRENCE = 0

Written = dict[str, dict[str, int]]


@dataclass(frozen=True, slots=True)
class OneRun:
    """What one run did: its outcome, rows written by table (inserted, updated, deleted), an outside call's value."""

    outcome: Outcome
    seconds: float
    wrote: Written
    value: Any = None

    @property
    def good(self) -> bool:
        """It succeeded, or had nothing to do."""
        return self.outcome.result in GOOD


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried.

    `kept` tells whether the transaction was committed, None where there was none. `differs` says how the second run
    changed something, '' when it didn't or there was none. `recorded`: workers may run this code for themselves.
    """

    occurrence: Identity
    window: Window
    key: str
    runs: tuple[OneRun, ...]
    kept: bool | None
    differs: str = ""
    recorded: bool = False

    @property
    def good(self) -> bool:
        """Every run was good, and the second changed nothing."""
        return all(run.good for run in self.runs) and not self.differs


class TransactionTrial(Runner):
    """The worker's own way of running an account in a transaction, with a made-up row."""

    async def once(self, session: Session, occurrence: WorkOccurrence, account: str) -> OneRun:
        """Run the account once, in savepoints of the open transaction."""
        execute = self._set_based if isinstance(self.job.handler, SetBased) else self._per_account
        row = cast("Row", {"account": account, "attempts": 0, "key_salt": ""})
        before, began = await _written(session), clock.monotonic()
        outcome = (await execute(session, occurrence, [row]))[account]
        seconds = clock.monotonic() - began
        wrote = _difference(before, await _written(session))
        # What a handler wrote before it raised was rolled back to its savepoint, and is counted all the same.
        raised = not isinstance(self.job.handler, SetBased) and outcome.result is not Result.SUCCEEDED
        return OneRun(outcome, seconds, {} if raised else wrote)

    async def commit(self, session: Session) -> None:
        """Keep what was done. Raises CommitFailed."""
        await self._commit(session)


class OutsideTrial(OutsideRunner):
    """The worker's own way of making an outside call, without a start and a settle."""

    async def once(self, call: OutsideCall) -> OneRun:
        """Make the call once."""
        began = clock.monotonic()
        outcome, value = await self._outcome(call, call.attempt)
        return OneRun(outcome, clock.monotonic() - began, {}, value)


def due_window(job: Job, at: datetime) -> tuple[Identity, Window]:
    """Give the identity and the window of an occurrence that would be due at `at`."""
    since = job.schedule.previous_before(at) or at
    return Identity(job.name, at), Window(since, at)


def latest_due(job: Job) -> datetime:
    """Give the latest instant at which the job was due. Raises MatinsError when it never was."""
    found = job.schedule.previous_before(clock.utc_now())
    if found is None:
        problem = f"{job.name} was never due so far: name an instant with --at"
        raise MatinsError(problem)
    return found


async def try_account(
    settings: Settings,
    job: Job,
    function: Function,
    account: str,
    at: datetime,
    *,
    dry_run: bool,
    twice: bool,
    actor: str = "",
) -> Trial:
    """Run one account of a job, once or twice; nothing is kept when anything was not good.

    Of what every worker runs for itself, a second run that changed nothing is recorded, by `actor`. Raises
    DatabaseUnavailable, CommitFailed when the job's code ended the transaction, and the driver's errors.
    """
    invocation = Invocation(function, job.handler.timeout, anyio.CapacityLimiter(1))
    identity, window = due_window(job, at)
    occurrence = WorkOccurrence(NO_OCCURRENCE, identity, window, "")
    if isinstance(job.handler, Outside):
        return await _try_outside(settings, job, invocation, occurrence, account, twice=twice)
    login = job.handler.login
    session = await connect(
        settings.secret("database_url") if login is None else settings.login_url(login),
        name="matins worker try",
        timeout=settings.database_timeout,
        statement_cache_size=settings.statement_cache_size,
    )
    try:
        trial = await _try_in_transaction(
            session, job, invocation, occurrence, account, settings.database_roles, keep=not dry_run, twice=twice
        )
        if isinstance(job.handler, EveryWorker) and trial.good and twice:
            await record_trial(session, job, function, actor)
            trial = replace(trial, recorded=True)
        return trial
    finally:
        await session.close()


async def _try_in_transaction(
    session: Session,
    job: Job,
    invocation: Invocation,
    occurrence: WorkOccurrence,
    account: str,
    names: RoleNames,
    *,
    keep: bool,
    twice: bool,
) -> Trial:
    runner = TransactionTrial(job, invocation, instance_id(), names=names)
    await session.execute(f"begin; {silent_at_most(job.handler.timeout + FROZEN_MARGIN)}")
    try:
        runs = [await runner.once(session, occurrence, account)]
        if twice and runs[0].good:
            runs.append(await runner.once(session, occurrence, account))
        differs = _rewritten(runs[1].wrote) if len(runs) > 1 else ""
        kept = keep and not differs and all(run.good for run in runs)
        if kept:
            await runner.commit(session)
    finally:
        if not is_over(session) and session.is_in_transaction():
            await session.execute("rollback")
    key = idempotency_key(occurrence.identity, account)
    return Trial(occurrence.identity, occurrence.window, key, tuple(runs), kept, differs)


async def _try_outside(
    settings: Settings, job: Job, invocation: Invocation, occurrence: WorkOccurrence, account: str, *, twice: bool
) -> Trial:
    key = idempotency_key(occurrence.identity, account)
    runner = OutsideTrial(job, invocation, instance_id(), settings.outside_lease, settings.max_crashes)
    runs = []
    for attempt in (1, 2) if twice else (1,):
        call = OutsideCall(occurrence.identity, occurrence.window, account, attempt, key)
        runs.append(await runner.once(call))
        if not runs[-1].good:
            break
    differs = ""
    if len(runs) > 1 and runs[1].good and runs[0].value != runs[1].value:
        differs = "the same key gave another value: the provider may have done it twice"
    return Trial(occurrence.identity, occurrence.window, key, tuple(runs), kept=None, differs=differs)


async def _written(session: Session) -> Written:
    rows = await session.fetch(WRITTEN_ROWS)
    names = ("inserted", "updated", "deleted")
    return {row["name"]: {name: row[name] for name in names} for row in rows}


def _difference(before: Mapping[str, Mapping[str, int]], after: Written) -> Written:
    """Give what was written between two looks, table by table, without zeroes."""
    found = {}
    for table, counts in after.items():
        wrote = {name: count - before.get(table, {}).get(name, 0) for name, count in counts.items()}
        if any(wrote.values()):
            found[table] = {name: count for name, count in wrote.items() if count}
    return found


def _rewritten(wrote: Written) -> str:
    """Say what a second run wrote, '' for nothing."""
    return "; ".join(
        f"{table}: {', '.join(f'{count} {name}' for name, count in counts.items())}" for table, counts in wrote.items()
    )
