"""Whether something that is measured with every run grows, and when it will meet a limit. Pure.

The fit is robust: some nights that are out of the ordinary change neither the finding nor the date. It is made where
the growth is one: where the latest runs say something else than those before, the latest are believed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import combinations
from math import exp, log, sqrt
from statistics import linear_regression, median
from typing import Final, NamedTuple

# With fewer runs nothing is said: what looks like growth may be chance.
LEAST_RUNS: Final = 10
# So sure, in standard deviations, that it grows at all: one chance in a thousand.
_SURE: Final = 3.09
# So sure, in the same, that the growth is no straight line.
_BENT: Final = 2.5
# What lies farther off than this, in typical distances from the line, is out of the ordinary.
_ORDINARY: Final = 6.0
# The latest runs may lie so far off, in the same.
_OFF: Final = 2.0
# Growth that has slowed to less than this share of what it was has ended.
_STILL: Final = 0.25
# A level has so many runs at least; two levels are believed where they lie so much nearer to the runs than the trend.
_LEAST_LEVEL: Final = 3
_NEARER: Final = 0.9
_LEAST_SECONDS: Final = 1e-3
_FARTHEST_DAYS: Final = 3660.0
_LARGEST_EXPONENT: Final = 50.0
_DAY: Final = timedelta(days=1)

_Placed = list[tuple[float, float]]


class Point(NamedTuple):
    """What one run measured: its scheduled instant, and seconds."""

    at: datetime
    seconds: float


@dataclass(frozen=True, slots=True)
class Trend:
    """A growth that the runs support, fitted to the last `runs` of them, from the one at `since` to that at `until`.

    It is `height + slope * days + bend * days ** 2`, days from `since`: of the seconds, or with `by_factor` of their
    logarithm.
    """

    runs: int
    since: datetime
    until: datetime
    by_factor: bool
    height: float
    slope: float
    bend: float

    def at(self, instant: datetime) -> float:
        """Give the fitted seconds at an aware instant."""
        days = (instant - self.since) / _DAY
        value = self.height + self.slope * days + self.bend * days**2
        return exp(min(value, _LARGEST_EXPONENT)) if self.by_factor else value

    @property
    def per_day(self) -> float:
        """By how many seconds it has grown in the day before the last run."""
        return self.at(self.until) - self.at(self.until - _DAY)

    def meets(self, limit: float) -> datetime | None:
        """Give when the fitted seconds reach `limit`, also where that is past; None where not within ten years."""
        rest = self.height - (log(max(limit, _LEAST_SECONDS)) if self.by_factor else limit)
        days = _first_root(rest, self.slope, self.bend, (self.until - self.since) / _DAY)
        return None if days is None or days > _FARTHEST_DAYS else self.since + days * _DAY


def growing(points: Sequence[Point]) -> Trend | None:
    """Give the growth of the points, the oldest first; None where they are too few, or support none.

    Whether there is growth at all is tested by H. B. Mann and M. G. Kendall (Rank Correlation Methods, 1975). The slope
    is the median of the slopes between all pairs (P. K. Sen, Estimates of the regression coefficient based on Kendall's
    tau, Journal of the American Statistical Association 63, 1968); where the growth is surely no straight line, one on
    a logarithmic scale or a parabola is fitted.
    """
    window, found = list(points), None
    while len(window) >= LEAST_RUNS:
        found = window
        if _holds_at_its_end(_fitted(window), window):
            break
        window = window[len(window) // 2 :]
    if found is None or sureness([point.seconds for point in found]) <= _SURE:
        return None
    trend = _fitted(found)
    if not _still_grows(trend, found):
        return None
    step = _step(trend, found)
    return trend if step is None else growing(found[step:])


def sureness(values: Sequence[float]) -> float:
    """Give how sure it is that the values grow, in standard deviations of chance; below 0 where they fall.

    It is the Mann-Kendall statistic with its correction for ties.
    """
    count = len(values)
    score = sum((later > earlier) - (later < earlier) for earlier, later in combinations(values, 2))
    ties = [values.count(value) for value in set(values)]
    variance = (count * (count - 1) * (2 * count + 5) - sum(tie * (tie - 1) * (2 * tie + 5) for tie in ties)) / 18
    if variance <= 0 or score == 0:
        return 0.0
    return (score - (1 if score > 0 else -1)) / sqrt(variance)


def _fitted(points: Sequence[Point]) -> Trend:
    """Fit the simplest of three that the points do not surely contradict: a line, a growth by a factor, a parabola.

    Growth that slows down is not believed to end: a line through the latest runs says the earlier date.
    """
    straight = _placed(points, by_factor=False)
    bend, certainty = _bend(straight)
    if bend <= 0 or certainty < _BENT:
        return _trend(points, straight, 0.0, by_factor=False)
    by_factor = _placed(points, by_factor=True)
    if _bend(by_factor)[1] < _BENT:
        return _trend(points, by_factor, 0.0, by_factor=True)
    return _trend(points, straight, bend, by_factor=False)


def _placed(points: Sequence[Point], *, by_factor: bool) -> _Placed:
    first = points[0].at
    heights = [log(max(one.seconds, _LEAST_SECONDS)) if by_factor else one.seconds for one in points]
    return [((one.at - first) / _DAY, height) for one, height in zip(points, heights, strict=True)]


def _trend(points: Sequence[Point], placed: _Placed, bend: float, *, by_factor: bool) -> Trend:
    slope, height = _line([(days, value - bend * days**2) for days, value in placed])
    return Trend(len(points), points[0].at, points[-1].at, by_factor, height, slope, bend)


def _line(placed: _Placed) -> tuple[float, float]:
    """Give Sen's slope, and the height at 0 with which half of the points lie above the line."""
    slopes = [(two[1] - one[1]) / (two[0] - one[0]) for one, two in combinations(placed, 2) if two[0] > one[0]]
    slope = median(slopes) if slopes else 0.0
    return slope, median(value - slope * days for days, value in placed)


