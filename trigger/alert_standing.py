"""How an alert stands: told, acknowledged, silenced, in planned maintenance, or over; and in words. Pure."""

from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any, Final, Literal

from schemas.alert import KINDS, Kind
from schemas.occurrence import format_instant
from shared.terminal import Refused

Stand = Literal["told", "acknowledged", "silenced", "maintenance", "closed"]
RUNBOOK: Final = "docs/runbook.md"
CRITICAL: Final = tuple(name for name, kind in KINDS.items() if kind.severity == "critical")
# Opened by a later release than this one.
_UNKNOWN: Final = Kind("critical", "occurrence", "A later release has opened it: read of it with that release.")


@dataclass(frozen=True, slots=True)
class AlertStanding:
    """What people have decided about an alert, and whether it is over; a silence that is over stays written."""

    next_notice_at: datetime | None
    acknowledged_at: datetime | None
    acknowledged_by: str | None
    acknowledge_reason: str | None
    silenced_until: datetime | None
    silenced_by: str | None
    silence_reason: str | None
    closed_at: datetime | None
    close_reason: str | None

    def silenced(self, now: datetime) -> bool:
        """Tell whether a silence holds."""
        return self.silenced_until is not None and now < self.silenced_until


@dataclass(frozen=True, slots=True)
class Reference:
    """An alert as a person names it: by `number`, or by kind and subject, which is the open one or the last."""

    number: int | None
    kind: str = ""
    subject: str = ""

    def __str__(self) -> str:
        """Give the written form."""
        return f"{self.kind}:{self.subject}" if self.number is None else str(self.number)


def read_reference(text: str) -> Reference:
    """Read `7` or `failed:invoice-run:2026-08-25T02:00Z`. Raises Refused with the forms and the kinds there are."""
    if text.isascii() and text.isdigit() and len(text) < 19:  # noqa: PLR2004 - what a bigint holds
        return Reference(int(text))
    kind, colon, subject = text.partition(":")
    if colon and subject and kind in KINDS:
        return Reference(None, kind, subject)
    problem = f"{text[:120]!r} names no alert: write its number, as `alerts` lists it, or KIND:SUBJECT; "
    raise Refused(problem + f"the kinds are {', '.join(KINDS)}")


def kind_of(name: str) -> Kind:
    """Give a kind, also for one that only a later release knows."""
    return KINDS.get(name, _UNKNOWN)


def standing_of(row: Any) -> AlertStanding:
    """Read a standing from a row of the alerts' table."""
    return AlertStanding(*(row[field.name] for field in fields(AlertStanding)))


def as_record(standing: AlertStanding) -> dict[str, str]:
    """Give what is set of a standing, for the audit trail."""
    return {
        name: value.astimezone(UTC).isoformat() if isinstance(value, datetime) else value
        for name, value in asdict(standing).items()
        if value is not None
    }


def stand(standing: AlertStanding, now: datetime, maintained_until: datetime | None) -> Stand:
    """Tell how an alert stands at `now`; only one that is `told` has nobody who knows of it, and is not planned."""
    if standing.closed_at is not None:
        return "closed"
    if standing.acknowledged_at is not None:
        return "acknowledged"
    if standing.silenced(now):
        return "silenced"
    return "told" if maintained_until is None else "maintenance"


def told_standing(standing: AlertStanding, now: datetime, maintained_until: datetime | None) -> str:
    """Say how an alert stands: by whom, until when, and why."""
    acknowledged = ""
    if standing.acknowledged_at is not None:
        by, why = standing.acknowledged_by, standing.acknowledge_reason
        acknowledged = f"acknowledged {at(standing.acknowledged_at)} by {by}: {why}"
    match stand(standing, now, maintained_until):
        case "closed":
            over = f"over since {at(standing.closed_at)}: {standing.close_reason}"
            return f"{over}; {acknowledged}" if acknowledged else over
        case "acknowledged":
            return acknowledged
        case "silenced":
            return f"silenced until {at(standing.silenced_until)} by {standing.silenced_by}: {standing.silence_reason}"
        case "maintenance":
            return f"in planned maintenance until {at(maintained_until)}"
        case _:
            again = f", again {at(standing.next_notice_at)}" if standing.next_notice_at else ""
            return f"told{again}"


def at(instant: datetime | None) -> str:
    """Write an instant to the second; nothing is said of one that is not known."""
    return "?" if instant is None else format_instant(instant.replace(microsecond=0))
