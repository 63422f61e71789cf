"""Closing an occurrence and telling about it: one line, one span and two measurements for each that ends."""

from schemas.occurrence import Identity
from shared.close import Closed, close
from shared.logs import logger
from shared.postgres import Session
from shared.telemetry import close_span, metrics

_log = logger(__name__)


async def close_and_tell(session: Session, occurrence_id: int, *, by: str) -> Closed | None:
    """Close the occurrence if it is over, and tell; None when it is not, or when another was first.

    `by` is the closing process's instance id.
    """
    closed = await close(session, occurrence_id, by=by)
    if closed is None:
        return None
    identity = str(Identity(closed.job, closed.scheduled_at, closed.variant))
    seconds = (closed.closed_at - closed.claimed_at).total_seconds()
    counts = closed.report.counts
    with close_span(
        closed.job, identity, parent=closed.trace_context, outcome=closed.state.value, accounts=counts.total
    ):
        _log.info(
            "occurrence closed",
            occurrence=identity,
            state=closed.state.value,
            generation=closed.generation,
            seconds=round(seconds, 3),
            total=counts.total,
            succeeded=counts.succeeded,
            failed=counts.failed,
            dead=counts.dead,
            cancelled=counts.cancelled,
        )
    metrics.occurrences.add(1, job=closed.job, outcome=closed.state.value)
    metrics.occurrence_duration.record(seconds, job=closed.job, outcome=closed.state.value)
    return closed
