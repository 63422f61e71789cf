"""Sending a notice through a channel, whatever its kind: one attempt, with a deadline and an outcome.

It is done outside of any transaction. The notice's id goes with it, so that a receiver can tell a message that comes
twice from two messages.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, assert_never

import orjson

from shared.channel_email import send_mail
from shared.channel_http import Outcome, Request, post
from shared.channels import Alertmanager, Channel, Email, Log, PagerDuty, Ping, Slack, Webhook
from shared.logs import logger
from shared.masking import plain, text_of
from shared.notice import Notice
from shared.notice_formats import alertmanager_alert, mail, pagerduty_event, slack_message, webhook_body
from shared.ping import ping_request, run_id
from shared.webhook_signing import signed_headers

_log = logger(__name__)


async def send(channel: Channel, notice: Notice, now: datetime) -> Outcome:
    """Send one message; `now` is the database's time, which is signed, and from which an alert's end is counted."""
    try:
        match channel.target:
            case Log():
                return _write(notice)
            case Email() as email:
                return await send_mail(email, mail(notice, email))
            case Webhook() | Alertmanager() | PagerDuty() | Slack() as target:
                return await post(_request(target, notice, now), now=now)
            case Ping() as ping:
                # Only `notify --test` sends a switch a notice, and it must not take it for a run.
                return await post(
                    ping_request(ping, "log", run_id(notice.environment, notice.id), notice.told), now=now
                )
            case _ as never:
                assert_never(never)
    except Exception as error:  # noqa: BLE001 - what cannot be written for one receiver must not keep it from the others
        return Outcome(plain(f"{type(error).__name__}: {text_of(error)}", 300))


async def keep_firing(target: Alertmanager, notices: Sequence[Notice], now: datetime) -> Outcome:
    """Send again what is still open, since an Alertmanager that hears no more of an alert takes it for over."""
    return await post(_alerts(target, notices, now), now=now)


def _write(notice: Notice) -> Outcome:
    values = dict(notice.lines()) | {"kind": notice.kind, "subject": notice.subject, "severity": notice.severity}
    write = _log.info if notice.over else _log.error if notice.severity == "critical" else _log.warning
    write(f"alert {notice.event}", **values)
    return Outcome()


def _request(target: Webhook | Alertmanager | PagerDuty | Slack, notice: Notice, now: datetime) -> Request:
    match target:
        case Webhook():
            body = orjson.dumps(webhook_body(notice))
            signed = signed_headers(target.keys, notice.id, int(now.timestamp()), body)
            return Request(target.url, body, _json(signed), target.ca_file)
        case Alertmanager():
            return _alerts(target, [notice], now)
        case PagerDuty():
            return Request(
                target.url, orjson.dumps(pagerduty_event(notice, target.routing_key)), _json(), target.ca_file
            )
        case Slack():
            return Request(target.url, orjson.dumps(slack_message(notice)), _json(), target.ca_file)


def _alerts(target: Alertmanager, notices: Sequence[Notice], now: datetime) -> Request:
    bearing = {"authorization": f"Bearer {target.token}"} if target.token else {}
    body = orjson.dumps([alertmanager_alert(one, now) for one in notices])
    return Request(f"{target.url}/api/v2/alerts", body, _json(bearing), target.ca_file)


def _json(headers: dict[str, Any] | None = None) -> dict[str, str]:
    return {"content-type": "application/json"} | (headers or {})