def _bend(placed: _Placed) -> tuple[float, float]:
    """Give the coefficient of the square, by least squares over the ordinary points, and how sure it is not 0."""
    slope, height = _line(placed)
    distances = [abs(value - height - slope * days) for days, value in placed]
    farthest = _ORDINARY * median(distances) + _LEAST_SECONDS
    kept = [one for one, distance in zip(placed, distances, strict=True) if distance <= farthest]
    days, values = [one[0] for one in kept], [one[1] for one in kept]
    if len(set(days)) < LEAST_RUNS // 2:
        return 0.0, 0.0
    # What a line leaves of the squares: the regressions on both are then independent of each other.
    across = _left_by_a_line(days, [day**2 for day in days])
    left = _left_by_a_line(days, values)
    bend = linear_regression(across, left).slope
    scatter = sum((one - bend * square) ** 2 for one, square in zip(left, across, strict=True)) / (len(kept) - 3)
    # Without any scatter a bend is sure, unless nobody could see it.
    least = _LEAST_SECONDS / (days[-1] - days[0]) ** 2
    return bend, abs(bend) / max(sqrt(scatter / sum(square**2 for square in across)), least)


def _left_by_a_line(days: list[float], values: list[float]) -> list[float]:
    slope, height = linear_regression(days, values)
    return [value - height - slope * day for day, value in zip(days, values, strict=True)]


def _holds_at_its_end(trend: Trend, points: Sequence[Point]) -> bool:
    latest = points[-max(LEAST_RUNS // 2, len(points) // 5) :]
    off = abs(median(point.seconds - trend.at(point.at) for point in latest))
    return off <= _OFF * median(abs(point.seconds - trend.at(point.at)) for point in points) + _LEAST_SECONDS


def _still_grows(trend: Trend, points: Sequence[Point]) -> bool:
    latest = points[len(points) // 2 :]
    grown = trend.at(latest[-1].at) - trend.at(latest[0].at)
    slope, _ = _line(_placed(latest, by_factor=False))
    return grown > 0 and slope * ((latest[-1].at - latest[0].at) / _DAY) > _STILL * grown


def _step(trend: Trend, points: Sequence[Point]) -> int | None:
    """Give the first point behind a single step that explains the points better than the trend does, or None.

    Such a step, as a release or a new customer brings it, is no growth that goes on.
    """
    values = [point.seconds for point in points]
    ends = range(_LEAST_LEVEL, len(points) - _LEAST_LEVEL + 1)
    off = {end: _off_level(values[:end]) + _off_level(values[end:]) for end in ends}
    step = min(off, key=off.__getitem__)
    return step if off[step] < _NEARER * sum(abs(one.seconds - trend.at(one.at)) for one in points) else None


def _off_level(values: list[float]) -> float:
    level = median(values)
    return sum(abs(value - level) for value in values)


def _first_root(rest: float, slope: float, bend: float, latest: float) -> float | None:
    """Give when a growth that rises at `latest` passes 0, or None where it turns before."""
    if abs(bend) * max(latest, 1.0) < 1e-9 * abs(slope):
        return -rest / slope if slope > 0 else None
    inside = slope**2 - 4 * bend * rest
    return (-slope + sqrt(inside)) / (2 * bend) if inside >= 0 else None
