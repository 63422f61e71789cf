"""What stands beside the runs of a chart: the limit that they are compared with, and their trend. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from shared.durations import show_seconds
from shared.forecast import Trend
from trigger.console.chart import Key, Line, Shape, line, seconds_axis
from trigger.console.chart_scales import SecondsAxis, TimeAxis

# Runs that take less than this share of a limit are drawn on a scale of their own, as `stats` draws them.
_SMALL: Final = 1 / 8
# So far above the runs and their limit a trend may raise the scale.
_RAISED: Final = 1.1
_PIECES: Final = 24


@dataclass(frozen=True, slots=True)
class Beside:
    """What the runs are compared with: a limit in seconds, None for none, what it is called, and the growth, if any."""

    limit: float | None
    called: str
    trend: Trend | None
    is_drawn: bool

    @classmethod
    def of(cls, values: Sequence[float], bound: timedelta | None, called: str, trend: Trend | None) -> "Beside":
        """Judge whether a limit lies on the scale of what was measured."""
        limit = bound.total_seconds() if bound else None
        return cls(limit, called, trend, limit is not None and max(values, default=0.0) * (1 / _SMALL) >= limit)

    def axis(self, shape: Shape, values: Sequence[float], times: TimeAxis) -> SecondsAxis:
        """Make the axis that holds what was measured, the limit if it lies there, and the trend as far as they go."""
        also = [self.limit] if self.is_drawn and self.limit is not None else []
        if self.trend is not None:
            highest = max([*values, *also], default=0.0)
            also.append(min(max(self.trend.at(times.until), 0.0), _RAISED * highest))
        return seconds_axis(shape, values, also)

    def lines(self, times: TimeAxis, values: SecondsAxis) -> Iterator[Line]:
        """Give the limit, the trend up to the last run that it was fitted to, and how it would go on."""
        if self.is_drawn and self.limit is not None:
            height = values.place(self.limit)
            yield from line("limit", [(times.low, height), (times.high, height)])
        if self.trend is None:
            return
        known, since = min(self.trend.until, times.until), max(self.trend.since, times.since)
        for kind, begin, end in (("trend", since, known), ("forecast", max(known, since), times.until)):
            if begin < end:
                yield from line(kind, _curve(self.trend, begin, end, times, values))

    def keys(self) -> Iterator[Key]:
        """Name what is drawn."""
        if self.trend is not None:
            yield Key("trend", "the trend")
            yield Key("forecast", "as it would go on")
        if self.is_drawn:
            yield Key("limit", f"{self.called}, {show_seconds(self.limit)}")

    def told(self) -> str:
        """Say where the limit is when it is not drawn."""
        if self.limit is None or self.is_drawn:
            return ""
        return f" The {self.called}, {show_seconds(self.limit)}, lies far above what is drawn."


def _curve(
    trend: Trend, since: datetime, until: datetime, times: TimeAxis, values: SecondsAxis
) -> list[tuple[float, float]]:
    """Follow a trend up to where it leaves the chart."""
    places = []
    for piece in range(_PIECES + 1):
        instant = since + (until - since) * piece / _PIECES
        fitted = max(trend.at(instant), 0.0)
        places.append((times.place(instant), values.place(fitted)))
        if fitted > values.most:
            break
    return places
