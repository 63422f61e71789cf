"""Effects outside the database: the start is committed, the call holds no transaction, and the settle is fenced.

The lease only says when another may take the account over; what keeps a late worker from settling is the row's epoch.
"""

import contextlib
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import anyio
import orjson

from shared import clock
from shared.calls import OutsideCall, idempotency_key
from shared.job import Job
from shared.logs import logger
from shared.masking import text_of
from shared.postgres import Database, Row, Session, database_now, is_transient, transaction
from shared.sql_files import statement
from worker.invoke import Invocation
from worker.occurrences import WorkOccurrence
from worker.outcome import LONGEST_ERROR, SUCCEEDED, UNTRIED, Outcome, Result, Tries, clean
from worker.settle import Again, Fenced, Settlement
from worker.turns import Ran, take_turns, wait_outside

START_OUTSIDE = statement("worker", "start_outside")
RENEW_OUTSIDE = statement("worker", "renew_outside")
SETTLE_OUTSIDE = statement("worker", "settle_outside")
SETTLED_BY_HANDLER = statement("worker", "settled_by_handler")
LARGEST_RESULT = 4096
_STATE = {
    Result.SUCCEEDED: "succeeded",
    Result.NOTHING_TO_DO: "succeeded",
    Result.RETRY: "pending",
    Result.UNTRIED: "pending",
    Result.FAILED: "failed",
}
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Started:
    """A committed start: the fence, which try it is, and the idempotency key."""

    occurrence: WorkOccurrence
    account: str
    epoch: int
    attempt: int
    key: str
    started_at: datetime
    trace_context: str

    @property
    def ticket(self) -> str:
        """What `matins.settle` takes, for code that settles its account in a transaction of its own."""
        row = {
            "occurrence_id": self.occurrence.id,
            "scheduled_at": self.occurrence.scheduled_at.isoformat(),
            "epoch": self.epoch,
            "account": self.account,
        }
        return orjson.dumps(row).decode()


class KillsWorkers(Exception):
    """The account has used up its starts: every one of them ended its worker."""


def result_of(value: object) -> Any:
    """Make a handler's value fit for the row: JSON, at most 4 KiB. Raises ValueError or TypeError, naming the limit."""
    if value is None:
        return None
    encoded = orjson.dumps(value)
    if _holds_no_number(value):
        problem = "the result holds a number that JSON has no form for (NaN or infinite)"
        raise ValueError(problem)
    if len(encoded) > LARGEST_RESULT:
        problem = f"the result has {len(encoded)} bytes as JSON; at most {LARGEST_RESULT} are kept"
        raise ValueError(problem)
    if b"\\u0000" in encoded:
        problem = "the result holds a NUL character, which the database cannot keep"
        raise ValueError(problem)
    return orjson.loads(encoded)


def _holds_no_number(value: object) -> bool:
    """Tell whether a value that can be encoded, so that it is not too deep, holds what would be written as null."""
    match value:
        case float():
            return not math.isfinite(value)
        case list() | tuple():
            return any(_holds_no_number(one) for one in value)
        case dict():
            return any(_holds_no_number(one) for one in value.values())
    return False


