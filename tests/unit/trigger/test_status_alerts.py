from typing import Any

import pytest

from trigger.status_alerts import MOST_TOLD, Problem, judged, seen_to

LATE = Problem("night is late", "not_claimed:night:2026-08-25T02:00Z")
ALONE = Problem("no worker is live")


def alert(number: int, name: str, standing: str = "told") -> dict[str, Any]:
    return {"alert": number, "name": name, "standing": standing, "told": "it is out of order"}


def test_what_an_alert_tells_too_is_said_once() -> None:
    assert judged([ALONE, LATE], []) == [ALONE.line, LATE.line]
    assert judged([ALONE, LATE], [alert(7, LATE.alert)]) == [ALONE.line, "night is late (alert 7)"]
    assert judged([], [alert(8, "clock_skew:one")]) == ["clock_skew:one: it is out of order (alert 8)"]


@pytest.mark.parametrize("standing", ["acknowledged", "silenced", "maintenance"])
def test_what_somebody_has_seen_to_is_no_problem(standing: str) -> None:
    alerts = [alert(7, LATE.alert, standing), alert(8, "clock_skew:one", standing)]
    assert judged([LATE], alerts) == []
    assert judged([ALONE, LATE], alerts[1:]) == [ALONE.line, LATE.line]
    assert seen_to(alerts) == "; 2 open alerts are acknowledged, silenced or of planned maintenance"
    assert seen_to(alerts[:1]) == "; 1 open alert is acknowledged, silenced or of planned maintenance"
    assert seen_to([alert(7, LATE.alert)]) == ""


def test_of_many_alerts_the_first_are_told() -> None:
    alerts = [alert(number, f"failed:night-{number}") for number in range(MOST_TOLD + 3)]
    lines = judged([], alerts)
    assert len(lines) == MOST_TOLD + 1
    assert lines[-1] == "and 3 more: `alerts`"
