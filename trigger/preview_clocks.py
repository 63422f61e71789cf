"""What becomes of wall times when clocks change, in words: what would have been, what is, and by which policy."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise

from shared.schedule import ClockChange, Cron
from shared.schedule_protocol import Schedule


@dataclass(frozen=True, slots=True)
class LeftOut:
    """Wall times that a clock change leaves out: the first of them as ISO text, and why."""

    change: ClockChange
    local: str
    note: str


def clock_notes(schedule: Schedule, due: Sequence[datetime], after: datetime, until: datetime) -> dict[datetime, str]:
    """Give, for due instants after `after`, up to `until`, what the clocks have to do with them."""
    clocks = schedule.clocks
    if clocks is None:
        return {}
    notes = {instant: note for earlier, instant in pairwise(due) if (note := _offset_note(clocks, earlier, instant))}
    walls = list(clocks.wall_times(after, until))
    for change, moved in _changes(clocks, walls).items():
        if not change.is_forward:
            notes |= _fold_notes(clocks, change, moved)
        elif clocks.gap != "skip":
            notes |= _gap_notes(clocks, change, moved, frozenset(walls))
    return notes


def left_out_by_clocks(schedule: Schedule, after: datetime, until: datetime) -> Iterator[LeftOut]:
    """Give what the policy `skip` leaves out, once for each clock change."""
    clocks = schedule.clocks
    if clocks is None or clocks.gap != "skip":
        return
    for change, walls in _changes(clocks, clocks.wall_times(after, until)).items():
        if change.is_forward and after < change.instant <= until:
            missing = _missing(walls, clocks.local(change.instant))
            yield LeftOut(change, walls[0].isoformat(), f"clocks go forward: {missing}, left out (gap=skip)")


def _changes(schedule: Cron, walls: Iterable[datetime]) -> dict[ClockChange, list[datetime]]:
    """Gather the wall times that are missing or double, by the clock change that makes them so."""
    changes: dict[ClockChange, list[datetime]] = {}
    for wall in walls:
        change = schedule.change_at(wall)
        if change is not None:
            changes.setdefault(change, []).append(wall)
    return changes


def _gap_notes(
    schedule: Cron, change: ClockChange, walls: list[datetime], due_anyway: frozenset[datetime]
) -> dict[datetime, str]:
    if schedule.gap == "next_valid":
        moved = {change.instant: walls}
    else:
        moved = {wall.replace(tzinfo=UTC) - change.before: [wall] for wall in walls}
    notes: dict[datetime, str] = {}
    for instant, missing in moved.items():
        local = schedule.local(instant)
        note = f"clocks go forward: {_missing(missing, local)}, moved to {local:%H:%M} (gap={schedule.gap})"
        if local.replace(tzinfo=None) in due_anyway:
            note += f", due anyway: one for {len(missing) + 1} times"
        notes[instant] = note
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
