"""Alerts, as the watch would have opened them."""

from datetime import datetime
from typing import Any

from shared.postgres import Session


async def open_alert(session: Session, kind: str, subject: str, **more: Any) -> int:
    """Open an alert that was told once; `more` are columns. Gives its number."""
    values: dict[str, Any] = {
        "kind": kind,
        "subject": subject,
        "job": subject.partition(":")[0],
        "told": "it was expected, and is not known",
        "opened_by": "watcher",
        "next_notice_at": datetime.fromisoformat("2126-08-25T06:00Z"),
        **more,
    }
    names, places = ", ".join(values), ", ".join(f"${number}" for number in range(1, len(values) + 1))
    number: int = await session.fetchval(
        f"insert into matins.alert ({names}) values ({places}) returning id", *values.values()
    )
    return number


async def close_alert(session: Session, number: int) -> None:
    """Close an alert, as the watch does when it is over."""
    await session.execute(
        """update matins.alert set closed_at = clock_timestamp(), close_reason = 'it is over'
            where id = $1 and closed_at is null""",
        number,
    )


async def acts(session: Session) -> list[tuple[str, str | None, str | None, dict[str, Any]]]:
    """Give kind, actor, reason and detail of everything in the audit trail that people did."""
    rows = await session.fetch("select * from matins.audit where actor is not null order by id")
    return [(row["kind"], row["actor"], row["reason"], row["detail"]) for row in rows]
