"""The alerts that there are and were: lists of them, and everything about one; as values for JSON and for a person."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from schemas.alert import KINDS, more
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.alert_standing import (
    CRITICAL,
    RUNBOOK,
    Reference,
    kind_of,
    stand,
    standing_of,
    told_standing,
)
from trigger.reach import require_job

LIST_ALERTS = statement("trigger", "list_alerts")
FIND_ALERT = statement("trigger", "find_alert")
ALERT_EVENTS = statement("trigger", "alert_events")
ALERT_NOTICES = statement("trigger", "alert_notices")

MOST_OPEN = 1000
_FIELDS = (
    "kind",
    "subject",
    "job",
    "told",
    "detail",
    "opened_at",
    "opened_by",
    "notices",
    "next_notice_at",
    "acknowledged_at",
    "acknowledged_by",
    "acknowledge_reason",
    "silenced_until",
    "silenced_by",
    "silence_reason",
    "closed_at",
    "close_reason",
)

Alert = dict[str, Any]


async def list_alerts(
    session: Session,
    *,
    job: str | None = None,
    kinds: Sequence[str] = (),
    since: datetime | None = None,
    closed_too: bool = False,
    limit: int = MOST_OPEN,
    behind: int = 0,
) -> tuple[list[Alert], int]:
    """Give alerts behind the first `behind`, the open ones first, the worst and oldest on top, and how many there are.

    Raises Refused for an unknown job or kind.
    """
    if job is not None:
        await require_job(session, job)
    if unknown := [kind for kind in kinds if kind not in KINDS]:
        problem = f"--kind: there is no kind {unknown[0][:80]!r}; the kinds are {', '.join(KINDS)}"
        raise Refused(problem)
    chosen = list(kinds) or None
    rows = await session.fetch(LIST_ALERTS, closed_too, job, chosen, since, list(CRITICAL), None, limit, behind)
    return [as_values(row) for row in rows], rows[0]["found"] if rows else 0


async def open_alerts_of(session: Session, occurrence_id: int) -> list[Alert]:
    """Give the open alerts of an occurrence."""
    rows = await session.fetch(LIST_ALERTS, False, None, None, None, list(CRITICAL), occurrence_id, MOST_OPEN, 0)  # noqa: FBT003 - a statement's parameters have no names
    return [as_values(row) for row in rows]


async def show_alert(session: Session, reference: Reference) -> Alert:
    """Give everything about one alert, with what was done about it and told of it. Raises Refused without one."""
    alert = as_values(await require_alert(session, reference))
    alert["events"] = [dict(row) for row in await session.fetch(ALERT_EVENTS, str(alert["alert"]))]
    alert["history"] = [dict(row) for row in await session.fetch(ALERT_NOTICES, alert["alert"])]
    return alert


async def require_alert(session: Session, reference: Reference) -> Row:
    """Read an alert's row. Raises Refused when there is none."""
    row = await session.fetchrow(FIND_ALERT, reference.number, reference.kind, reference.subject)
    if row is None:
        there_is = "there is no alert" if reference.number is not None else "there was never an alert"
        problem = f"{there_is} {reference}; `alerts --all` lists them"
        raise Refused(problem)
    return row


def as_values(row: Any) -> Alert:
    """Give an alert's row as values: with its severity, how it stands, what to do, and where to read about it."""
    kind, standing = kind_of(row["kind"]), standing_of(row)
    judged = (standing, row["now"], row["maintained_until"])
    return {
        "alert": row["id"],
        "name": f"{row['kind']}:{row['subject']}",
        "severity": kind.severity,
        **{name: row[name] for name in _FIELDS},
        "standing": stand(*judged),
        "told_standing": told_standing(*judged),
        "maintained_until": row["maintained_until"],
        "advice": kind.advice,
        "more": more(row["kind"], row["subject"]),
        "runbook": f"{RUNBOOK}#{row['kind']}",
    }
