"""What the clock changes of the next years do to a schedule: runs that are lost, moved, or far apart. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from shared.placing import ClockChange, clock_changes
from shared.schedule import Cron
from shared.zones import find_zone

YEARS_AHEAD = timedelta(days=3 * 366)
_DAY = timedelta(days=1)
# A hole counts when it is half as long again as the longest wait of an ordinary day.
_HOLE = 1.5


@dataclass(frozen=True, slots=True)
class ClockFinding:
    """What a clock change does: `loses` tells whether a run is lost or late, or is moved as the policy says."""

    why: str
    instead: str
    loses: bool


def clock_findings(schedule: Cron, now: datetime) -> Iterator[ClockFinding]:
    """Judge a schedule in a zone other than UTC by the first clock change of each kind in the next three years."""
    zone = find_zone(schedule.zone)
    seen: set[str] = set()
    for change in clock_changes(zone, now, now + YEARS_AHEAD):
        for kind, found in (("gap", _in_the_gap(schedule, change)), ("hole", _hole(schedule, change))):
            if found is not None and kind not in seen:
                seen.add(kind)
                yield found


def _in_the_gap(schedule: Cron, change: ClockChange) -> ClockFinding | None:
    """Tell of wall times that do not exist, of a job that runs at certain times of the day."""
    if not change.is_forward or schedule.is_interval_like:
        return None
    first, last = (change.instant + offset for offset in (change.before, change.after))
    walls = [
        wall
        for wall in schedule.wall_times(change.instant - _DAY, change.instant + _DAY)
        if first <= wall.replace(tzinfo=UTC) < last
    ]
    if not walls:
        return None
    span = f"{first:%H:%M} to {last:%H:%M}"
    why = f"{walls[0]:%H:%M} on {walls[0]:%Y-%m-%d} does not exist, since clocks in {schedule.zone} leave out {span}"
    match schedule.gap:
        case "skip":
            return ClockFinding(f"{why}; gap=skip runs none", f"a time outside {span}, or another gap", loses=True)
        case "next_valid":
            return ClockFinding(f"{why}; gap=next_valid runs at {last:%H:%M}", "", loses=False)
    return ClockFinding(f"{why}; gap=shift runs later by {change.after - change.before}", "", loses=False)


def _hole(schedule: Cron, change: ClockChange) -> ClockFinding | None:
    """Tell of a wait between two runs of a job that is meant to run all day long, and that clocks make longer."""
    if not schedule.is_interval_like:
        return None
    ordinary = _longest_wait(schedule, change.instant - 3 * _DAY, change.instant - _DAY)
    around = _longest_wait(schedule, change.instant - _DAY, change.instant + _DAY)
    if ordinary is None or around is None or around < _HOLE * ordinary:
        return None
    forward = change.is_forward
    policy = f"gap={schedule.gap}" if forward else f"fold={schedule.fold}"
    day = (change.instant + change.before).date()
    why = (
        f"when clocks in {schedule.zone} go {'forward' if forward else 'back'} on {day}, {policy} leaves {around} "
        f"between two runs instead of {ordinary}"
    )
    instead = "gap=next_valid or shift" if forward else "fold=both"
    return ClockFinding(why, f"{instead}; or zone UTC, where clocks change nothing", loses=True)


def _longest_wait(schedule: Cron, after: datetime, until: datetime) -> timedelta | None:
    runs = list(schedule.instants(after, until))
    return max((later - earlier for earlier, later in pairwise(runs)), default=None)
