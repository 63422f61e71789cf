"""What a schedule will do, as rows for a person, with each clock change explained: pure."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from itertools import islice, pairwise

from shared.schedule import ClockChange, Cron


@dataclass(frozen=True, slots=True)
class PreviewRow:
    """One due instant, or wall times that a clock change leaves out.

    `scheduled_at` is the instant in UTC, such as `2026-08-25T02:00:00Z`, or None if nothing runs; `local` is what the
    zone's clocks show, ISO with the offset; `note` is empty unless clocks change.
    """

    scheduled_at: str | None
    local: str
    note: str = ""


def preview(schedule: Cron, after: datetime, until: datetime, count: int) -> list[PreviewRow]:
    """Give the first `count` due instants after `after`, up to `until`, in order; both are aware.

    Wall times that the policy `skip` leaves out stand between them as one row for each clock change, uncounted.

    Raises:
        ValueError: one of the two instants has no zone.
    """
    if count < 1:
        return []
    due = list(islice(schedule.instants(after, until), count))
    last = due[-1] if len(due) == count else until
    changes = _changes(schedule, schedule.wall_times(after, last))
    notes = {instant: _offset_note(schedule, earlier, instant) for earlier, instant in pairwise(due)}
    rows: list[tuple[datetime, PreviewRow]] = []
    for change, walls in changes.items():
        if not change.is_forward:
            notes |= _fold_notes(schedule, change, walls)
        elif schedule.gap != "skip":
            notes |= _gap_notes(schedule, change, walls)
        elif after < change.instant <= last:
            rows.append((change.instant, _skipped(schedule, change, walls)))
    rows += [(instant, _row(schedule, instant, notes.get(instant, ""))) for instant in due]
    return [row for _, row in sorted(rows, key=lambda placed: placed[0])]


def rows_as_json(rows: Sequence[PreviewRow]) -> str:
    """Give the rows as the text of a JSON array of objects."""
    return json.dumps([asdict(row) for row in rows], indent=2)


def _changes(schedule: Cron, walls: Iterable[datetime]) -> dict[ClockChange, list[datetime]]:
    """Gather the wall times that are missing or double, by the clock change that makes them so."""
    changes: dict[ClockChange, list[datetime]] = {}
    for wall in walls:
        change = schedule.change_at(wall)
        if change is not None:
            changes.setdefault(change, []).append(wall)
    return changes


def _row(schedule: Cron, instant: datetime, note: str) -> PreviewRow:
    scheduled_at = instant.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return PreviewRow(scheduled_at, schedule.local(instant).isoformat(), note)


def _skipped(schedule: Cron, change: ClockChange, walls: list[datetime]) -> PreviewRow:
    note = f"clocks go forward: {_missing(walls, schedule.local(change.instant))}, left out (gap=skip)"
    return PreviewRow(None, walls[0].isoformat(), note)


def _gap_notes(schedule: Cron, change: ClockChange, walls: list[datetime]) -> dict[datetime, str]:
    if schedule.gap == "next_valid":
        moved = {change.instant: walls}
    else:
        moved = {wall.replace(tzinfo=UTC) - change.before: [wall] for wall in walls}
    notes: dict[datetime, str] = {}
    for instant, missing in moved.items():
        local = schedule.local(instant)
        notes[instant] = f"clocks go forward: {_missing(missing, local)}, moved to {local:%H:%M} (gap={schedule.gap})"
    return notes


def _fold_notes(schedule: Cron, change: ClockChange, walls: list[datetime]) -> dict[datetime, str]:
    notes: dict[datetime, str] = {}
    for wall in walls:
        for name, offset in (("first", change.before), ("second", change.after)):
            run = f"{name} of two runs" if schedule.fold == "both" else f"runs the {name} time only"
            note = f"clocks go back: {wall:%H:%M} happens twice, {run} (fold={schedule.fold})"
            notes[wall.replace(tzinfo=UTC) - offset] = note
    return notes


def _offset_note(schedule: Cron, earlier: datetime, instant: datetime) -> str:
    offset, offset_before = schedule.local(instant).utcoffset(), schedule.local(earlier).utcoffset()
    if offset is None or offset_before is None or offset == offset_before:
        return ""
    direction = "forward" if offset > offset_before else "back"
    return f"clocks went {direction} by {abs(offset - offset_before)} since the run before"


def _missing(walls: list[datetime], local: datetime) -> str:
    if len(walls) == 1:
        return f"{_clock(walls[0], local)} does not exist"
    return f"{len(walls)} due times from {_clock(walls[0], local)} to {_clock(walls[-1], local)} do not exist"


def _clock(wall: datetime, near: datetime) -> str:
    """Write a wall time, with its date only if that is not the date of `near`."""
    return wall.strftime("%H:%M" if wall.date() == near.date() else "%Y-%m-%d %H:%M")
