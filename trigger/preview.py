"""What a job's schedule will do, as rows for a person, with each clock change explained: pure."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta

from shared.timing import Occasion, Timing
from trigger.preview_clocks import clock_notes, left_out_by_clocks

# Each row costs a look at every other job.
COLLISIONS_AT_MOST = 2000
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One scheduled instant, or wall times that a clock change leaves out.

    `scheduled_at` is the instant in UTC, such as `2026-08-25T02:00:00Z`, or None where clocks leave nothing; `due_at`
    is when it runs, later by the job's jitter, or None if it does not; `local` is what the zone's clocks show, ISO with
    the offset; `note` says what is out of the ordinary, or is empty.
    """

    scheduled_at: str | None
    due_at: str | None
    local: str
    note: str = ""


def preview(
    timing: Timing, after: datetime, until: datetime, count: int, others: Sequence[Timing] = ()
) -> list[PreviewRow]:
    """Give the first `count` due instants after `after`, up to `until`, in order; both are aware.

    Instants that a calendar leaves out, and wall times that the policy `skip` does, stand between them, uncounted. Of
    `others`, those jobs are named that have an instant at the same time, in the first 2,000 rows.

    Raises:
        ValueError: one of the two instants has no zone.
    """
    if count < 1:
        return []
    occasions = list(_first(timing.occasions(after, until), count))
    due = [one.scheduled_at for one in occasions if not one.left_out]
    last = due[-1] if len(due) == count else until
    notes = clock_notes(timing.schedule, due, after, last)
    rows = [
        (gap.change.instant, PreviewRow(None, None, gap.local, gap.note))
        for gap in left_out_by_clocks(timing.schedule, after, last)
    ]
    for place, one in enumerate(occasions):
        told = [f"left out: {one.left_out}"] if one.left_out else []
        told += [note] if (note := notes.get(one.scheduled_at, "")) else []
        if not one.left_out and place < COLLISIONS_AT_MOST:
            told += _collisions(one.scheduled_at, others)
        rows.append((one.scheduled_at, _row(timing, one, "; ".join(told))))
    return [row for _, row in sorted(rows, key=lambda placed: placed[0])]


def shared_by_all(rows: Sequence[PreviewRow], others: Sequence[Timing]) -> list[str]:
    """Name those of `others` that have every due instant of the first 2,000 rows; none where fewer than two are due."""
    due = [datetime.fromisoformat(str(row.scheduled_at)) for row in rows[:COLLISIONS_AT_MOST] if row.due_at]
    if len(due) < 2:  # noqa: PLR2004 - what happens once is no rule
        return []
    return [one.job for one in others if all(_has(one, instant) for instant in due)]


def rows_as_json(rows: Sequence[PreviewRow]) -> str:
    """Give the rows as the text of a JSON array of objects."""
    return json.dumps([asdict(row) for row in rows], indent=2)


def _first(occasions: Iterator[Occasion], count: int) -> Iterator[Occasion]:
    """Give occasions up to the one that is the `count`th to be due."""
    for one in occasions:
        yield one
        count -= not one.left_out
        if count == 0:
            return


def _collisions(instant: datetime, others: Sequence[Timing]) -> list[str]:
    names = [one.job for one in others if _has(one, instant)]
    return [f"the same instant as {', '.join(names)}"] if names else []


def _has(one: Timing, instant: datetime) -> bool:
    return any(one.schedule.instants(instant - _SECOND, instant))


def _row(timing: Timing, one: Occasion, note: str) -> PreviewRow:
    due_at = None if one.left_out else _written(one.due_at)
    return PreviewRow(_written(one.scheduled_at), due_at, timing.schedule.local(one.scheduled_at).isoformat(), note)


def _written(instant: datetime) -> str:
    return instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
