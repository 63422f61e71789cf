"""What becomes of the instants that are due and undecided: which may run, and for each other its end. Pure.

Usually one instant is due, and it runs. After a downtime there are more: `latest` runs the last one and coalesces the
others into it, `skip` runs none that is later than `start_within`, `all` runs each in its turn, the oldest first, and
leaves out the oldest where there are more than `catch_up_at_most`. What is later than `catch_up_within` was missed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.decisions import MOST_CAUGHT_UP, Decisions


@dataclass(frozen=True, slots=True)
class Due:
    """A due occurrence (its row's id) that nobody has decided.

    It may be claimed from `due_at` on, and is late from then. `covered_by` is the id of a later occurrence whose run
    covered this one's time, or None. `waited_until` is since when nothing has been in the way of one that was made to
    wait, and None of one that never was.
    """

    id: int
    scheduled_at: datetime
    due_at: datetime
    covered_by: int | None = None
    waited_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """Those that may run, the first of them next, and the others by what becomes of them, each in order.

    `coalesced` go into the one that may run, `covered` into the one that has run their time. `late` are skipped for
    their lateness, `beyond` since more are late than may be caught up.
    """

    turns: tuple[Due, ...] = ()
    coalesced: tuple[Due, ...] = ()
    covered: tuple[Due, ...] = ()
    missed: tuple[Due, ...] = ()
    late: tuple[Due, ...] = ()
    beyond: tuple[Due, ...] = ()


def catch_up(due: Sequence[Due], decisions: Decisions, now: datetime) -> CaughtUp:
    """Decide; `due` increases."""
    covered = tuple(one for one in due if one.covered_by is not None)
    open_ones = [one for one in due if one.covered_by is None]
    missed, left = _parted(open_ones, decisions.catch_up_within, now)
    late: list[Due] = []
    if decisions.catch_up == "all":
        most = decisions.catch_up_at_most or MOST_CAUGHT_UP
        return CaughtUp(tuple(left[-most:]), (), covered, tuple(missed), (), tuple(left[:-most]))
    if decisions.catch_up == "skip":
        late, left = _parted(left, decisions.start_within, now)
    return CaughtUp(tuple(left[-1:]), tuple(left[:-1]), covered, tuple(missed), tuple(late))


def must_pause(turns: Sequence[Due], decisions: Decisions, now: datetime, last_claimed_at: datetime | None) -> bool:
    """Tell whether the first of `turns` must not start yet, since another was claimed less than the pace ago.

    What is due alone and in time is no catching up, and has no pace.
    """
    if decisions.catch_up_pace is None or last_claimed_at is None or now - last_claimed_at >= decisions.catch_up_pace:
        return False
    return len(turns) > 1 or _later_than(turns[0], decisions.start_within, now)


def _parted(due: Sequence[Due], bound: timedelta, now: datetime) -> tuple[list[Due], list[Due]]:
    """Give those that are later than `bound`, and the others."""
    later = [one for one in due if _later_than(one, bound, now)]
    return later, [one for one in due if not _later_than(one, bound, now)]


def _later_than(due: Due, bound: timedelta, now: datetime) -> bool:
    return now - max(due.due_at, due.waited_until or due.due_at) > bound
