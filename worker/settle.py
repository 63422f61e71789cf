"""Moving the ledger rows: success, another try, or the end; and publishing the further tries that were recorded."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.postgres import InsufficientPrivilege, Session
from shared.sql_files import statement
from worker.occurrences import WorkOccurrence
from worker.outcome import Outcome, Result
from worker.savepoints import RoleUnavailable

SETTLE_SUCCEEDED = statement("worker", "settle_succeeded")
SETTLE_UNSUCCESSFUL = statement("worker", "settle_unsuccessful")

START_AS_LOGIN = statement("worker", "start_as_login")
SETTLE_AS_LOGIN = statement("worker", "settle_as_login")

Settling = Callable[[], AbstractContextManager[Any]]
START_IN_TURN = statement("worker", "start_in_turn")

_STATE = {Result.RETRY: "pending", Result.UNTRIED: "pending", Result.BLOCKED: "pending", Result.FAILED: "failed"}


class Fenced(Exception):
    """A settle found that the row is no longer this worker's; nothing was changed."""


@dataclass(frozen=True, slots=True)
class Again:
    """A further try that is recorded and not yet published: the row's epoch, and the wait before it."""

    account: str
    epoch: int
    wait: timedelta
    isolated: bool
    settled_at: datetime


@dataclass(frozen=True, slots=True)
class Settlement:
    """What all rows of one settle share."""

    occurrence: WorkOccurrence
    started_at: datetime
    instance: str
    published_at: datetime
    trace_context: str


async def settle_in_transaction(
    session: Session,
    settlement: Settlement,
    outcomes: Mapping[str, Outcome],
    settling: Settling | None = None,
) -> list[Again]:
    """Move rows that this transaction has locked; give the further tries to publish once it has committed.

    Raises Fenced when a row did not move: the transaction is no longer the one that locked it.
    """
    with settling() if settling else nullcontext():
        good = [account for account, one in outcomes.items() if one.result in _GOOD]
        moved = 0
        if good:
            nothing = [account for account in good if outcomes[account].result is Result.NOTHING_TO_DO]
            tag = await session.execute(SETTLE_SUCCEEDED, *_key(settlement), good, nothing, *_rest(settlement))
            moved += int(tag.removeprefix("UPDATE "))
        again: list[Again] = []
        if len(good) < len(outcomes):
            rows = await _settle_unsuccessful(session, settlement, outcomes)
            moved += len(rows)
            again = _again(rows)
    _refuse_unmoved(moved, len(outcomes))
    return again


async def start_as_login(
    session: Session, occurrence: WorkOccurrence, accounts: Sequence[str], generation: int, *, in_turn: bool = False
) -> list[Any]:
    """Take rows for a transaction of the job's own login; with `in_turn`, each says by `wait` whether it must wait.

    Raises RoleUnavailable for a login of another job.
    """
    query = START_IN_TURN if in_turn else START_AS_LOGIN
    with _as_role():
        rows: list[Any] = await session.fetch(query, occurrence.id, occurrence.scheduled_at, list(accounts), generation)
    return rows


async def settle_as_login(
    session: Session,
    settlement: Settlement,
    outcomes: Mapping[str, Outcome],
    epochs: Mapping[str, int],
    settling: Settling | None = None,
) -> list[Again]:
    """Move rows that this transaction of the job's own login has started, each at the epoch that it then had.

    Raises Fenced when a row did not move, RoleUnavailable when the login is the job's no more.
    """
    ends = list(outcomes.values())
    with settling() if settling else nullcontext(), _as_role():
        rows: list[Any] = await session.fetch(
            SETTLE_AS_LOGIN,
            *_key(settlement),
            list(outcomes),
            [epochs[account] for account in outcomes],
            [_STATE.get(one.result, "succeeded") for one in ends],
            [one.charged for one in ends],
            [one.wait for one in ends],
            [one.error_class for one in ends],
            [one.error for one in ends],
            [one.result is Result.NOTHING_TO_DO for one in ends],
            *_rest(settlement),
            settlement.trace_context,
        )
    _refuse_unmoved(len(rows), len(outcomes))
    return _again(rows)


@contextmanager
def _as_role() -> Iterator[None]:
    """Take a refusal for the login's: what it may, another deployment can have changed at any time."""
    try:
        yield
    except InsufficientPrivilege as error:
        raise RoleUnavailable(str(error)) from error


def _again(rows: Iterable[Any]) -> list[Again]:
    return [
        Again(row["account"], row["epoch"], row["wait"], row["isolated"], row["settled_at"])
        for row in rows
        if row["state"] == "pending"
    ]


def _refuse_unmoved(moved: int, settled: int) -> None:
    if moved != settled:
        problem = f"{settled - moved} of {settled} rows were no longer this worker's"
        raise Fenced(problem)


_GOOD = frozenset({Result.SUCCEEDED, Result.NOTHING_TO_DO})


def _key(settlement: Settlement) -> tuple[int, datetime]:
    return settlement.occurrence.id, settlement.occurrence.scheduled_at


def _rest(settlement: Settlement) -> tuple[datetime, str, datetime]:
    return settlement.started_at, settlement.instance, settlement.published_at


async def _settle_unsuccessful(session: Session, settlement: Settlement, outcomes: Mapping[str, Outcome]) -> list[Any]:
    bad = {account: one for account, one in outcomes.items() if one.result not in _GOOD}
    rows: list[Any] = await session.fetch(
        SETTLE_UNSUCCESSFUL,
        *_key(settlement),
        list(bad),
        [_STATE[one.result] for one in bad.values()],
        [one.charged for one in bad.values()],
        [one.wait for one in bad.values()],
        [one.error_class for one in bad.values()],
        [one.error for one in bad.values()],
        *_rest(settlement),
        settlement.trace_context,
    )
    return rows
