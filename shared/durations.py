"""Durations and dates as a person reads them. Pure."""

from datetime import UTC, datetime

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400


def show_seconds(seconds: float | None) -> str:
    """Write a duration for a person: `0.4s`, `42s`, `3m 20s`, `1h 02m`, `2d 3h`; `-` for none."""
    if seconds is None:
        return "-"
    whole = round(abs(seconds))
    if abs(seconds) < 10:  # noqa: PLR2004 - below ten seconds a tenth is worth reading
        return f"{seconds:.1f}s"
    if whole < _MINUTE:
        return f"{whole}s"
    if whole < _HOUR:
        return f"{whole // _MINUTE}m {whole % _MINUTE:02}s"
    if whole < _DAY:
        return f"{whole // _HOUR}h {whole % _HOUR // _MINUTE:02}m"
    return f"{whole // _DAY}d {whole % _DAY // _HOUR}h"


def show_date(instant: datetime) -> str:
    """Write the day of an instant in UTC: `14 March 2026`."""
    utc = instant.astimezone(UTC)
    return f"{utc.day} {utc:%B %Y}"
