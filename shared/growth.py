"""What a job's last runs say about those to come, in sentences. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from schemas.occurrence import format_instant
from shared.durations import show_date, show_seconds
from shared.forecast import Point, Trend, growing
from shared.interval import Forecast, usual

# A start that is this much later than what is due is within what looking for it takes.
LEAST_LAG_SECONDS: Final = 5.0

Detail = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Lag:
    """How long after they are due the runs begin: `usual` is that of the last few, in seconds; `trend` its growth.

    `meets` is when it passes `start_within`, by the fit, if ever. `grows` tells that it has grown to what is worth
    telling.
    """

    usual: float | None
    start_within: timedelta
    trend: Trend | None = None
    meets: datetime | None = None
    grows: bool = False


def lag_of(points: Sequence[Point], start_within: timedelta, *, all_of_it: bool = False) -> Lag:
    """Judge the lag of the runs, the oldest first; what is small is not fitted, unless `all_of_it` is asked for."""
    now = usual(points)
    if now is None or (now < LEAST_LAG_SECONDS and not all_of_it):
        return Lag(now, start_within)
    trend = growing(points)
    if trend is None:
        return Lag(now, start_within)
    late, before = trend.at(trend.until), trend.at(trend.since)
    grows = now >= LEAST_LAG_SECONDS and late >= LEAST_LAG_SECONDS and late - before >= late / 2
    return Lag(now, start_within, trend, trend.meets(start_within.total_seconds()), grows)


def told_duration(found: Forecast) -> str:
    """Say in a sentence how what the runs take compares with the interval, and when they meet."""
    if found.usual is None:
        return "no run has gone through yet"
    takes = f"a run takes {show_seconds(found.usual)}"
    if found.interval is None:
        return f"{takes}; nothing more is due"
    takes += f" of the {show_seconds(found.interval.total_seconds())} to the next"
    if found.overlaps:
        return f"{takes}: it meets the next one already"
    if found.trend is None:
        return f"{takes}, and shows no growth"
    grows = f"{takes}, and {show_seconds(found.trend.per_day)} more each day"
    if found.meets is None:
        return f"{grows}: at this growth it does not meet the next one in ten years"
    return f"{grows}: at this growth the run meets the next one on {show_date(found.meets)}"


def told_lag(lag: Lag) -> str:
    """Say in a sentence how late the runs begin, and when that is too late."""
    if lag.usual is None:
        return "none has begun yet"
    begins = f"a run begins {show_seconds(lag.usual)} after it is due"
    if lag.trend is None or not lag.grows:
        return f"{begins}, and that does not grow"
    grows = f"{begins}, and {show_seconds(lag.trend.per_day)} later each day"
    within = show_seconds(lag.start_within.total_seconds())
    if lag.usual >= lag.start_within.total_seconds():
        return f"{grows}: later than start_within, {within}"
    if lag.meets is None:
        return grows
    return f"{grows}: at this growth it is later than start_within, {within}, on {show_date(lag.meets)}"


def detail_of_duration(found: Forecast) -> Detail:
    """Give the same as JSON-able numbers: seconds, and instants as text."""
    return {
        "runs": found.runs,
        "seconds": _rounded(found.usual),
        "interval_seconds": found.interval.total_seconds() if found.interval else None,
        "meets_at": format_instant(found.meets) if found.meets else None,
        "overlaps": found.overlaps,
        "trend": detail_of_trend(found.trend),
    }


def detail_of_lag(lag: Lag) -> Detail:
    """Give the same as JSON-able numbers: seconds, and instants as text."""
    return {
        "seconds": _rounded(lag.usual),
        "start_within_seconds": lag.start_within.total_seconds(),
        "meets_at": format_instant(lag.meets.replace(microsecond=0)) if lag.meets else None,
        "grows": lag.grows,
        "trend": detail_of_trend(lag.trend),
    }


def detail_of_trend(trend: Trend | None) -> Detail | None:
    """Give a trend as JSON-able numbers, None for none: what is fitted at its two ends, and the growth of a day."""
    if trend is None:
        return None
    return {
        "runs": trend.runs,
        "since": format_instant(trend.since),
        "until": format_instant(trend.until),
        "seconds_since": _rounded(trend.at(trend.since)),
        "seconds_until": _rounded(trend.at(trend.until)),
        "seconds_per_day": _rounded(trend.per_day),
    }


def start_within_of(definition: Mapping[str, Any]) -> timedelta:
    """Give how late a job of this definition may begin."""
    return timedelta(seconds=definition["decisions"]["start_within"])


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 3)
