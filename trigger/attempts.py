"""Who has attempted an occurrence, and what each process has attempted and won of a job."""

from datetime import datetime
from typing import Any

from schemas.occurrence import Identity
from shared.postgres import Session
from shared.sql_files import statement
from trigger.reach import require_job, require_occurrence

LIST_ATTEMPTS = statement("trigger", "list_attempts")
ATTEMPT_TALLY = statement("trigger", "attempt_tally")


async def occurrence_attempts(session: Session, identity: Identity) -> dict[str, Any]:
    """Give an occurrence's state and claimer, and its attempts, the winner first.

    Each attempt has `late_seconds`, from the due instant to it. Raises Refused when there is no such occurrence.
    """
    row = await require_occurrence(session, identity)
    attempts = await session.fetch(LIST_ATTEMPTS, identity.job, identity.scheduled_at, identity.variant)
    told = ("state", "reason", "scheduled_at", "claimed_by", "claimed_at", "fired_by", "fire_reason")
    return {
        "occurrence": str(identity),
        **{name: row[name] for name in told},
        "attempts": [
            {**dict(one), "late_seconds": (one["attempted_at"] - row["due_at"]).total_seconds()} for one in attempts
        ],
    }


async def job_attempts(session: Session, job: str, since: datetime) -> dict[str, Any]:
    """Give, by process, attempts and wins on what was due of a job since an instant. Raises Refused for no such job."""
    await require_job(session, job)
    found = await session.fetch(ATTEMPT_TALLY, job, since)
    return {"job": job, "since": since, "instances": [dict(one) for one in found]}
