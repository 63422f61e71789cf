"""Locking the row of a job that a person names: what every order begins with."""

from typing import Any

from shared.postgres import Session
from shared.terminal import Refused
from trigger.plan import LOCK_JOB
from trigger.reach import known_jobs, unknown_job


async def locked_job(session: Session, name: str) -> Any:
    """Lock a job's row for the rest of the transaction, and give it. Raises Refused with the nearest names."""
    row = await session.fetchrow(LOCK_JOB, name)
    if row is None:
        raise Refused(unknown_job(name, await known_jobs(session)))
    return row
