"""A job's runs as lines of text: time goes down, what each took to the right, with the trend and the interval. Pure.

What was changed stands between the runs, where it happened. It fits a terminal of any width, and needs neither colour
nor more than the letters of ASCII.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final, NamedTuple

from shared.durations import show_seconds
from shared.runs import Run
from trigger.stats import Change, Stats

_NARROW: Final = 72
_LEAST_BAR: Final = 8
# A run that takes less than this share of the interval is drawn on a scale of its own.
_SMALL: Final = 1 / 8
_NEAR: Final = 0.8


class Signs(NamedTuple):
    """What is drawn: a run's time, the trend, the next instant, a change."""

    time: str
    trend: str
    next: str
    change: str


PLAIN: Final = Signs("#", "+", "|", "--")
DRAWN: Final = Signs("█", "┼", "│", "──")


class Line(NamedTuple):
    """A line, and how it shows on a terminal with colours."""

    text: str
    style: str = ""


@dataclass(frozen=True, slots=True)
class Chart:
    """Draws the runs of a job, `width` letters wide."""

    stats: Stats
    width: int
    signs: Signs = DRAWN

    def lines(self) -> Iterator[Line]:
        """Give the legend, then each run, the oldest first, with the changes between them."""
        if not self.stats.runs:
            return
        yield Line(self._legend(), "dim")
        changes = list(self.stats.changes)
        for run in self.stats.runs:
            while changes and changes[0].at <= run.scheduled_at:
                yield self._change(changes.pop(0))
            yield self._run(run)
        for change in changes:
            yield self._change(change)

    @property
    def _interval(self) -> float:
        interval = self.stats.duration.interval
        return interval.total_seconds() if interval else 0.0

    @property
    def _scale(self) -> float:
        """How many seconds the whole bar stands for."""
        longest = max([run.seconds for run in self.stats.runs if run.seconds] or [1.0])
        return 1.1 * longest if longest < _SMALL * self._interval else max(longest, self._interval, 1.0)

    @property
    def _bar_width(self) -> int:
        beside = 22 if self.width < _NARROW else 50
        return max(_LEAST_BAR, min(self.width - beside, 100))

    def _legend(self) -> str:
        told = [f"{self.signs.time} took"]
        if self.stats.duration.trend:
            told.append(f"{self.signs.trend} trend")
        if self._interval:
            beyond = "" if self._interval <= self._scale else ", beyond the edge"
            told.append(f"{self.signs.next} the next is due, {show_seconds(self._interval)} later{beyond}")
        return "   ".join(told)

    def _run(self, run: Run) -> Line:
        took, tally = show_seconds(run.seconds), self.stats.tally(run)
        state = "" if run.state == "succeeded" else f"  {run.state}"
        if self.width < _NARROW:
            return Line(f"{_short(run.scheduled_at)} {self._bar(run)} {took:>7}{state}".rstrip(), self._style(run))
        lag = f"lag {show_seconds(run.lag_seconds)}"
        claims = f"{tally.attempts}/{tally.wins}"
        text = f"{_long(run.scheduled_at)}  {self._bar(run)}  {took:>7}  {lag:<11}  {claims}{state}"
        return Line(text.rstrip(), self._style(run))

    def _bar(self, run: Run) -> str:
        width, scale = self._bar_width, self._scale
        filled = round(width * (run.seconds or 0.0) / scale)
        cells = [self.signs.time] * filled + [" "] * (width - filled)
        trend = self.stats.duration.trend
        if trend and run.scheduled_at >= trend.since:
            cells[_place(trend.at(run.scheduled_at), scale, width)] = self.signs.trend
        if 0 < self._interval <= scale:
            cells[_place(self._interval, scale, width)] = self.signs.next
        return "".join(cells)

    def _style(self, run: Run) -> str:
        if run.seconds is None or not self._interval:
            return ""
        if run.seconds >= self._interval:
            return "red"
        return "yellow" if run.seconds >= _NEAR * self._interval else ""

    def _change(self, change: Change) -> Line:
        at = _short(change.at) if self.width < _NARROW else _long(change.at)
        by = f", {change.actor}" if change.actor else ""
        why = f": {change.reason}" if change.reason else ""
        text = f"{at}  {self.signs.change} {change.system} {change.version}{by}{why}"
        return Line(text[: max(self.width, 20)], "cyan")


def _place(seconds: float, scale: float, width: int) -> int:
    return min(max(round(width * seconds / scale) - 1, 0), width - 1)


def _long(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%Y-%m-%d %H:%MZ}"


def _short(instant: datetime) -> str:
    return f"{instant.astimezone(UTC):%m-%d %H:%M}"
