"""A notice as each kind of receiver takes it. Pure.

Whatever a receiver would read as markup, a mention or a header is text here, since the words are other people's.
"""

import re
from datetime import datetime, timedelta
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Any

from shared.channels import Email
from shared.notice import Notice

# Alertmanager takes an alert for over when it hears nothing more of it: so long it stays without being sent again.
FIRES_FOR = timedelta(minutes=5)
LONGEST_SUMMARY = 1000
LONGEST_DEDUPLICATION = 255
LONGEST_HEADER = 150
LONGEST_SECTION = 2900
LONGEST_SUBJECT = 200
_NOT_IN_ID = re.compile(r"[^A-Za-z0-9.-]")


def webhook_body(notice: Notice) -> dict[str, Any]:
    """Give the body of the signed webhook: a type, a time, and everything that is known."""
    return {
        "type": f"alert.{notice.event}",
        "timestamp": _written(notice.at),
        "data": {
            "id": notice.id,
            "alert": notice.alert,
            "environment": notice.environment,
            "kind": notice.kind,
            "severity": notice.severity,
            "subject": notice.subject,
            "job": notice.job,
            "told": notice.told,
            "detail": notice.detail,
            "advice": notice.advice,
            "more": notice.more,
            "runbook": notice.runbook,
            "opened_at": _written(notice.opened_at),
            "closed_at": _written(notice.at) if notice.over else None,
            "close_reason": notice.close_reason or None,
            "notices": notice.notices,
        },
    }


def alertmanager_alert(notice: Notice, now: datetime) -> dict[str, Any]:
    """Give one alert of Alertmanager's API v2; its labels are the same from the first message to the last."""
    labels = {
        "alertname": "Matins" + "".join(word.capitalize() for word in notice.kind.split("_")),
        "kind": notice.kind,
        "subject": notice.subject,
        "job": notice.job or "",
        "severity": notice.severity,
        "environment": notice.environment,
    }
    # One that is over before it has begun would be refused.
    ends_at = max(notice.at, notice.opened_at + timedelta(seconds=1)) if notice.over else now + FIRES_FOR
    return {
        "labels": {name: value for name, value in labels.items() if value},
        "annotations": {"summary": notice.headline, "description": notice.told, "advice": notice.advice}
        | {"command": notice.more, "runbook": notice.runbook, "id": notice.id},
        "startsAt": _written(notice.opened_at),
        "endsAt": _written(ends_at),
    }


def pagerduty_event(notice: Notice, routing_key: str) -> dict[str, Any]:
    """Give an event of Events API v2: all messages of one alert have one key, and the last resolves it."""
    key = f"matins/{notice.environment}/{notice.id if notice.alert is None else notice.alert}"
    event: dict[str, Any] = {
        "routing_key": routing_key,
        "event_action": "resolve" if notice.over else "trigger",
        "dedup_key": key[:LONGEST_DEDUPLICATION],
    }
    if notice.over:
        return event
    return event | {
        "client": "Matins",
        "payload": {
            "summary": f"{notice.headline}: {notice.told}"[:LONGEST_SUMMARY],
            "source": notice.environment,
            "severity": "critical" if notice.severity == "critical" else "warning",
            "timestamp": _written(notice.opened_at),
            "component": notice.job or notice.subject,
            "class": notice.kind,
            "custom_details": dict(notice.lines()) | {"detail": notice.detail},
        },
    }


def slack_message(notice: Notice) -> dict[str, Any]:
    """Give a message of Slack: plain text in blocks, where nothing is a mention, a link or an emphasis."""
    said = "\n".join(f"{name}: {value}" for name, value in notice.lines())
    return {
        "text": _escaped(notice.headline),
        "blocks": [
            {"type": "header", "text": _plain(notice.headline[:LONGEST_HEADER])},
            {"type": "section", "text": _plain(said[:LONGEST_SECTION])},
        ],
        "unfurl_links": False,
        "unfurl_media": False,
    }


def mail(notice: Notice, channel: Email) -> EmailMessage:
    """Give a mail; its id is the same however often it is sent, and all of one alert's are one conversation."""
    domain = channel.sender.rpartition("@")[2]
    message = EmailMessage(policy=SMTP)
    message["Subject"] = notice.headline[:LONGEST_SUBJECT]
    message["From"] = Address("Matins", addr_spec=channel.sender)
    message["To"] = ", ".join(channel.to)
    message["Date"] = notice.at
    message["Message-ID"] = f"<{_NOT_IN_ID.sub('-', notice.id)}@{domain}>"
    if notice.alert is not None:
        conversation = f"<matins-{_NOT_IN_ID.sub('-', notice.environment)}-alert-{notice.alert}@{domain}>"
        message["References"] = conversation
        message["In-Reply-To"] = conversation
    message["Auto-Submitted"] = "auto-generated"
    message["X-Matins-Id"] = notice.id
    message["X-Matins-Kind"] = notice.kind
    message.set_content("".join(f"{name}: {value}\n" for name, value in notice.lines()), cte="base64")
    return message


def _plain(text: str) -> dict[str, Any]:
    return {"type": "plain_text", "text": text, "emoji": False}


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def _written(instant: datetime) -> str:
    return instant.isoformat(timespec="milliseconds").replace("+00:00", "Z")
