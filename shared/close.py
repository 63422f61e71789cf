"""Closing an occurrence: after the last account's settle has committed, in statements of its own, once.

Anyone may try at any time: after a settle, a seal, a cancel or a re-run, and the sweep. The generation and the ending
are read first and demanded by the write: in between, rows can only come open again by a re-run, which changes the
generation, and whoever writes an ending tries to close behind it.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from schemas.report import EXAMPLES_PER_CLASS, Counts, Durations, ErrorClass, Generation, Report, ended
from schemas.states import OccurrenceState
from shared.postgres import Row, Session
from shared.sql_files import statement

CLOSE_CANDIDATE = statement("shared", "close_candidate")
CLOSE_COUNTS = statement("shared", "close_counts")
CLOSE_ERRORS = statement("shared", "close_errors")
CLOSE_WRITE = statement("shared", "close_write")


@dataclass(frozen=True, slots=True)
class Closed:
    """An occurrence that this call has closed."""

    job: str
    scheduled_at: datetime
    variant: str
    state: OccurrenceState
    generation: int
    report: Report
    claimed_at: datetime
    closed_at: datetime
    trace_context: str


async def close(session: Session, occurrence_id: int, *, by: str, now: datetime | None = None) -> Closed | None:
    """Close the occurrence if it is over; None when it is not, or when another was first.

    `by` is the closing process's instance id.
    """
    candidate = await session.fetchrow(CLOSE_CANDIDATE, occurrence_id)
    if candidate is None:
        return None
    report = await _report(session, occurrence_id, candidate)
    state = ended(report.counts, candidate["ending"], candidate["partial_ok"])
    written = await session.fetchrow(
        CLOSE_WRITE,
        occurrence_id,
        candidate["generation"],
        state.value,
        _reason(candidate, state),
        report.counts.succeeded,
        report.counts.failed,
        report.counts.dead,
        report.counts.cancelled,
        msgspec.json.encode(report),
        now,
        by,
        candidate["ending"],
    )
    if written is None:
        return None
    return Closed(
        candidate["job"],
        candidate["scheduled_at"],
        candidate["variant"],
        state,
        candidate["generation"],
        report,
        written["claimed_at"],
        written["closed_at"],
        candidate["trace_context"],
    )


def _reason(candidate: Row, state: OccurrenceState) -> str | None:
    if candidate["ending"] == "fan_out":
        return f"fan_out: {candidate['fan_out_error']}"
    if candidate["ending"] is not None:
        return f"{candidate['ending']}: {candidate['ending_reason']}"
    return "accounts failed" if state in {OccurrenceState.PARTIAL, OccurrenceState.FAILED} else None


async def _report(session: Session, occurrence_id: int, candidate: Row) -> Report:
    row: Any = await session.fetchrow(CLOSE_COUNTS, occurrence_id, candidate["scheduled_at"])
    counts = Counts(succeeded=row["succeeded"], failed=row["failed"], dead=row["dead"], cancelled=row["cancelled"])
    classes: tuple[ErrorClass, ...] = ()
    if counts.succeeded != counts.total:
        classes = tuple(
            ErrorClass(
                error_class=one["error_class"],
                state=one["state"],
                accounts=one["accounts"],
                examples=tuple(one["examples"]),
                message=one["message"],
            )
            for one in await session.fetch(CLOSE_ERRORS, occurrence_id, candidate["scheduled_at"], EXAMPLES_PER_CLASS)
        )
    return Report(
        counts=counts,
        nothing_to_do=row["nothing_to_do"],
        retries=row["retries"],
        error_classes=tuple(one for one in classes if one.state != "cancelled"),
        untouched_examples=next((one.examples for one in classes if one.state == "cancelled"), ()),
        durations=_durations(row["durations"]),
        first_account_at=row["first_account_at"],
        last_account_at=row["last_account_at"],
        generations=_generations(candidate["report"]),
    )


def _durations(values: list[float] | None) -> Durations | None:
    if values is None or values[0] is None:
        return None
    median, p95, p99, longest = (round(float(value), 6) for value in values)
    return Durations(median=median, p95=p95, p99=p99, longest=longest)


def _generations(kept: Any) -> tuple[Generation, ...]:
    """Read the earlier generations that a re-run has left in the row's report."""
    return tuple(msgspec.convert((kept or {}).get("generations", []), list[Generation]))
