"""What becomes of instants that would run while other occurrences of the job still do. Pure.

With `skip` they are skipped, and with them the instants that they would have covered: these cannot be coalesced into an
occurrence that doesn't run. The next one that runs covers their time. With `queue_one` the last of them waits, and the
others are coalesced into it. With `cancel_previous` it waits too, for the end of the ones that it has cancelled.

A backfilled or an ad-hoc occurrence costs no scheduled one its run, whatever the policy, and neither does one that a
backfill runs again: the scheduled one waits for its end.

Where each instant is caught up, one that waits for its turn is no overlap: those that were due before the active one
was claimed, that fall due behind others which wait, or while the active one is itself late. Each of them waits for the
end of one that is not the schedule's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.decisions import Decisions
from trigger.catch_up import CaughtUp, Due


@dataclass(frozen=True, slots=True)
class Active:
    """An occurrence that is claimed or running, since when, and whether it was claimed late or is ending already.

    It `is_scheduled` unless a backfill or a person has it run.
    """

    id: int
    scheduled_at: datetime
    identity: str
    opened_at: datetime
    is_late: bool = False
    is_ending: bool = False
    is_scheduled: bool = True


@dataclass(frozen=True, slots=True)
class Decided:
    """What is applied to those that may run: one is claimed, or waits, and `coalesced` go into it.

    Behind one that waits `also_wait`. `overlapping` are skipped, and of `ended` the end is requested.
    """

    run: Due | None = None
    waits: Due | None = None
    also_wait: tuple[Due, ...] = ()
    coalesced: tuple[Due, ...] = ()
    overlapping: tuple[Due, ...] = ()
    ended: tuple[Active, ...] = ()


def without_overlap(caught_up: CaughtUp, decisions: Decisions, active: Sequence[Active]) -> Decided:
    """Decide, given every occurrence of the job that is active."""
    turns = caught_up.turns
    if not turns:
        return Decided()
    if not active or decisions.overlap == "allow":
        return Decided(run=turns[0], coalesced=caught_up.coalesced)
    is_the_schedules = all(one.is_scheduled for one in active)
    if decisions.catch_up == "all" and _await_their_turn(turns, active):
        return Decided() if is_the_schedules else Decided(waits=turns[0], also_wait=turns[1:])
    before, last = (*caught_up.coalesced, *turns[:-1]), turns[-1]
    match decisions.overlap if is_the_schedules else "queue_one":
        case "skip":
            return Decided(overlapping=(*before, last))
        case "queue_one":
            return Decided(waits=last, coalesced=before)
        case "cancel_previous":
            return Decided(waits=last, coalesced=before, ended=tuple(one for one in active if not one.is_ending))


def _await_their_turn(turns: Sequence[Due], active: Sequence[Active]) -> bool:
    latest = max(one.opened_at for one in active)
    return turns[0].due_at <= latest or any(one.is_late or not one.is_scheduled for one in active)
