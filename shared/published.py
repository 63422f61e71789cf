"""Marking ledger rows that were published again, by the trigger or by a worker: each states the row's epoch."""

from collections.abc import Sequence
from datetime import datetime

from shared.postgres import Session
from shared.sql_files import statement

MARK_PUBLISHED = statement("shared", "mark_published")


async def mark_published(
    session: Session,
    occurrence: tuple[int, datetime],
    accounts: Sequence[str],
    epochs: Sequence[int],
    published_at: datetime,
) -> None:
    """Mark accounts of an occurrence, given as its id and its `scheduled_at`, that the broker has confirmed."""
    await session.execute(MARK_PUBLISHED, *occurrence, list(accounts), list(epochs), published_at)
