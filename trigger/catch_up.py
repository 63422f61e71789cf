"""What becomes of the instants that are due and undecided: at most one runs, and each gets an end with a reason. Pure.

Usually one instant is due, and it runs. After a downtime there are more: `latest` runs the last one and coalesces the
others into it, `skip` runs none that is later than `start_within`; what is later than `catch_up_within` was missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.decisions import Decisions


@dataclass(frozen=True, slots=True)
class Due:
    """A due occurrence (its row's id) that nobody has decided.

    `covered_by` is the id of a later occurrence whose run covered this one's time, or None.
    """

    id: int
    scheduled_at: datetime
    covered_by: int | None = None


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """The one to run, if any, and the others by what becomes of them, each in order.

    `coalesced` go into the one that runs, `covered` into the one that has run their time.
    """

    run: Due | None = None
    coalesced: tuple[Due, ...] = ()
    covered: tuple[Due, ...] = ()
    missed: tuple[Due, ...] = ()
    late: tuple[Due, ...] = ()


def catch_up(due: Sequence[Due], decisions: Decisions, now: datetime) -> CaughtUp:
    """Decide; `due` increases."""
    covered = tuple(one for one in due if one.covered_by is not None)
    open_ones = [one for one in due if one.covered_by is None]
    missed = tuple(one for one in open_ones if _later_than(one, decisions.catch_up_within, now))
    left = open_ones[len(missed) :]
    late: tuple[Due, ...] = ()
    if decisions.catch_up == "skip":
        late = tuple(one for one in left if _later_than(one, decisions.start_within, now))
        left = left[len(late) :]
    return CaughtUp(left[-1] if left else None, tuple(left[:-1]), covered, missed, late)


def _later_than(due: Due, bound: timedelta, now: datetime) -> bool:
    return now - due.scheduled_at > bound
