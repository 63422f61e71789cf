from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from schemas.alert import KINDS
from shared.terminal import Refused
from trigger.alert_standing import (
    CRITICAL,
    AlertStanding,
    Reference,
    as_record,
    kind_of,
    read_reference,
    stand,
    told_standing,
)

NOW = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
TOLD = AlertStanding(NOW + HOUR, None, None, None, None, None, None, None, None)
SILENCED = replace(TOLD, silenced_until=NOW + HOUR, silenced_by="ann", silence_reason="mended at noon")
KNOWN = replace(TOLD, next_notice_at=None, acknowledged_at=NOW, acknowledged_by="bob", acknowledge_reason="on it")
OVER = replace(KNOWN, closed_at=NOW + HOUR, close_reason="ended")


@pytest.mark.parametrize(
    ("standing", "maintained", "expected", "told"),
    [
        (TOLD, None, "told", "told, again 2026-08-25T03:00Z"),
        (TOLD, NOW + HOUR, "maintenance", "in planned maintenance until 2026-08-25T03:00Z"),
        (SILENCED, NOW + HOUR, "silenced", "silenced until 2026-08-25T03:00Z by ann: mended at noon"),
        (KNOWN, NOW + HOUR, "acknowledged", "acknowledged 2026-08-25T02:00Z by bob: on it"),
        (
            OVER,
            None,
            "closed",
            "over since 2026-08-25T03:00Z: ended; acknowledged 2026-08-25T02:00Z by bob: on it",
        ),
    ],
)
def test_a_standing_and_its_words(
    standing: AlertStanding, maintained: datetime | None, expected: str, told: str
) -> None:
    assert stand(standing, NOW, maintained) == expected
    assert told_standing(standing, NOW, maintained) == told


def test_a_silence_ends_by_itself() -> None:
    assert stand(SILENCED, NOW + HOUR - timedelta(microseconds=1), None) == "silenced"
    assert stand(SILENCED, NOW + HOUR, None) == "told"


def test_the_audit_trail_keeps_what_is_set() -> None:
    assert as_record(KNOWN) == {
        "acknowledged_at": "2026-08-25T02:00:00+00:00",
        "acknowledged_by": "bob",
        "acknowledge_reason": "on it",
    }


def test_an_alert_is_named_by_its_number_or_its_kind_and_subject() -> None:
    assert read_reference("7") == Reference(7)
    named = read_reference("failed:invoice-run:2026-08-25T02:00Z")
    assert (named.kind, named.subject) == ("failed", "invoice-run:2026-08-25T02:00Z")
    assert [str(Reference(7)), str(named)] == ["7", "failed:invoice-run:2026-08-25T02:00Z"]


@pytest.mark.parametrize("text", ["", "seven", "-7", "9" * 19, "failed", "failed:", "lost:invoice-run", "\u0667"])
def test_what_names_no_alert_is_told_the_forms(text: str) -> None:
    with pytest.raises(
        Refused, match=r"names no alert: write its number, .* or KIND:SUBJECT; the kinds are not_claimed"
    ):
        read_reference(text)


def test_a_kind_of_a_later_release_is_no_less_severe() -> None:
    assert kind_of("comet").severity == "critical"
    assert all(KINDS[name].severity == "critical" for name in CRITICAL)
