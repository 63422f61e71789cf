"""Alerts: those that are open, the worst and oldest on top, and what is over; and everything about one of them."""

from typing import Any, Final

from schemas.alert import KINDS
from schemas.occurrence import parse_identity
from shared.terminal import Refused
from trigger.alert_standing import read_reference
from trigger.alerts import Alert, list_alerts, show_alert
from trigger.console.asking import Unanswerable, one_of, page_number, words
from trigger.console.place import GLANCE_SECONDS, STALE_SECONDS, Asked, Page, Values
from trigger.console.runbook import entry_of
from trigger.maintenances import list_maintenance

ALERTS_A_PAGE: Final = 50
MOST_MAINTENANCES: Final = 50
SHOWS: Final = ("open", "all")


async def read_list(asked: Asked) -> Values:
    """Read a page of the list. Raises Unanswerable."""
    page, job = page_number(asked.query), words(asked.query, "job")
    kind, shows = one_of(asked.query, "kind", tuple(KINDS)), one_of(asked.query, "show", SHOWS)
    async with asked.place.database.session() as session:
        try:
            alerts, found = await list_alerts(
                session,
                job=job or None,
                kinds=(kind,) if kind else (),
                closed_too=shows == "all",
                limit=ALERTS_A_PAGE,
                behind=(page - 1) * ALERTS_A_PAGE,
            )
        except Refused as error:
            raise Unanswerable(f"job: {error}") from None
        maintenances = await list_maintenance(session, job or None, limit=MOST_MAINTENANCES)
    return {
        "title": "Alerts",
        "alerts": alerts,
        "maintenances": maintenances,
        "found": found,
        "page": page,
        "pages": max(page, -(-found // ALERTS_A_PAGE)),
        "asked": {"job": job, "kind": kind, "show": shows},
        "kinds": list(KINDS),
    }


async def read_one(asked: Asked) -> Values:
    """Read one alert. Raises Refused when there is none."""
    reference = read_reference(asked.path["alert"])
    async with (
        asked.place.database.session() as session,
        session.transaction(isolation="repeatable_read", readonly=True),
    ):
        alert = await show_alert(session, reference)
    return {
        "title": f"Alert {alert['alert']}: {alert['kind'].replace('_', ' ')}",
        "alert": alert,
        "occurrence": _occurrence_of(alert),
        "runbook": entry_of(alert["kind"], alert["job"], alert["subject"]),
    }


def _occurrence_of(alert: Alert) -> str:
    """Give the name of the occurrence that an alert is about; '' where it is about something else."""
    if alert["kind"] in KINDS and KINDS[alert["kind"]].subject != "occurrence":
        return ""
    subject: Any = alert["subject"]
    try:
        return str(parse_identity(subject))
    except ValueError:
        return ""


LIST: Final = Page(
    "/alerts",
    "alerts.html",
    read_list,
    "alerts",
    frozenset({"page", "job", "kind", "show"}),
    GLANCE_SECONDS,
    STALE_SECONDS,
)
ONE: Final = Page("/alerts/{alert}", "alert.html", read_one, "alerts")
