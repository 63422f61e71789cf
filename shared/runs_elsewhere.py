"""What is declared of work that something else runs: the bounds within which it is to be heard of, and no code."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar, Final

from shared.decisions import Decisions
from shared.declaration import Fault
from shared.explained import UNDECIDED
from shared.job_faults import duration_faults, duration_text

BOUNDS_TO_PASTE: Final = """\
# from shared.job import hours, minutes
    start_within=minutes(10),     # no check-in by then: an alert; it still counts when it comes later
    finish_within=hours(3),       # started, and no end reported by then: an alert
    heard_within=hours(20),       # not heard of by then: over, missed if it never started, else failed"""
_NAMES: Final = ("start_within", "finish_within", "heard_within")
_LEAST: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class NotHere:
    """Stands for the accounts and for the handler of a job that runs elsewhere: no worker has its code, or calls it."""

    handler: ClassVar[str] = ""
    timeout: ClassVar[timedelta] = timedelta(0)
    concurrency: ClassVar[int] = 0
    chunk_size: ClassVar[int] = 1
    role: ClassVar[None] = None
    login: ClassVar[None] = None
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)


def bound_faults(start_within: timedelta, finish_within: timedelta, heard_within: timedelta) -> tuple[Fault, ...]:
    """Demand the three bounds, and that what starts and ends in time is waited for."""
    bounds: dict[str, Any] = dict(zip(_NAMES, (start_within, finish_within, heard_within), strict=True))
    missing = ", ".join(name for name, value in bounds.items() if value is UNDECIDED)
    if missing:
        told = f"must be decided, and has no default. Paste this and choose:\n{BOUNDS_TO_PASTE}"
        return (Fault(missing, told), *_ranges(bounds))
    faults = _ranges(bounds)
    if not faults and heard_within <= start_within + finish_within:
        least = duration_text(start_within + finish_within)
        right = f"more than start_within and finish_within together, which is {least}"
        return (Fault("heard_within", f"is {duration_text(heard_within)}", right),)
    return faults


def decided_elsewhere(start_within: timedelta, finish_within: timedelta, heard_within: timedelta) -> Decisions:
    """Write the bounds as decisions: nothing is caught up here, and whether two run at once is not decided here."""
    return Decisions(
        catch_up="skip",
        catch_up_within=heard_within,
        overlap="allow",
        start_within=start_within,
        finish_within=finish_within,
    )


def _ranges(bounds: dict[str, Any]) -> tuple[Fault, ...]:
    return tuple(fault for name, value in bounds.items() for fault in duration_faults(name, value, minimum=_LEAST))
