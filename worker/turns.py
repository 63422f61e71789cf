"""Whose turn an account has: where a job's occurrences overlap by account, it waits for the occurrences before.

Two things are decided at the start, and never earlier. That nobody else runs the account: its lock is taken first, and
held for as long as the transaction. And that it is done in every earlier occurrence that is active: read behind the
lock, in a statement of its own, so that nothing that a former holder has left is overlooked. What has to wait is
recorded as a further try that is not charged, and published to a delay.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from shared.job import Job
from shared.postgres import Row, Session
from shared.sql_files import statement
from worker.occurrences import WorkOccurrence
from worker.outcome import Outcome, Result
from worker.settle import Again, Settlement, settle_in_transaction, start_as_login

START_ROWS = statement("worker", "start_rows")
LOCK_ACCOUNTS = statement("worker", "lock_accounts")
BLOCKED_ACCOUNTS = statement("worker", "blocked_accounts")


@dataclass(slots=True)
class Ran:
    """What one transaction did: outcomes by account, retries to publish, and accounts whose row was not to be had."""

    outcomes: dict[str, Outcome] = field(default_factory=dict)
    again: list[Again] = field(default_factory=list)
    missed: tuple[str, ...] = ()
    started_at: datetime | None = None

    @property
    def waits(self) -> bool:
        """Whether an account must wait for its turn."""
        return any(one.result is Result.BLOCKED for one in self.outcomes.values())


def take_turns(job: Job) -> bool:
    """Tell whether the job's accounts wait for the occurrences before."""
    return job.decisions.overlap_by == "account"


async def start(
    session: Session,
    job: Job,
    occurrence: WorkOccurrence,
    accounts: Sequence[str],
    generation: int,
    now: datetime | None,
    *,
    as_login: bool,
    in_turn: bool,
) -> tuple[list[Any], dict[str, Outcome]]:
    """Take rows for this transaction; give them, and what becomes of those that must wait for their turn.

    With `as_login` the session is the job's own login's. Raises RoleUnavailable for a login of another job.
    """
    if as_login:
        rows = await start_as_login(session, occurrence, accounts, generation, in_turn=in_turn)
        return rows, {row["account"]: _waits(row) for row in rows if in_turn and row["wait"] is not None}
    held = await lock_accounts(session, job.name, accounts) if in_turn else []
    rows = await session.fetch(START_ROWS, occurrence.id, occurrence.scheduled_at, list(accounts), generation, now)
    if not in_turn or not rows:
        return rows, {}
    return rows, await blocked(session, occurrence, [row["account"] for row in rows], held, now)


async def lock_accounts(session: Session, job: str, accounts: Sequence[str]) -> list[str]:
    """Lock accounts until the transaction's end; give those that no other holds."""
    return [row["account"] for row in await session.fetch(LOCK_ACCOUNTS, job, list(accounts))]


async def blocked(
    session: Session, occurrence: WorkOccurrence, accounts: Sequence[str], held: Sequence[str], now: datetime | None
) -> dict[str, Outcome]:
    """Give what becomes of the accounts that must wait; `held` are those whose lock this transaction has."""
    rows: list[Any] = await session.fetch(BLOCKED_ACCOUNTS, occurrence.id, list(accounts), list(held), now)
    return {row["account"]: _waits(row) for row in rows}


async def wait_outside(
    session: Session, job: Job, settlement: Settlement, account: str, generation: int, now: datetime | None
) -> Ran | None:
    """Take an account for the start of an outside call in this transaction; where it must wait, record that.

    None when it may start, or when its row is not to be had.
    """
    occurrence = settlement.occurrence
    rows, waiting = await start(
        session, job, occurrence, [account], generation, now, as_login=False, in_turn=take_turns(job)
    )
    if not rows or not waiting:
        return None
    return Ran(waiting, await settle_in_transaction(session, settlement, waiting))


def _waits(row: Row) -> Outcome:
    return Outcome(Result.BLOCKED, wait=row["wait"])
