"""A watch that is stepped by hand, and what it has raised and told."""

from datetime import datetime, timedelta

from shared.postgres import Database, Session
from shared.watch_alerts import Raised
from shared.watch_pass import Watch
from tests.integration.trigger.support import DUE, HOUR, MINUTE

LATE = DUE + timedelta(minutes=11)
REPEAT = 4 * HOUR
PASS = timedelta(seconds=15)
SUBJECT = "nightly:2026-08-25T02:00Z"

__all__ = ["DUE", "HOUR", "LATE", "MINUTE", "PASS", "REPEAT", "SUBJECT", "looked", "open_alerts", "told", "watch_on"]


def watch_on(database: Database, instance: str = "watcher") -> Watch:
    """Give a process's part in the watch."""
    return Watch(database, instance, PASS, REPEAT)


async def looked(watch: Watch, now: datetime) -> Raised:
    """Look once at an instant of the database's clock, as if nobody had looked for long."""
    async with watch.database.session() as session:
        await session.execute("update matins.watch set looked_at = null")
    raised = await watch.watch_pass(now)
    assert raised is not None
    return raised


async def open_alerts(session: Session) -> list[tuple[str, str]]:
    """Give kind and subject of every open alert, in order."""
    rows = await session.fetch("select kind, subject from matins.alert where closed_at is null order by kind, subject")
    return [(row["kind"], row["subject"]) for row in rows]


async def told(session: Session) -> list[tuple[str, str, str]]:
    """Give event, kind and subject of everything that was put into the outbox, in order."""
    rows = await session.fetch(
        """select n.event, a.kind, a.subject from matins.notification n join matins.alert a on a.id = n.alert_id
            order by n.id"""
    )
    return [(row["event"], row["kind"], row["subject"]) for row in rows]
