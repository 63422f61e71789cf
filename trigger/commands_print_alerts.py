"""What `alerts`, `alert`, `status` and `show` print of alerts for a person."""

from collections.abc import Iterator, Sequence
from typing import Any

from shared.terminal_tables import Times, print_line, print_table

_HEADINGS = ("alert", "severity", "kind", "subject", "since", "told", "standing", "what")


def print_alerts(alerts: Sequence[dict[str, Any]], times: Times, *, title: str = "", empty: str = "none") -> None:
    """Print a list of alerts, a line each."""
    print_table(title, _HEADINGS, [_row(one, times) for one in alerts], empty=empty)


def print_alert(shown: dict[str, Any], times: Times) -> None:
    """Print everything about one alert."""
    print_line(f"{shown['name']}: {shown['severity']}, alert {shown['alert']}", "bold")
    print_line(shown["told"])
    print_line()
    print_table("", ("what", "value"), list(_facts(shown, times)))
    print_line()
    notices = [
        (times.show(one["created_at"]), one["event"], one["channel"], one["state"], one["attempts"], one["error"])
        for one in shown["history"]
    ]
    print_table("Notices", ("at", "event", "channel", "state", "attempts", "error"), notices)
    events = [
        (times.show(one["at"]), one["kind"], one["actor"] or (one["instance"] or "")[:8], one["reason"])
        for one in shown["events"]
    ]
    print_table("Events", ("at", "event", "by", "reason"), events)


def _row(one: dict[str, Any], times: Times) -> tuple[object, ...]:
    return (
        one["alert"],
        one["severity"],
        one["kind"],
        one["subject"],
        times.show(one["opened_at"]),
        _often(one["notices"]),
        one["told_standing"],
        one["told"],
    )


def _often(notices: int) -> str:
    return {0: "not yet", 1: "once"}.get(notices, f"{notices} times")


def _facts(shown: dict[str, Any], times: Times) -> Iterator[tuple[str, object]]:
    yield "job", shown["job"]
    yield "since", f"{times.show(shown['opened_at'])}, seen by {shown['opened_by']}"
    yield "told", _often(shown["notices"])
    if shown["standing"] == "told":
        yield "told again", times.show(shown["next_notice_at"])
    yield "standing", shown["told_standing"]
    yield "what to do", shown["advice"]
    yield "more", shown["more"]
    yield "runbook", shown["runbook"]
    for name, value in shown["detail"].items():
        yield name.replace("_", " "), value
