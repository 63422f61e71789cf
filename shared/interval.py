"""How long it is to the next instant, and from what a run's time is read that it will not fit between two. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice, pairwise
from statistics import median
from typing import Final

from shared.forecast import Point, Trend, growing
from shared.schedule_protocol import Schedule

_LOOKED_AT: Final = 200
_WITHIN: Final = timedelta(days=8)
_SECOND: Final = timedelta(seconds=1)
# So many of the last runs say what a run takes now.
_NOW: Final = 5
# What takes less than this share of the interval will not reach it in the time that a fit can speak for.
_FAR: Final = 1 / 8


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the last runs say about the next: `interval` is the shortest of those to come, None where there is none.

    `usual` is what the last few runs took, in seconds; `trend` their growth, if any. `meets` is the first instant whose
    run still runs at the next one, by the fit; `soon` tells whether it comes before twice the time that the fit looks
    back on. `overlaps` tells that the runs take as long as the interval already.
    """

    runs: int
    interval: timedelta | None
    usual: float | None
    trend: Trend | None = None
    meets: datetime | None = None
    soon: bool = False
    overlaps: bool = False


def shortest_interval(schedule: Schedule, now: datetime) -> timedelta | None:
    """Give the shortest time between two of the next instants, or None if there are no two."""
    upcoming = list(islice(schedule.instants(now, now + _WITHIN), _LOOKED_AT))
    while len(upcoming) < 2:  # noqa: PLR2004 - an interval has two ends
        following = schedule.next_after(upcoming[-1] if upcoming else now)
        if following is None:
            return None
        upcoming.append(following)
    return min(later - earlier for earlier, later in pairwise(upcoming))


def usual(points: Sequence[Point]) -> float | None:
    """Give what the last few runs took, in seconds, whatever one of them did; None without any."""
    return median(point.seconds for point in points[-_NOW:]) if points else None


def forecast(points: Sequence[Point], schedule: Schedule, now: datetime, *, all_of_it: bool = False) -> Forecast:
    """Compare what the runs took, the oldest first, with the interval of the schedule after `now`.

    Runs that are far from the interval are not fitted, unless `all_of_it` is asked for.
    """
    interval, takes = shortest_interval(schedule, now), usual(points)
    if interval is None or takes is None:
        return Forecast(len(points), interval, takes, growing(points) if all_of_it else None)
    limit = interval.total_seconds()
    overlaps = takes >= limit and len(points) >= _NOW
    if takes < _FAR * limit and not all_of_it:
        return Forecast(len(points), interval, takes)
    trend = growing(points)
    reached = trend.meets(limit) if trend else None
    if trend is None or reached is None:
        return Forecast(len(points), interval, takes, trend, overlaps=overlaps)
    soon = reached <= trend.until + (trend.until - trend.since)
    meets = schedule.next_after(max(reached, now) - _SECOND)
    return Forecast(len(points), interval, takes, trend, meets, soon, overlaps)
