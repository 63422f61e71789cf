"""Placing a wall time in UTC when clocks change: pure, and the only place that knows what a gap and a fold are.

A wall time inside a gap does not exist: `skip` gives no instant, `next_valid` the first instant after the gap, `shift`
the instant that lies as far behind the gap's start as the wall time does, so it reads later by the gap's length.
A wall time inside a fold happens twice: `first`, `second` or `both` of its instants.
Only offsets are compared, never `dst()`, which is negative in Dublin and in Casablanca.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from heapq import heappop, heappush
from typing import Literal

Gap = Literal["skip", "next_valid", "shift"]
Fold = Literal["first", "second", "both"]

_HOUR = timedelta(hours=1)
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ClockChange:
    """A change of a zone's offset: the instant in UTC from which it counts, and the offsets before and after."""

    instant: datetime
    before: timedelta
    after: timedelta

    @property
    def is_forward(self) -> bool:
        """Whether wall times are missing, instead of double."""
        return self.after > self.before


def place(wall: datetime, zone: tzinfo, gap: Gap, fold: Fold) -> list[datetime]:
    """Give the instants, aware and in UTC, at which a naive wall time of the zone is due: none, one or two in order."""
    earlier, later = _offsets(wall, zone)
    known = wall.replace(tzinfo=UTC)
    if earlier == later:
        return [known - earlier]
    if earlier > later:
        both = [known - earlier, known - later]
        return both if fold == "both" else [both[0 if fold == "first" else 1]]
    if gap == "skip":
        return []
    return [known - earlier if gap == "shift" else _change_between(known, zone, earlier, later).instant]


def change_at(wall: datetime, zone: tzinfo) -> ClockChange | None:
    """Give the clock change that makes a naive wall time missing or double, or None for an ordinary one."""
    earlier, later = _offsets(wall, zone)
    return None if earlier == later else _change_between(wall.replace(tzinfo=UTC), zone, earlier, later)


def clock_changes(zone: tzinfo, after: datetime, until: datetime) -> Iterator[ClockChange]:
    """Give a zone's clock changes after `after`, up to `until`, in order; of two within twelve hours, one or none."""
    earlier = after.replace(microsecond=0)
    while earlier < until:
        later = min(earlier + 12 * _HOUR, until)
        before, behind = _offset_at(earlier, zone), _offset_at(later, zone)
        if before != behind:
            yield _change_within(earlier, later, zone, before, behind)
        earlier = later


def in_order(walls: Iterable[datetime], zone: tzinfo, gap: Gap, fold: Fold) -> Iterator[datetime]:
    """Place increasing wall times; the instants come increasing and distinct.

    A shifted instant can lie behind that of a later wall time, and the second pass of a fold behind the first of the
    next: instants wait until no later wall time can come before them, which an offset's limit of a day decides.
    """
    waiting: list[datetime] = []
    given: datetime | None = None
    for wall in walls:
        settled = wall.replace(tzinfo=UTC) - _DAY
        while waiting and waiting[0] <= settled:
            instant = heappop(waiting)
            if instant != given:
                yield instant
            given = instant
        for instant in place(wall, zone, gap, fold):
            heappush(waiting, instant)
    for instant in sorted(set(waiting)):
        if instant != given:
            yield instant


def offsets_around(instant: datetime, zone: tzinfo) -> tuple[timedelta, timedelta]:
    """Give the least and the greatest offset that the zone has within a day of an aware instant, read each hour."""
    found = {_offset_at(instant + hours * _HOUR, zone) for hours in range(-24, 25)}
    return min(found), max(found)


def _offsets(wall: datetime, zone: tzinfo) -> tuple[timedelta, timedelta]:
    """Read the wall time with the offset before the nearest change and with the one after it."""
    earlier = wall.replace(tzinfo=zone, fold=0).utcoffset()
    later = wall.replace(tzinfo=zone, fold=1).utcoffset()
    if earlier is None or later is None:
        raise ValueError(f"{zone} has no offset")
    return earlier, later


def _change_between(known: datetime, zone: tzinfo, earlier: timedelta, later: timedelta) -> ClockChange:
    """Find the change by halving; it lies between the two readings of the wall time, which are whole seconds."""
    before, after = sorted((known - earlier, known - later))
    return _change_within(before, after, zone, earlier, later)


def _change_within(
    before: datetime, after: datetime, zone: tzinfo, earlier: timedelta, later: timedelta
) -> ClockChange:
    while after - before > _SECOND:
        middle = before + (after - before) // (2 * _SECOND) * _SECOND
        if _offset_at(middle, zone) == earlier:
            before = middle
        else:
            after = middle
    return ClockChange(after, earlier, later)


def _offset_at(instant: datetime, zone: tzinfo) -> timedelta:
    return instant.astimezone(zone).utcoffset() or timedelta(0)
