"""Whether a job may fire: its standing, read from its row, and in words. Pure."""

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from schemas.occurrence import format_instant


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a job may fire. `meanwhile` says what becomes of what falls due during a pause; instants are UTC.

    `paused_by` is None where the job's own declaration has paused it.
    """

    paused_at: datetime | None
    paused_by: str | None
    pause_reason: str | None
    meanwhile: str
    resumed_at: datetime | None
    retired_at: datetime | None
    retired_by: str | None
    retire_reason: str | None


def standing_of(row: Any) -> Standing:
    """Read a standing from a row of the job's table."""
    return Standing(*(row[field.name] for field in fields(Standing)))


def as_record(standing: Standing) -> dict[str, str]:
    """Give what is set of a standing, for the audit trail."""
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(standing).items()
        if value is not None
    }


def told_pause(standing: Standing) -> str:
    """Say since when the job is paused, by whom, why, and what becomes of what falls due."""
    by = standing.paused_by or "its own declaration"
    return f"since {at(standing.paused_at)} by {by}: {standing.pause_reason} ({standing.meanwhile})"


def told_retirement(standing: Standing) -> str:
    """Say since when the job is retired, by whom, and why."""
    return f"since {at(standing.retired_at)} by {standing.retired_by}: {standing.retire_reason}"


def at(instant: datetime | None) -> str:
    """Write an instant to the second; nothing is said of one that is not known."""
    return "?" if instant is None else format_instant(instant.replace(microsecond=0))
