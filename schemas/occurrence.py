"""An occurrence's identity: a job and the instant at which it was due, written ``invoice-run:2026-08-25T02:00Z``."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime

_WRITTEN = re.compile(
    r"(?P<job>[a-z][a-z0-9_-]{0,62})(?P<variant>[@+][A-Za-z0-9_.-]{1,80})?:"
    r"(?P<day>\d{4}-\d{2}-\d{2})T(?P<minute>\d{2}:\d{2})(?P<second>:\d{2})?(?:Z|\+00:00)",
    re.ASCII,
)


def format_instant(instant: datetime) -> str:
    """Write an aware instant in UTC, to the minute when its seconds are zero: ``2026-08-25T02:00Z``.

    Raises ValueError for an instant without a zone.
    """
    if instant.tzinfo is None:
        message = f"an instant needs a zone: {instant.isoformat()}"
        raise ValueError(message)
    utc = instant.astimezone(UTC)
    return utc.strftime("%Y-%m-%dT%H:%MZ" if utc.second == 0 else "%Y-%m-%dT%H:%M:%SZ")


@dataclass(frozen=True, slots=True, order=True)
class Identity:
    """A job, the instant it was due (UTC, whole seconds), and the variant: '' for the scheduled run."""

    job: str
    scheduled_at: datetime
    variant: str = ""

    def __str__(self) -> str:
        """Give the written form, as `parse_identity` reads it."""
        return f"{self.job}{self.variant}:{format_instant(self.scheduled_at)}"


def parse_identity(text: str) -> Identity:
    """Read ``job:2026-08-25T02:00Z`` (seconds allowed; a variant follows the job as ``@…`` or ``+…``).

    Raises ValueError with the accepted form when the text is anything else.
    """
    match = _WRITTEN.fullmatch(text)
    if match is None:
        message = f"not an occurrence: {text[:120]!r}; write it as JOB:2026-08-25T02:00Z (UTC)"
        raise ValueError(message)
    try:
        instant = datetime.fromisoformat(f"{match['day']}T{match['minute']}{match['second'] or ':00'}+00:00")
    except ValueError as error:
        message = f"not an occurrence: {text[:120]!r}: {error}"
        raise ValueError(message) from error
    return Identity(match["job"], instant, match["variant"] or "")
