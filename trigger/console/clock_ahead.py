"""The next clock change that does something to a job: when it is, and the instants that `preview` explains. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.bounds import months_later
from shared.placing import ClockChange, clock_changes
from shared.timing import Timing
from shared.zones import find_zone
from trigger.preview import PreviewRow, preview

MONTHS_AHEAD: Final = 13
MOST_ROWS: Final = 4
_MOST_INSTANTS: Final = 100_000
# How the notes of `preview` begin that are of clocks, and of no calendar.
_OF_CLOCKS: Final = ("clocks go ", "clocks went ")
_SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ClockAhead:
    """A clock change and the first rows that it has to do with; `more` counts those that are left out."""

    change: ClockChange
    zone: str
    rows: Sequence[PreviewRow]
    more: int

    @property
    def by(self) -> timedelta:
        """How far the clocks go, either way."""
        return abs(self.change.after - self.change.before)


def clock_ahead(timing: Timing, now: datetime) -> ClockAhead | None:
    """Give the first clock change of the next 13 months that moves, doubles or leaves out an instant of the job.

    None where clocks move nothing, or there is none in that time.
    """
    clocks = timing.schedule.clocks
    if clocks is None:
        return None
    for change in clock_changes(find_zone(clocks.zone), now, months_later(now, MONTHS_AHEAD)):
        rows = _around(timing, change)
        if rows:
            return ClockAhead(change, clocks.zone, rows[:MOST_ROWS], max(len(rows) - MOST_ROWS, 0))
    return None


def _around(timing: Timing, change: ClockChange) -> list[PreviewRow]:
    """Give the rows that a change has to do with: from the instant before it to the one that is sure to be after it."""
    by = abs(change.after - change.before)
    before = timing.schedule.previous_before(change.instant - by)
    after = timing.schedule.next_after(change.instant + by - _SECOND)
    since = (before or change.instant - by) - _SECOND
    until = max(after or change.instant, change.instant + by)
    return [
        row for row in preview(timing, since, until, _MOST_INSTANTS) if any(word in row.note for word in _OF_CLOCKS)
    ]
