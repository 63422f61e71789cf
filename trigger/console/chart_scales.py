"""The axes of charts: where a value lies between two edges, and ticks that a person can read. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil, floor, log10
from typing import Final, NamedTuple

_MINUTE, _HOUR, _DAY, _YEAR = 60, 3600, 86_400, 365 * 86_400
# So much larger than the middle one is a value that would leave nothing to see of the others.
_OUT_OF_SCALE: Final = 50
# No axis is shorter: what takes less lies near zero.
_SHORTEST: Final = 0.005
_STEPS: Final = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 15, 30),
    *(_MINUTE, 2 * _MINUTE, 5 * _MINUTE, 10 * _MINUTE, 15 * _MINUTE, 30 * _MINUTE),
    *(_HOUR, 2 * _HOUR, 3 * _HOUR, 6 * _HOUR, 12 * _HOUR),
    *(_DAY, 2 * _DAY, 5 * _DAY, 10 * _DAY, 30 * _DAY, 100 * _DAY),
    *(_YEAR, 2 * _YEAR, 5 * _YEAR, 10 * _YEAR, 50 * _YEAR, 100 * _YEAR),
)
_POWERS: Final = (
    *(0.001, 0.01, 0.1, 1, 10, _MINUTE, 10 * _MINUTE, _HOUR, 10 * _HOUR),
    *(_DAY, 10 * _DAY, 100 * _DAY, _YEAR, 10 * _YEAR, 100 * _YEAR),
)
_UNITS: Final = ((_YEAR, "y"), (_DAY, "d"), (_HOUR, "h"), (_MINUTE, "min"))
_LEAST_IN_SECONDS: Final = 0.1
_DAYS_OF_STEPS: Final = (1, 2, 7, 14)
_MONTHS_OF_STEPS: Final = (1, 2, 3, 6)
_SECONDS_OF_STEPS: Final = (1, 5, 15, 30, *(60 * one for one in (1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720)))


class Tick(NamedTuple):
    """A mark on an axis: where, in the chart's own units, and what stands beside it."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class SecondsAxis:
    """Durations from the edge `low` to `high`; with `logarithmic` each step of the same length is a multiple."""

    least: float
    most: float
    low: float
    high: float
    logarithmic: bool = False

    @classmethod
    def of(cls, values: Sequence[float], low: float, high: float, also: Sequence[float] = ()) -> "SecondsAxis":
        """Make an axis that holds the values, and what is drawn beside them, from zero on where that shows enough."""
        largest = max([*values, *also, 0.0])
        middle = sorted(values)[len(values) // 2] if values else 0.0
        if middle > 0 and largest > _OUT_OF_SCALE * middle:
            positive = [value for value in (*values, *also) if value > 0]
            least = max([power for power in _POWERS if power <= min(positive)], default=_POWERS[0])
            most = min([power for power in _POWERS if power >= largest], default=largest)
            return cls(least, most, low, high, logarithmic=True)
        return cls(0.0, max(1.05 * largest, _SHORTEST) if largest else 1.0, low, high)

    def place(self, seconds: float) -> float:
        """Give where a duration lies; what is beyond an edge lies on it."""
        inside = min(max(seconds, self.least), self.most)
        if self.logarithmic:
            part = log10(inside / self.least) / log10(self.most / self.least)
        else:
            part = (inside - self.least) / (self.most - self.least)
        return round(self.low + part * (self.high - self.low), 1)

    def ticks(self, count: int) -> list[Tick]:
        """Give at most `count` ticks."""
        if self.logarithmic:
            powers = [power for power in _POWERS if self.least <= power <= self.most]
            chosen = powers[:: ceil(len(powers) / count)]
            return [Tick(self.place(power), _with_unit(power, power)) for power in chosen]
        step = next((step for step in _STEPS if floor(self.most / step) < count), self.most)
        steps = floor(self.most / step)
        return [Tick(self.place(number * step), _with_unit(number * step, step)) for number in range(steps + 1)]


@dataclass(frozen=True, slots=True)
class CountAxis:
    """Whole numbers from zero, at the edge `low`, to `most`, at `high`."""

    most: int
    low: float
    high: float

    def place(self, count: int) -> float:
        """Give where a number lies."""
        return round(self.low + count / max(self.most, 1) * (self.high - self.low), 1)

    def ticks(self, count: int) -> list[Tick]:
        """Give at most `count` ticks, all of them whole numbers."""
        step = max(1, ceil(max(self.most, 1) / (count - 1)))
        return [Tick(self.place(number), f"{number}") for number in range(0, max(self.most, 1) + 1, step)]


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Instants from `since`, at the edge `low`, to `until`, at `high`; both are aware, and `until` is the later."""

    since: datetime
    until: datetime
    low: float
    high: float

    def place(self, instant: datetime) -> float:
        """Give where an instant lies."""
        return round(self.low + (instant - self.since) / (self.until - self.since) * (self.high - self.low), 1)

    def holds(self, instant: datetime) -> bool:
        """Tell whether an instant lies between the edges."""
        return self.since <= instant <= self.until

    def ticks(self, count: int) -> list[Tick]:
        """Give at most `count` ticks, on the hours, days, months and years of UTC."""
        seconds = (self.until - self.since).total_seconds()
        for step in _SECONDS_OF_STEPS:
            if floor(seconds / step) < count:
                return self._of_seconds(step)
        for days in _DAYS_OF_STEPS:
            if floor(seconds / (days * _DAY)) < count:
                return self._of_days(days)
        months = seconds / (30 * _DAY)
        for step in (*_MONTHS_OF_STEPS, *(12 * years for years in _years_of_steps())):
            if floor(months / step) < count:
                return self._of_months(step)
        return []

    def _of_seconds(self, step: int) -> list[Tick]:
        found = []
        moment = ceil(self.since.timestamp() / step) * step
        while moment <= self.until.timestamp():
            instant = datetime.fromtimestamp(moment, UTC)
            time = f"{instant:%H:%M}" if step >= _MINUTE else f"{instant:%H:%M:%S}"
            found.append(Tick(self.place(instant), _date(instant) if moment % _DAY == 0 else time))
            moment += step
        return found

    def _of_days(self, step: int) -> list[Tick]:
        first = self.since.astimezone(UTC).toordinal()
        # Steps of weeks are on Mondays, the first day of the calendar's count.
        number = first + (1 - first) % step
        found = []
        while number <= self.until.astimezone(UTC).toordinal():
            instant = datetime.fromordinal(number).replace(tzinfo=UTC)
            if self.holds(instant):
                found.append(Tick(self.place(instant), _date(instant)))
            number += step
        return found

    def _of_months(self, step: int) -> list[Tick]:
        since, until = self.since.astimezone(UTC), self.until.astimezone(UTC)
        number = ceil((12 * since.year + since.month - 1) / step) * step
        found = []
        while number <= 12 * until.year + until.month - 1:
            instant = datetime(number // 12, number % 12 + 1, 1, tzinfo=UTC)
            if self.holds(instant):
                label = f"{instant:%Y}" if instant.month == 1 else f"{instant:%b}"
                found.append(Tick(self.place(instant), label))
            number += step
        return found


def _years_of_steps() -> list[int]:
    return [part * 10**power for power in range(4) for part in (1, 2, 5)]


def _date(instant: datetime) -> str:
    return f"{instant.day} {instant:%b}"


def _with_unit(seconds: float, step: float) -> str:
    """Write a tick in the unit of the step, so that all ticks of an axis have the same."""
    if seconds == 0:
        return "0"
    if step < _LEAST_IN_SECONDS:
        return f"{1000 * seconds:g} ms"
    size, unit = next(((size, unit) for size, unit in _UNITS if step >= size), (1, "s"))
    return f"{seconds / size:g} {unit}"


def padded(since: datetime, until: datetime) -> tuple[datetime, datetime]:
    """Give a span that has a length: around a single instant, half an hour to both sides."""
    if until > since:
        return since, until
    return since - timedelta(minutes=30), since + timedelta(minutes=30)
