"""Effect and ledger in one transaction: take the rows, run the job's code in savepoints, settle, commit.

The job's code may do anything to the transaction, so what must hold is checked behind it and not hoped for. Its
savepoint has a name that it cannot guess: that it can be released proves that the transaction is the same one, and that
it isn't aborted. Deferred constraints are checked while the account still stands alone, and the job's role is given
back before the ledger is written, with qualified names.
"""

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from shared import clock
from shared.calls import ChunkCall
from shared.errors import MatinsError
from shared.job import EveryWorker, Job, SetBased
from shared.limits import CHUNK_BUDGET
from shared.postgres import CONFLICTS, Row, Session, is_lost_connection, is_over
from shared.role_names import NO_OTHER_NAMES, RoleNames
from worker.account_call import call_of
from worker.invoke import Invocation
from worker.occurrences import WorkOccurrence
from worker.outcome import SUCCEEDED, UNTRIED, NotReported, Outcome, Tries, of_chunk
from worker.savepoints import CommitFailed, Savepoints, behind_foreign_code, silent_at_most
from worker.settle import Settlement, Settling, settle_as_login, settle_in_transaction
from worker.turns import Ran, start, take_turns

# The session of a worker that is frozen in a transaction ends by itself, so that another can have its rows.
FROZEN_MARGIN = timedelta(seconds=5)
# Well inside the broker's ack timeout, with one more handler timeout on top.
CHUNK_BUDGET_SECONDS = CHUNK_BUDGET.total_seconds()

Execute = Callable[[Session, WorkOccurrence, Sequence[Row]], Awaitable[dict[str, Outcome]]]


class SessionLost(MatinsError):
    """The database session ended while the job's code ran: what it did is undone, and nobody was charged."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Accounts of one occurrence and generation, from one message or from several that waited together."""

    occurrence: WorkOccurrence
    generation: int
    accounts: tuple[str, ...]
    published_at: datetime


