"""The kinds of alerts: how bad each is, what it is about, and what to do. Pure.

A kind's entry in docs/runbook.md has the kind's name as its heading.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal

Severity = Literal["critical", "warning"]
About = Literal["occurrence", "job", "instance"]


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of alert: `subject` says what a row's subject names, `advice` what to do first, in a sentence.

    `lasts` tells whether it describes a condition, which closes when it is over; what has happened for good, as a
    failed run, closes when it is mended or acknowledged.
    """

    severity: Severity
    subject: About
    advice: str
    lasts: bool = True


# No command runs what only checks in, and its silence says nothing about triggers and workers.
_ELSEWHERE: Final = "A job that runs elsewhere: look there."

KINDS: Final[Mapping[str, Kind]] = {
    "not_claimed": Kind(
        "critical", "occurrence", f"See with `status` whether a trigger lives; it runs once one does. {_ELSEWHERE}"
    ),
    "not_finished": Kind(
        "critical", "occurrence", f"See with `show` how far it is, and whether workers live. {_ELSEWHERE}"
    ),
    "no_progress": Kind("critical", "occurrence", "See with `status` whether workers live and consume its queue."),
    "partial": Kind("warning", "occurrence", "Read its report with `show`, mend the cause, `rerun` it.", lasts=False),
    "failed": Kind(
        "critical", "occurrence", f"Read its report with `show`, mend the cause, `rerun` it. {_ELSEWHERE}", lasts=False
    ),
    "missed": Kind(
        "critical", "occurrence", f"Decide whether it is run late: `fire` or `backfill` does. {_ELSEWHERE}", lasts=False
    ),
    "duration_near_interval": Kind("warning", "job", "See with `stats` how it grows: make it shorter, or rarer."),
    "lag_growing": Kind("warning", "job", "See with `stats` since when; triggers or the database are short of time."),
    "job_vanished": Kind("critical", "job", "Declare it again, or `retire` it by name if that was meant."),
    "config_mismatch": Kind("warning", "job", "Finish the deploy: two live instances hold different definitions."),
    "clock_skew": Kind("warning", "instance", "Mend the clock of the instance's host, or of the database's."),
}

# What shows more of a job or an instance; of an occurrence `show` does.
_MORE: Final[Mapping[str, str]] = {
    "duration_near_interval": "stats {}",
    "lag_growing": "stats {}",
    "job_vanished": "occurrences {} --state expected",
    "config_mismatch": "status",
    "clock_skew": "doctor",
}


def more(kind: str, subject: str) -> str:
    """Give the command that shows more of an alert's subject."""
    return f"python -m trigger {_MORE.get(kind, 'show {}').format(subject)}"
