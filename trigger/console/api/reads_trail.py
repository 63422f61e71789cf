"""The questions about alerts, the audit trail, and what people have ordered."""

from typing import Any, Final

from schemas.alert import KINDS
from trigger.alert_standing import read_reference
from trigger.alerts import list_alerts, show_alert
from trigger.audit_trail import Filter, list_audit
from trigger.backfills import list_backfills
from trigger.console.api.fields import component, many
from trigger.console.api.parameters import choice, flag, in_path, instant, occurrence, text, whole
from trigger.console.api.reads_runs import MOST_LISTED, OF_JOB
from trigger.console.api.route import Question, Read
from trigger.console.api.shapes_fleet import OCCURRENCE as WRITTEN
from trigger.maintenances import list_maintenance

ALERT: Final = in_path(
    "alert",
    "Its number, or KIND:SUBJECT: the open one, or the last.",
    "7",
    {"minLength": 1, "format": "alert"},
)
_LIMIT: Final = whole("limit", "At most.", 1, MOST_LISTED, 50)


async def alerts(question: Question) -> Any:
    """Give what `alerts --json` does."""
    async with question.view() as session:
        found, count = await list_alerts(
            session,
            job=question["job"],
            kinds=question["kind"],
            since=question["since"],
            closed_too=question["closed"],
            limit=question["limit"],
        )
    return {"found": count, "alerts": found}


async def one_alert(question: Question) -> Any:
    """Give what `alert --json` does."""
    async with question.view() as session:
        return await show_alert(session, read_reference(question["alert"]))


async def audit(question: Question) -> Any:
    """Give what `audit --json` does."""
    of, job = question["occurrence"], question["job"]
    if of is not None and job not in {None, of.job}:
        return []
    asked = Filter(job, of, tuple(question["kind"]), question["actor"], question["since"], question["until"])
    async with question.view() as session:
        return await list_audit(session, asked, question["limit"])


async def backfills(question: Question) -> Any:
    """Give what `backfills --json` does."""
    async with question.view() as session:
        return await list_backfills(session, question["job"], question["limit"])


async def maintenance(question: Question) -> Any:
    """Give what `maintenance list --json` does."""
    async with question.view() as session:
        return await list_maintenance(session, question["job"], over_too=question["over"], limit=question["limit"])


READS: Final = (
    Read(
        "/alerts",
        "alerts",
        "Alerts, the worst and oldest first.",
        component("Alerts"),
        alerts,
        (
            OF_JOB,
            choice("kind", "Of this kind.", tuple(KINDS), many=True),
            instant("since", "Opened at or after this."),
            flag("closed", "Also those that are over."),
            _LIMIT,
        ),
    ),
    Read("/alerts/{alert}", "alert", "One alert, with its history.", component("ShownAlert"), one_alert, (ALERT,)),
    Read(
        "/audit",
        "audit",
        "Who or what did what, when and why, the latest first.",
        many(component("AuditEntry")),
        audit,
        (
            OF_JOB,
            occurrence("occurrence", "Of this one.", WRITTEN),
            text("kind", "claim, takeover, cancel, pause, ….", "rerun", longest=63, many=True),
            text("actor", "Ordered by this person or caller.", "ann"),
            instant("since", "At or after this."),
            instant("until", "Before this."),
            _LIMIT,
        ),
    ),
    Read(
        "/backfills",
        "backfills",
        "Backfills, the latest first, each with its progress.",
        many(component("Backfill")),
        backfills,
        (OF_JOB, whole("limit", "At most.", 1, MOST_LISTED, 20)),
    ),
    Read(
        "/maintenance",
        "maintenance",
        "Planned maintenance: what is in force, what is to come, and with `over` what is over.",
        many(component("Maintenance")),
        maintenance,
        (OF_JOB, flag("over", "Also what is over."), _LIMIT),
    ),
)