@dataclass(frozen=True, slots=True)
class Runner:
    """How one job's accounts are run in a transaction, by this worker."""

    job: Job
    invocation: Invocation
    instance: str
    chance: Callable[[], float] = random.random
    budget_seconds: float = CHUNK_BUDGET_SECONDS
    names: RoleNames = NO_OTHER_NAMES
    charge_conflicts: bool = False

    @property
    def role(self) -> str | None:
        """The database role that the job's code runs in, under its name on this cluster."""
        role = self.job.handler.role
        return None if role is None else self.names.of(role)

    @property
    def _silence(self) -> timedelta:
        return self.invocation.timeout + FROZEN_MARGIN

    @property
    def tries(self) -> Tries:
        """What decides whether there is another try."""
        # A worker's own run is not tried again: the next instant is its next try.
        allowed = 1 if isinstance(self.job.handler, EveryWorker) else self.job.max_tries
        return Tries(allowed, self.job.backoff)

    async def run(
        self,
        session: Session,
        batch: Batch,
        *,
        trace_context: str = "",
        settling: Settling | None = None,
        now: datetime | None = None,
    ) -> Ran:
        """Run a batch in a transaction of its own on `session`, which is the job's own login's if it has one.

        Raises CommitFailed when the commit did not hold, SessionLost when the session ended under the job's code, and
        the driver's errors when the server is not to be had; then nothing was done, and nobody was charged.
        """
        try:
            return await self._transaction(session, batch, self._execute, trace_context, now, settling)
        except CONFLICTS:
            if self.charge_conflicts:
                raise
            # Nobody is to blame. But code that provokes it itself would go on for ever, so the second time is its own.
            again = replace(self, charge_conflicts=True)
            return await again.run(session, batch, trace_context=trace_context, settling=settling, now=now)

    @property
    def _execute(self) -> Execute:
        return self._set_based if isinstance(self.job.handler, SetBased) else self._per_account

    async def record_failure(
        self,
        session: Session,
        batch: Batch,
        error: CommitFailed,
        *,
        trace_context: str = "",
        now: datetime | None = None,
    ) -> Ran:
        """Charge the accounts of a batch whose own commit failed, in a transaction that runs none of the job's code.

        `session` is the worker's own, also for a job with a login.
        """

        async def fail(_session: Session, _occurrence: WorkOccurrence, rows: Sequence[Row]) -> dict[str, Outcome]:
            return {row["account"]: self.tries.after(error, row["attempts"] + 1, self.chance()) for row in rows}

        return await self._transaction(session, batch, fail, trace_context, now, None, charging=True)

    async def _transaction(
        self,
        session: Session,
        batch: Batch,
        execute: Execute,
        trace_context: str,
        now: datetime | None,
        settling: Settling | None,
        *,
        charging: bool = False,
    ) -> Ran:
        await session.execute(f"begin; {silent_at_most(self._silence)}")
        try:
            ran = await self._within(session, batch, execute, trace_context, now, settling, charging=charging)
            if ran.outcomes:
                await self._commit(session)
            return ran
        finally:
            if not is_over(session) and session.is_in_transaction():
                await session.execute("rollback")

    async def _within(
        self,
        session: Session,
        batch: Batch,
        execute: Execute,
        trace_context: str,
        now: datetime | None,
        settling: Settling | None,
        *,
        charging: bool,
    ) -> Ran:
        occurrence = batch.occurrence
        as_login = self.job.handler.login is not None and not charging
        rows, blocked = await start(
            session,
            self.job,
            occurrence,
            batch.accounts,
            batch.generation,
            now,
            as_login=as_login,
            in_turn=take_turns(self.job) and not charging,
        )
        found = {row["account"] for row in rows}
        ran = Ran(missed=tuple(account for account in batch.accounts if account not in found))
        if not rows:
            return ran
        ran.started_at = rows[-1]["started_at"]
        settlement = Settlement(occurrence, ran.started_at, self.instance, batch.published_at, trace_context)
        with behind_foreign_code(session):
            running = [row for row in rows if row["account"] not in blocked]
            done = await self._executed(session, execute, occurrence, running) if running else {}
            ran.outcomes = blocked | done
            if as_login:
                epochs = {row["account"]: row["epoch"] for row in rows}
                ran.again = await settle_as_login(session, settlement, ran.outcomes, epochs, settling)
            else:
                ran.again = await settle_in_transaction(session, settlement, ran.outcomes, settling)
        return ran

    async def _executed(
        self, session: Session, execute: Execute, occurrence: WorkOccurrence, rows: Sequence[Row]
    ) -> dict[str, Outcome]:
        try:
            return await execute(session, occurrence, rows)
        except Exception as error:
            if is_over(session) and not isinstance(error, MatinsError):
                problem = f"{type(error).__name__}: {error}"
                raise SessionLost(problem) from error
            raise

    async def _commit(self, session: Session) -> None:
        try:
            tag = await session.execute("commit")
        except Exception as error:
            if is_lost_connection(error) or isinstance(error, TimeoutError):
                raise
            if isinstance(error, CONFLICTS) and not self.charge_conflicts:
                raise
            problem = f"{type(error).__name__}: {error}"
            raise CommitFailed(problem) from error
        if tag != "COMMIT":
            # PostgreSQL answers the commit of an aborted transaction with ROLLBACK, and no error.
            problem = f"the commit was answered with {tag}"
            raise CommitFailed(problem)

    async def _per_account(
        self, session: Session, occurrence: WorkOccurrence, rows: Sequence[Row]
    ) -> dict[str, Outcome]:
        marks = Savepoints(session, self.role, self._silence, charge_conflicts=self.charge_conflicts)
        outcomes: dict[str, Outcome] = {}
        deadline = clock.monotonic() + self.budget_seconds
        for number, row in enumerate(rows, 1):
            if outcomes and clock.monotonic() > deadline:
                outcomes[row["account"]] = UNTRIED
                continue
            outcomes[row["account"]] = await self._one(session, occurrence, row, marks, last=number == len(rows))
        await marks.finish()
        return outcomes

    async def _one(
        self, session: Session, occurrence: WorkOccurrence, row: Row, marks: Savepoints, *, last: bool
    ) -> Outcome:
        error = await marks.run(
            lambda: self.invocation.with_connection(session, lambda lent: call_of(self.job, occurrence, row, lent)),
            last=last,
        )
        return SUCCEEDED if error is None else self.tries.after(error, row["attempts"] + 1, self.chance())

    async def _set_based(self, session: Session, occurrence: WorkOccurrence, rows: Sequence[Row]) -> dict[str, Outcome]:
        """Run the chunk; what fails as a whole is halved, until an account that stands alone can be charged."""
        attempts: Mapping[str, int] = {row["account"]: row["attempts"] + 1 for row in rows}
        outcomes: dict[str, Outcome] = {}
        marks = Savepoints(session, self.role, self._silence, charge_conflicts=self.charge_conflicts)
        deadline = clock.monotonic() + self.budget_seconds
        waiting = [tuple(attempts)]
        while waiting:
            group = waiting.pop()
            if outcomes and clock.monotonic() > deadline:
                outcomes.update(dict.fromkeys(group, UNTRIED))
                continue
            said = await self._chunk(session, occurrence, group, marks, last=not waiting)
            if isinstance(said, BaseException) and len(group) > 1:
                middle = len(group) // 2
                waiting += [group[middle:], group[:middle]]
            elif isinstance(said, BaseException):
                outcomes[group[0]] = self.tries.after(said, attempts[group[0]], self.chance())
            else:
                outcomes.update(self._of_group(said, attempts))
        await marks.finish()
        return outcomes

    async def _chunk(
        self, session: Session, occurrence: WorkOccurrence, group: tuple[str, ...], marks: Savepoints, *, last: bool
    ) -> dict[str, BaseException | Outcome] | BaseException:
        said: dict[str, BaseException | Outcome] = {}

        async def call() -> None:
            handled = await self.invocation.with_connection(
                session, lambda lent: ChunkCall(occurrence.identity, occurrence.window, group, lent)
            )
            said.update(of_chunk(handled, group))

        return await marks.run(call, last=last) or said

    def _of_group(self, said: Mapping[str, BaseException | Outcome], attempts: Mapping[str, int]) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        for account, one in said.items():
            if isinstance(one, Outcome):
                outcomes[account] = one
            elif isinstance(one, NotReported) and len(said) > 1:
                # Only an account that stood alone is charged for what was not said of it.
                outcomes[account] = UNTRIED
            else:
                outcomes[account] = self.tries.after(one, attempts[account], self.chance())
        return outcomes