@dataclass(frozen=True, slots=True)
class OutsideRunner:
    """How one job's outside calls are made by this worker."""

    job: Job
    invocation: Invocation
    instance: str
    lease: timedelta
    max_crashes: int
    chance: Callable[[], float] = random.random

    async def start(
        self,
        session: Session,
        occurrence: WorkOccurrence,
        account: str,
        generation: int,
        published_at: datetime,
        *,
        now: datetime | None = None,
    ) -> Started | Ran | None:
        """Commit a start; None when the row is not to be had, Ran when the account must wait for its turn.

        Raises KillsWorkers when no start is left.
        """
        arguments = (
            occurrence.id,
            occurrence.scheduled_at,
            account,
            generation,
            now,
            self.max_crashes,
            self.lease,
            self.instance,
            published_at,
        )
        if not take_turns(self.job):
            return self._started(occurrence, account, await session.fetchrow(START_OUTSIDE, *arguments))
        async with transaction(session):
            settlement = Settlement(occurrence, await database_now(session), self.instance, published_at, "")
            waits = await wait_outside(session, self.job, settlement, account, generation, now)
            row = await session.fetchrow(START_OUTSIDE, *arguments) if waits is None else None
        return waits or self._started(occurrence, account, row)

    def _started(self, occurrence: WorkOccurrence, account: str, row: Row | None) -> Started | None:
        if row is None:
            return None
        if not row["allowed"]:
            problem = f"started {row['starts']} times, and each time the worker ended"
            raise KillsWorkers(problem)
        key = idempotency_key(occurrence.identity, account, salt=row["key_salt"])
        return Started(
            occurrence, account, row["epoch"], row["attempts"] + 1, key, row["started_at"], row["trace_context"] or ""
        )

    async def call(self, database: Database, started: Started) -> tuple[Outcome, Any]:
        """Make the call, with the lease renewed beside it; give the outcome and the value. Raises Fenced."""
        occurrence = started.occurrence
        call = OutsideCall(
            occurrence.identity, occurrence.window, started.account, started.attempt, started.key, started.ticket
        )
        fenced = False
        outcome: tuple[Outcome, Any] = (SUCCEEDED, None)
        async with anyio.create_task_group() as group:

            async def renew() -> None:
                nonlocal fenced
                if await self._renew(database, started):
                    fenced = True
                    group.cancel_scope.cancel()

            group.start_soon(renew)
            outcome = await self._outcome(call, started.attempt)
            group.cancel_scope.cancel()
        if fenced:
            problem = "another worker has taken the account over"
            raise Fenced(problem)
        if outcome[0] is not SUCCEEDED and await self._settled_by_handler(database, started):
            # What it raised came behind its commit: effect and row are one, whatever it says.
            return SUCCEEDED, None
        return outcome

    async def hand_back(self, database: Database, started: Started) -> None:
        """Give back, uncharged, an account whose call was cut off by the drain: the worker did not die of it."""
        with contextlib.suppress(Fenced):
            async with database.session() as session:
                await self.settle(session, started, UNTRIED, None, started.trace_context)

    async def _outcome(self, call: OutsideCall, attempt: int) -> tuple[Outcome, Any]:
        try:
            value = await self.invocation.plainly(call)
        except (Exception, SystemExit, BaseExceptionGroup) as error:  # noqa: BLE001 - whatever it raises is its outcome
            return Tries(self.job.max_tries, self.job.backoff).after(error, attempt, self.chance()), None
        try:
            return SUCCEEDED, result_of(value)
        except (ValueError, TypeError) as error:
            # The effect has happened: another try would only repeat it.
            return Outcome(Result.FAILED, "result", clean(text_of(error), LONGEST_ERROR)), None

    async def _renew(self, database: Database, started: Started) -> bool:
        """Renew until cancelled; True when the row is no longer ours. A server that is away fences nobody.

        A call that has settled its account itself has nothing left to renew, and goes on.
        """
        occurrence = started.occurrence
        while True:
            await clock.sleep(self.lease.total_seconds() / 3)
            try:
                async with database.session() as session:
                    held = await session.fetchval(
                        RENEW_OUTSIDE,
                        occurrence.id,
                        occurrence.scheduled_at,
                        started.account,
                        started.epoch,
                        self.lease,
                        None,
                    )
            except Exception as error:
                if not is_transient(error):
                    raise
                _log.warning("lease not renewed", account=started.account, error=str(error))
                continue
            if held is None:
                return not await self._settled_by_handler(database, started)

    async def _settled_by_handler(self, database: Database, started: Started) -> bool:
        if self.job.handler.login is None:
            return False
        try:
            async with database.session() as session:
                return await self._is_settled(session, started)
        except Exception as error:
            if not is_transient(error):
                raise
            # The settle that follows asks again, for as long as it takes.
            return False

    async def _is_settled(self, session: Session, started: Started) -> bool:
        """Tell whether the job's own code has settled the account, in a transaction of its own."""
        occurrence = started.occurrence
        return self.job.handler.login is not None and bool(
            await session.fetchval(
                SETTLED_BY_HANDLER, occurrence.id, occurrence.scheduled_at, started.account, started.epoch
            )
        )

    async def settle(
        self, session: Session, started: Started, outcome: Outcome, value: object, trace_context: str = ""
    ) -> list[Again]:
        """Settle under the epoch of the start; give the further try to publish, if any. Raises Fenced."""
        occurrence = started.occurrence
        row: Row | None = await session.fetchrow(
            SETTLE_OUTSIDE,
            occurrence.id,
            occurrence.scheduled_at,
            started.account,
            started.epoch,
            _STATE[outcome.result],
            outcome.charged,
            outcome.wait,
            outcome.error_class,
            outcome.error,
            outcome.result is Result.NOTHING_TO_DO,
            value,
            trace_context,
        )
        if row is None:
            if await self._is_settled(session, started):
                return []
            problem = "another worker has taken the account over"
            raise Fenced(problem)
        if _STATE[outcome.result] != "pending":
            return []
        return [Again(started.account, row["epoch"], outcome.wait, isolated=False, settled_at=row["settled_at"])]

    async def settle_patiently(
        self, database: Database, started: Started, outcome: Outcome, value: object, trace_context: str = ""
    ) -> list[Again]:
        """Settle; while the database is away try on, for only we know of the effect. Raises Fenced."""
        while True:
            try:
                async with database.session() as session:
                    return await self.settle(session, started, outcome, value, trace_context)
            except Exception as error:
                if not is_transient(error):
                    raise
                _log.warning("settle will be tried again", account=started.account, error=str(error))
            await clock.sleep(min(1.0, self.lease.total_seconds() / 3))
