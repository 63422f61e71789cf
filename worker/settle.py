"""Moving the ledger rows: success, another try, or the end; and publishing the further tries that were recorded."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shared.postgres import Session
from shared.sql_files import statement
from worker.occurrences import WorkOccurrence
from worker.outcome import Outcome, Result

SETTLE_SUCCEEDED = statement("worker", "settle_succeeded")
SETTLE_UNSUCCESSFUL = statement("worker", "settle_unsuccessful")

_STATE = {Result.RETRY: "pending", Result.UNTRIED: "pending", Result.FAILED: "failed"}


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
    settling: Callable[[], AbstractContextManager[Any]] | None = None,
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
            again = [
                Again(row["account"], row["epoch"], row["wait"], row["isolated"], row["settled_at"])
                for row in rows
                if row["state"] == "pending"
            ]
    if moved != len(outcomes):
        problem = f"{len(outcomes) - moved} of {len(outcomes)} rows were no longer this worker's"
        raise Fenced(problem)
    return again


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
        [0 if one.result is Result.UNTRIED else 1 for one in bad.values()],
        [one.wait for one in bad.values()],
        [one.error_class for one in bad.values()],
        [one.error for one in bad.values()],
        *_rest(settlement),
        settlement.trace_context,
    )
    return rows
