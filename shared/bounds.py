"""The years in which schedules are asked, and instants as a declaration may write them. Pure."""

from calendar import monthrange
from collections.abc import Mapping
from datetime import UTC, datetime, tzinfo
from typing import Any

from shared.cron_fields import shorten
from shared.errors import DeclarationError

EARLIEST = datetime(100, 1, 1, tzinfo=UTC)
LATEST = datetime(9900, 1, 1, tzinfo=UTC)
ANY_YEAR = datetime(2024, 1, 1, tzinfo=UTC)


def bounded(instant: datetime, name: str) -> datetime:
    """Give an instant in UTC, kept away from the ends of the calendar, where adding an offset overflows.

    Raises:
        ValueError: it has no zone; `name` says which one it is.
    """
    if instant.tzinfo is None:
        raise ValueError(f"{name} has no zone")
    return min(max(instant.astimezone(UTC), EARLIEST), LATEST)


def in_zone(instant: datetime, zone: tzinfo) -> datetime:
    """Give an aware instant as the zone's clocks show it.

    Raises:
        ValueError: it has no zone.
    """
    if instant.tzinfo is None:
        raise ValueError("instant has no zone")
    return instant.astimezone(zone)


def check_keys(definition: Mapping[str, Any], keys: tuple[str, ...]) -> None:
    """See that a schedule's definition has these keys and no others.

    Raises:
        DeclarationError: it has not.
    """
    if set(definition) != set(keys):
        raise DeclarationError("schedule definition", f"has the keys {sorted(definition)}", ", ".join(keys))


def declared_instant(value: object) -> datetime:
    """Read an instant of a declaration: a datetime with a zone, or text such as `2026-12-24T10:00Z`; whole seconds.

    Raises:
        ValueError: it is anything else; the message says what is wrong with it.
    """
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            raise ValueError(f"{shorten(value)} is not an instant") from None
    if not isinstance(value, datetime):
        raise ValueError(f"{shorten(value)} is not an instant")  # noqa: TRY004 - one kind of error for one kind of fault
    if value.tzinfo is None:
        raise ValueError(f"{value.isoformat()} has no zone")
    if value.microsecond or not EARLIEST <= value <= LATEST:
        raise ValueError(f"{value.isoformat()} is not a whole second of the years 100 to 9899")
    return value.astimezone(UTC)


def written(instant: datetime) -> str:
    """Write an instant as definitions do: `2026-12-24T10:00:00Z`."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")


def months_later(instant: datetime, months: int) -> datetime:
    """Give the same day and time so many months later, or the last day of a shorter month."""
    years, month = divmod(instant.month - 1 + months, 12)
    year = instant.year + years
    day = min(instant.day, monthrange(year, month + 1)[1])
    return instant.replace(year=year, month=month + 1, day=day)
