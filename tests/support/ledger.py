"""A job, an occurrence and its ledger rows, as the trigger would have left them; and sessions to look with."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.occurrence import Identity
from shared.calls import Window
from shared.definition import definition_of, fingerprint
from shared.job import Cron, Decisions, Handler, Job, SqlAccounts, hours, minutes
from shared.postgres import Database, Session, connect
from worker.occurrences import WorkOccurrence

DUE = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)
DECISIONS = Decisions(
    catch_up="latest", catch_up_within=hours(20), overlap="skip", start_within=minutes(10), finish_within=hours(3)
)


def job_with(handler: Handler, name: str = "invoice-run", **more: Any) -> Job:
    """Declare a nightly job around a handler."""
    usual: dict[str, Any] = {
        "schedule": Cron("0 2 * * *"),
        "accounts": SqlAccounts("select id as account from account"),
        "decisions": DECISIONS,
    }
    return Job(name, handler=handler, **(usual | more))


@asynccontextmanager
async def session_on(url: str) -> AsyncIterator[Session]:
    """Open a connection of the test's own."""
    session = await connect(url, name="test", timeout=timedelta(seconds=20))
    try:
        yield session
    finally:
        await session.close()


@asynccontextmanager
async def database_on(url: str, size: int = 8) -> AsyncIterator[Database]:
    """Open a pool of the test's own."""
    database = Database(lambda: url, name="test", size=size, timeout=timedelta(seconds=20))
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def running_occurrence(
    session: Session, job: Job, accounts: Sequence[str], *, scheduled_at: datetime = DUE
) -> WorkOccurrence:
    """Record a sealed and published occurrence with pending accounts."""
    definition = definition_of(job)
    await session.execute(
        """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
           values ($1, 1, $2, $3, $4, $4) on conflict do nothing""",
        job.name,
        definition,
        fingerprint(definition),
        scheduled_at,
    )
    await session.execute(
        """insert into matins.job_revision (job, revision, definition, fingerprint, effective_from, recorded_by)
           values ($1, 1, $2, $3, $4, 'test') on conflict do nothing""",
        job.name,
        definition,
        fingerprint(definition),
        scheduled_at,
    )
    occurrence_id = await session.fetchval(
        """insert into matins.occurrence (job, scheduled_at, state, revision, window_since, window_until,
               tzdata_version, epoch, claimed_by, claimed_at, opened_at, sealed_at, accounts_read)
           values ($1, $2, 'running', 1, $3, $2, 'test', 1, 'test', $2, $2, $2, $4) returning id""",
        job.name,
        scheduled_at,
        scheduled_at - timedelta(days=1),
        len(accounts),
    )
    await session.execute("select matins.ensure_ledger_partition($1)", scheduled_at)
    await session.execute(
        """insert into matins.ledger (occurrence_id, scheduled_at, account, position)
           select $1, $2, account, position from unnest($3::text[]) with ordinality as given (account, position)""",
        occurrence_id,
        scheduled_at,
        list(accounts),
    )
    await session.execute(
        "insert into matins.publication values ($1, $2, clock_timestamp())", occurrence_id, len(accounts)
    )
    return WorkOccurrence(
        occurrence_id, Identity(job.name, scheduled_at), Window(scheduled_at - timedelta(days=1), scheduled_at), ""
    )


async def ledger(session: Session, occurrence_id: int) -> dict[str, Any]:
    """Give the ledger rows of an occurrence by account."""
    rows = await session.fetch("select * from matins.ledger where occurrence_id = $1 order by account", occurrence_id)
    return {row["account"]: row for row in rows}


async def occurrence_row(session: Session, occurrence_id: int) -> Any:
    """Give an occurrence's row."""
    return await session.fetchrow("select * from matins.occurrence where id = $1", occurrence_id)


async def record_claims(session: Session) -> None:
    """Tell in audit and attempts, as the trigger would have, of the occurrences that `running_occurrence` made."""
    await session.execute(
        """insert into matins.audit (kind, job, occurrence_id, detail)
           select told.kind, o.job, o.id, '{}'
             from matins.occurrence o, unnest(array['claim', 'sealed']) with ordinality as told (kind, place)
            where o.claimed_by = 'test' and not exists (select from matins.audit a where a.occurrence_id = o.id)
            order by o.id, told.place"""
    )
    await session.execute(
        """insert into matins.attempt (job, scheduled_at, instance, won)
           select job, scheduled_at, 'test', true from matins.occurrence where claimed_by = 'test'
           on conflict do nothing"""
    )
