"""From findings to alerts: opened once, told through the outbox, told again, and closed when they are over.

All of it is one transaction with what was found, so that whoever is told can read why. Of several that see the same,
the unique index lets one open it, and each change asks for what it changes from.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from schemas.alert import KINDS, more
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Finding

STANDING_ALERTS = statement("shared", "standing_alerts")
OPEN_ALERTS = statement("shared", "open_alerts")
REFRESH_ALERTS = statement("shared", "refresh_alerts")
CLOSE_ALERTS = statement("shared", "close_alerts")
TELL_ALERTS = statement("shared", "tell_alerts")
INSERT_NOTIFICATIONS = statement("shared", "insert_notifications")

# What is over and comes back sooner is told of no sooner: a thing that comes and goes wakes nobody at each turn.
QUIET_AFTER_CLOSE = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class Raised:
    """What a pass has changed: the rows of the alerts that it opened, told (of again) and closed."""

    opened: tuple[Row, ...] = ()
    told: tuple[Row, ...] = ()
    closed: tuple[Row, ...] = ()


@dataclass(frozen=True, slots=True)
class Alerts:
    """What the alerts of an environment are changed with; `repeat` is the rhythm in which one is told of again."""

    environment: str
    instance: str
    repeat: timedelta

    async def apply(
        self, session: Session, findings: Sequence[Finding], judged: Iterable[str], *, now: datetime | None = None
    ) -> Raised:
        """Make the open alerts of the `judged` kinds what was found, in the caller's transaction."""
        found = {(one.kind, one.subject): one for one in findings}
        standing = await session.fetch(STANDING_ALERTS, sorted(judged), now)
        over = {row["id"]: reason for row in standing if (reason := _over(row, found)) is not None}
        closed = await self._close(session, over, now)
        stands = {(row["kind"], row["subject"]) for row in standing if row["id"] not in over}
        await _refresh(
            session, [(row, found[row["kind"], row["subject"]]) for row in standing if row["id"] not in over]
        )
        opened = await self._open(session, [one for key, one in found.items() if key not in stands], now)
        told = sorted(await session.fetch(TELL_ALERTS, self.repeat, list(KINDS), now), key=lambda row: row["id"])
        # Ends first: a receiver that knows an alert by its name would take one behind for the new one's.
        events = [(row, "closed") for row in closed if row["notices"] > 0]
        events += [(row, "opened" if row["notices"] == 1 else "repeated") for row in told]
        await self._tell(session, events, now)
        return Raised(tuple(opened), tuple(told), tuple(closed))

    async def _close(self, session: Session, over: Mapping[int, str], now: datetime | None) -> list[Row]:
        if not over:
            return []
        return await session.fetch(CLOSE_ALERTS, list(over), list(over.values()), self.instance, now)

    async def _open(self, session: Session, findings: Sequence[Finding], now: datetime | None) -> list[Row]:
        if not findings:
            return []
        return await session.fetch(
            OPEN_ALERTS,
            [one.kind for one in findings],
            [one.subject for one in findings],
            [one.job for one in findings],
            [one.occurrence_id for one in findings],
            [one.told for one in findings],
            [dict(one.detail) for one in findings],
            [KINDS[one.kind].lasts for one in findings],
            self.instance,
            QUIET_AFTER_CLOSE,
            now,
        )

    async def _tell(self, session: Session, events: Sequence[tuple[Row, str]], now: datetime | None) -> None:
        if not events:
            return
        ids, kinds = [row["id"] for row, _ in events], [event for _, event in events]
        bodies = [self._body(row, event) for row, event in events]
        await session.execute(INSERT_NOTIFICATIONS, ids, kinds, bodies, now)

    def _body(self, row: Row, event: str) -> dict[str, Any]:
        """Give all that a message needs; times are text in ISO 8601, UTC."""
        kind = KINDS[row["kind"]]
        return {
            "event": event,
            "alert": row["id"],
            "environment": self.environment,
            "kind": row["kind"],
            "severity": kind.severity,
            "about": kind.subject,
            "subject": row["subject"],
            "job": row["job"],
            "told": row["told"],
            "advice": kind.advice,
            "more": more(row["kind"], row["subject"]),
            "runbook": f"docs/runbook.md#{row['kind']}",
            "detail": row["detail"],
            "opened_at": row["opened_at"].isoformat(),
            "at": row["at"].isoformat(),
            "notices": row["notices"],
            "closed_at": None if row["closed_at"] is None else row["closed_at"].isoformat(),
            "close_reason": row["close_reason"],
        }


async def _refresh(session: Session, standing: Sequence[tuple[Row, Finding]]) -> None:
    """Have what is told again tell what is known now."""
    stale = [(row["id"], one) for row, one in standing if row["due"] and row["told"] != one.told]
    if stale:
        ids, told, details = zip(*((known, one.told, dict(one.detail)) for known, one in stale), strict=True)
        await session.execute(REFRESH_ALERTS, ids, told, details)


def _over(row: Row, found: Mapping[tuple[str, str], Finding]) -> str | None:
    """Say why an open alert is over; None while it is not."""
    finding = found.get((row["kind"], row["subject"]))
    if finding is None:
        return "it is over" if KINDS[row["kind"]].lasts else "it was mended, or the job was retired"
    if row["generation"] is not None and row["generation"] != finding.detail.get("generation"):
        return "it was run again, and has ended so again"
    if not KINDS[row["kind"]].lasts and row["acknowledged_at"] is not None:
        return f"acknowledged by {row['acknowledged_by']}: {row['acknowledge_reason']}"
    return None
