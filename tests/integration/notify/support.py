"""Alerts in the outbox, channels to receivers of a test, and passes that deliver."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.alert import KINDS
from shared.channels import Channel, Target
from shared.deliver import Delivering, deliver_pass
from shared.logs import FailureLog, logger
from shared.postgres import Database, Session

NOW = datetime(2026, 8, 25, 2, 15, tzinfo=UTC)
SUBJECT = "invoice-run:2026-08-25T02:00Z"
TOLD = "invoice-run:2026-08-25T02:00Z was to be claimed by 02:10; no trigger lives"


async def open_alert(
    session: Session, *, kind: str = "not_claimed", subject: str = SUBJECT, job: str = "invoice-run", at: datetime = NOW
) -> int:
    """Open an alert without telling anybody; give its id."""
    opened: int = await session.fetchval(
        """insert into matins.alert (kind, subject, job, told, opened_at, opened_by)
           values ($1, $2, $3, $4, $5, 'test') returning id""",
        kind,
        subject,
        job,
        TOLD,
        at,
    )
    return opened


def body_of(alert: Mapping[str, Any], event: str, at: datetime, **changes: Any) -> dict[str, Any]:
    """Give the outbox's text, as the watch writes it."""
    usual = {
        "event": event,
        "alert": alert["id"],
        "environment": "testing",
        "kind": alert["kind"],
        "severity": KINDS[alert["kind"]].severity,
        "subject": alert["subject"],
        "job": alert["job"],
        "told": alert["told"],
        "advice": KINDS[alert["kind"]].advice,
        "more": f"python -m trigger show {alert['subject']}",
        "runbook": f"docs/runbook.md#{alert['kind']}",
        "detail": {"generation": 1},
        "opened_at": alert["opened_at"].isoformat(),
        "at": at.isoformat(),
        "notices": alert["notices"],
        "closed_at": at.isoformat() if event == "closed" else None,
        "close_reason": "it is over" if event == "closed" else None,
    }
    return usual | changes


async def tell(session: Session, alert: int, event: str, *, at: datetime = NOW, **changes: Any) -> int:
    """Write an event of an alert into the outbox, as the watch does in the alert's transaction."""
    row: Any = await session.fetchrow("select * from matins.alert where id = $1", alert)
    if event == "closed":
        await session.execute(
            "update matins.alert set closed_at = $2, close_reason = 'it is over' where id = $1", alert, at
        )
    written: int = await session.fetchval(
        "insert into matins.notification (alert_id, event, body, created_at) values ($1, $2, $3, $4) returning id",
        alert,
        event,
        body_of(row, event, at, **changes),
        at,
    )
    return written


async def opened(session: Session, *, at: datetime = NOW, **more: Any) -> int:
    """Open an alert, and tell of it."""
    alert = await open_alert(session, at=at, **more)
    await tell(session, alert, "opened", at=at)
    return alert


def to(target: Target, name: str = "receiver", **choices: Any) -> Channel:
    """Give a channel."""
    return Channel(name, target, **choices)


def delivering(database: Database, channel: Channel, instance: str = "one") -> Delivering:
    """Give what a pass needs; nothing is drawn at random."""
    return Delivering(database, channel, "testing", instance, FailureLog(logger("test")), draw=lambda: 0.0)


async def deliver(database: Database, channel: Channel, now: datetime = NOW) -> int:
    """Deliver once, at an instant of the database's clock."""
    return await deliver_pass(delivering(database, channel), now=now)


async def deliveries(session: Session) -> list[tuple[str, str, int]]:
    """Give event, state and attempts of each delivery, in their order."""
    rows = await session.fetch("select event, state, attempts from matins.delivery order by id")
    return [(row["event"], row["state"], row["attempts"]) for row in rows]


def later(**time: float) -> datetime:
    """Give an instant after NOW."""
    return NOW + timedelta(**time)
