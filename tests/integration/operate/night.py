"""A night that has run, or is to run: the rows that an operator acts on."""

from datetime import datetime, timedelta
from typing import Any

from shared.close import Closed, close
from shared.definition import definition_of, fingerprint
from shared.job import Job, PerAccount
from shared.postgres import Session
from tests.support.ledger import DUE, job_with, running_occurrence
from trigger.operate import Order
from worker.occurrences import WorkOccurrence

ORDER = Order("ann", "the tax service is back", "11111111-1111-1111-1111-111111111111")
OTHER = Order("bob", "I was faster", "22222222-2222-2222-2222-222222222222")
NIGHT = {
    "a": ("succeeded", None),
    "b": ("failed", "TaxServiceDown"),
    "c": ("dead", "killed_worker"),
    "d": ("failed", "invalid_account"),
    "e": ("cancelled", None),
}


async def nothing(_call: Any) -> None:
    """Do nothing for an account."""


def nightly(name: str = "invoice-run", **more: Any) -> Job:
    """Declare a job that is never executed here."""
    return job_with(more.pop("handler", PerAccount(nothing)), name, **more)


async def closed_night(
    session: Session,
    job: Job | None = None,
    accounts: dict[str, tuple[str, str | None]] | None = None,
    *,
    scheduled_at: datetime = DUE,
) -> tuple[WorkOccurrence, Closed]:
    """Record an occurrence whose accounts ended in these states (with an error class), and close it."""
    ends = NIGHT if accounts is None else accounts
    occurrence = await running_occurrence(session, job or nightly(), list(ends), scheduled_at=scheduled_at)
    for account, (state, error_class) in ends.items():
        await session.execute(
            """update matins.ledger
                  set state = $4, error_class = $5, error = $5, epoch = 1, attempts = 5, starts = 1,
                      started_at = $2, finished_at = $2::timestamptz + interval '2 seconds', published_at = $2
                where occurrence_id = $1 and scheduled_at = $2 and account = $3""",
            occurrence.id,
            scheduled_at,
            account,
            state,
            error_class,
        )
    closed = await close(session, occurrence.id, by="test")
    assert closed is not None
    return occurrence, closed


async def expected_occurrence(session: Session, job: Job, scheduled_at: datetime = DUE) -> int:
    """Record a planned occurrence."""
    definition = definition_of(job)
    mark = fingerprint(definition)
    planned = scheduled_at + timedelta(days=2)
    await session.execute(
        "insert into matins.job values ($1, 1, $2, $3, $4, $5) on conflict do nothing",
        job.name,
        definition,
        mark,
        scheduled_at,
        planned,
    )
    await session.execute(
        "insert into matins.job_revision values ($1, 1, $2, $3, $4, 'test') on conflict do nothing",
        job.name,
        definition,
        mark,
        scheduled_at,
    )
    occurrence_id: int = await session.fetchval(
        """insert into matins.occurrence (job, scheduled_at, revision, window_since, window_until, tzdata_version)
           values ($1, $2, 1, $3, $2, 'test') returning id""",
        job.name,
        scheduled_at,
        scheduled_at - timedelta(days=1),
    )
    return occurrence_id


async def events(session: Session, occurrence_id: int) -> list[tuple[str, str | None, str | None]]:
    """Give kind, actor and reason of everything in the audit trail of an occurrence."""
    rows = await session.fetch(
        "select kind, actor, reason from matins.audit where occurrence_id = $1 order by id", occurrence_id
    )
    return [(row["kind"], row["actor"], row["reason"]) for row in rows]
