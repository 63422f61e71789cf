"""What is told, in the form of each receiver, whatever hostile text an alert carries."""

import json
from datetime import UTC, datetime, timedelta
from email import message_from_bytes
from email.policy import default
from typing import Any

import orjson
import pytest

from shared.channels import Email
from shared.notice import Notice, read_notice
from shared.notice_formats import alertmanager_alert, mail, pagerduty_event, slack_message, webhook_body

AT = datetime(2026, 8, 25, 2, 15, tzinfo=UTC)
MAILS = Email("smtp.example.com", 587, "matins@example.com", ("night@example.com",))
HOSTILE = {
    "markup": "<script>alert(1)</script> <!channel> <https://evil.example|click> *bold* `code` &amp; {{ .Labels }}",
    "header": "late\r\nBcc: everybody@example.com\r\n\r\nyou have won",
    "zero": "a\x00b\x1b[31mred\x07",
    "reordered": "abc\u202edcba\u2066",
    "half": "broken \ud800 half",
    "long": "x" * 1_000_000,
    "lines": "a\nb\n" * 100_000,
}


def notice(told: str = "nobody has claimed it", event: str = "opened", **more: Any) -> Notice:
    body = {
        "alert": 7,
        "environment": "production",
        "kind": "not_claimed",
        "severity": "critical",
        "subject": "invoice-run:2026-08-25T02:00Z",
        "job": "invoice-run",
        "told": told,
        "advice": "See with `status` whether a trigger lives.",
        "more": "python -m trigger show invoice-run:2026-08-25T02:00Z",
        "runbook": "docs/runbook.md#not_claimed",
        "detail": {"why": told},
        "opened_at": AT.isoformat(),
        "at": (AT + timedelta(hours=1)).isoformat(),
        "notices": 2,
        "close_reason": told if event == "closed" else None,
    }
    return read_notice("matins-production-12-20260825T021500", event, body | more)


def every_form(one: Notice) -> dict[str, bytes]:
    return {
        "webhook": orjson.dumps(webhook_body(one)),
        "alertmanager": orjson.dumps(alertmanager_alert(one, AT)),
        "pagerduty": orjson.dumps(pagerduty_event(one, "key")),
        "slack": orjson.dumps(slack_message(one)),
        "email": bytes(mail(one, MAILS)),
    }


def test_a_notice_says_what_somebody_who_was_woken_wants() -> None:
    one = notice()
    assert one.headline == "[production] critical: not_claimed invoice-run:2026-08-25T02:00Z"
    assert dict(one.lines()) == {
        "what": "nobody has claimed it",
        "do": "See with `status` whether a trigger lives.",
        "more": "python -m trigger show invoice-run:2026-08-25T02:00Z",
        "runbook": "docs/runbook.md#not_claimed",
        "since": "2026-08-25T02:15:00Z",
        "told": "2 times",
        "id": "matins-production-12-20260825T021500",
    }
    over = notice("it was claimed", "closed")
    assert "over: " in over.headline
    assert dict(over.lines())["over"] == "since 2026-08-25T03:15:00Z: it was claimed"


@pytest.mark.parametrize("event", ["opened", "repeated", "closed"])
@pytest.mark.parametrize("hostile", HOSTILE)
def test_every_form_bears_every_text(hostile: str, event: str) -> None:
    text = HOSTILE[hostile]
    one = notice(text, event, subject=text, job=text, environment=text, kind=text, advice=text, more=text)
    for name, form in every_form(one).items():
        assert len(form) < 64_000, name
        assert b"\x00" not in form, name
        assert b"\x1b" not in form, name
        form.decode("utf-8")


@pytest.mark.parametrize("hostile", HOSTILE)
def test_a_mail_has_no_header_of_somebody_else(hostile: str) -> None:
    one = notice(HOSTILE[hostile], subject=HOSTILE[hostile], environment=HOSTILE[hostile], kind=HOSTILE[hostile])
    read = message_from_bytes(bytes(mail(one, MAILS)), policy=default)
    assert set(read) == {
        "Subject",
        "From",
        "To",
        "Date",
        "Message-ID",
        "References",
        "In-Reply-To",
        "Auto-Submitted",
        "X-Matins-Id",
        "X-Matins-Kind",
        "Content-Type",
        "Content-Transfer-Encoding",
        "MIME-Version",
    }
    assert read["To"] == "night@example.com"
    assert read.get_content_type() == "text/plain"


def test_slack_mentions_nobody_and_links_nowhere() -> None:
    said = slack_message(notice("<!channel> <https://evil.example|click> @here", subject="<!here>"))
    assert said["text"] == "[production] critical: not_claimed &lt;!here&gt;"
    assert {block["text"]["type"] for block in said["blocks"]} == {"plain_text"}


def test_an_alertmanager_knows_an_alert_again_and_when_it_is_over() -> None:
    first, last = alertmanager_alert(notice(), AT), alertmanager_alert(notice(event="closed"), AT)
    assert first["labels"] == last["labels"]
    assert first["labels"]["alertname"] == "MatinsNotClaimed"
    assert (first["startsAt"], first["endsAt"]) == ("2026-08-25T02:15:00.000Z", "2026-08-25T02:20:00.000Z")
    assert last["endsAt"] == "2026-08-25T03:15:00.000Z"


def test_pagerduty_resolves_what_it_was_told_of() -> None:
    first, last = pagerduty_event(notice(), "key"), pagerduty_event(notice(event="closed"), "key")
    assert first["dedup_key"] == last["dedup_key"] == "matins/production/7"
    assert (first["event_action"], last["event_action"]) == ("trigger", "resolve")
    assert len(json.dumps(first["payload"]["summary"])) < 1100


def test_all_mails_of_an_alert_are_one_conversation_and_each_has_its_id() -> None:
    first, again = mail(notice(), MAILS), mail(notice(), MAILS)
    assert first["Message-ID"] == again["Message-ID"] == "<matins-production-12-20260825T021500@example.com>"
    assert first["References"] == mail(notice(event="closed"), MAILS)["References"]


def test_what_another_release_left_out_is_empty_and_an_instant_without_a_zone_is_refused() -> None:
    body = {"opened_at": AT.isoformat()}
    assert read_notice("id", "opened", body).severity == "critical"
    with pytest.raises(ValueError, match="zone"):
        read_notice("id", "opened", {"opened_at": "2026-08-25T02:00:00"})
