"""What `status` makes of open alerts: each thing is said once, and what somebody has seen to is no problem. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

MOST_TOLD = 20


@dataclass(frozen=True, slots=True)
class Problem:
    """A line about what is not well, and the name of the alert, KIND:SUBJECT, that is opened for it, or ''."""

    line: str
    alert: str = ""


def judged(problems: Sequence[Problem], alerts: Sequence[dict[str, Any]]) -> list[str]:
    """Give what is not well: the problems, and the alerts of nothing of these; but not what somebody has seen to.

    An alert that is acknowledged, silenced or of a planned maintenance is not told again, and makes nothing unwell.
    """
    by_name = {one["name"]: one for one in alerts}
    lines = []
    for problem in problems:
        alert = by_name.pop(problem.alert, None)
        if alert is None:
            lines.append(problem.line)
        elif alert["standing"] == "told":
            lines.append(f"{problem.line} (alert {alert['alert']})")
    others = [one for one in by_name.values() if one["standing"] == "told"]
    lines += [f"{one['name']}: {one['told']} (alert {one['alert']})" for one in others[:MOST_TOLD]]
    return [*lines, f"and {len(others) - MOST_TOLD} more: `alerts`"] if len(others) > MOST_TOLD else lines


def seen_to(alerts: Sequence[dict[str, Any]]) -> str:
    """Say, behind that all is well, how many open alerts somebody has seen to."""
    count = sum(one["standing"] != "told" for one in alerts)
    are = "alert is" if count == 1 else "alerts are"
    return f"; {count} open {are} acknowledged, silenced or of planned maintenance" if count else ""
