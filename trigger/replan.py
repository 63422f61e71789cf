"""What a new definition does to instants that were planned: one run a night, whatever the order of a rolling deploy.

Old and new instants pair by nearness: each must be the other's nearest, and of two that are equally near the earlier
counts. A pair is the same night's work. Pure.
"""

from bisect import bisect_left
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shared.schedule_protocol import Schedule

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Planned:
    """An instant of the definition until now: `expected` is waiting for its claim, `claimed` was claimed at some time.

    One that is neither was decided without a claim, or stands for the old schedule beyond what was planned.
    """

    scheduled_at: datetime
    expected: bool = False
    claimed: bool = False


@dataclass(frozen=True, slots=True)
class Replanned:
    """What becomes of the instants, each tuple increasing.

    `expected` are due under the new definition; `refused` are too, but their work was claimed under the old one;
    `superseded` were expected under the old one and are no longer.
    """

    expected: tuple[datetime, ...]
    refused: tuple[datetime, ...]
    superseded: tuple[datetime, ...]


def replan(
    old: Sequence[Planned],
    new: Sequence[datetime],
    now: datetime,
    until: datetime,
    left_out: Collection[datetime] = (),
) -> Replanned:
    """Compare the two; `new` reaches from around the last old instant to one behind `until`, and is decided up to it.

    A new instant whose old partner was claimed is refused. An old one that is expected stays if it is also a new one,
    or if its new partner lies in the past, where it was never due; otherwise it is superseded, also when it is due but
    not claimed yet and its new partner is still to come, or when it is `left_out` by the new calendar.
    """
    partners = mutually_nearest([one.scheduled_at for one in old], new)
    taken = {partners.get(one.scheduled_at) for one in old if one.claimed}
    wanted = [instant for instant in new if now < instant <= until]
    waiting = sorted(one.scheduled_at for one in old if one.expected)
    return Replanned(
        expected=tuple(instant for instant in wanted if instant not in taken),
        refused=tuple(instant for instant in wanted if instant in taken),
        superseded=tuple(one for one in waiting if one in left_out or not _stays(one, partners.get(one), now, until)),
    )


def _stays(instant: datetime, partner: datetime | None, now: datetime, until: datetime) -> bool:
    if partner == instant:
        return True
    if instant > now:
        return partner is not None and partner <= now
    return partner is None or not now < partner <= until


def mutually_nearest(old: Sequence[datetime], new: Sequence[datetime]) -> dict[datetime, datetime]:
    """Give the new partner of each old instant that has one; both increase."""
    partners = {}
    for instant in old:
        candidate = nearest(instant, new)
        if candidate is not None and nearest(candidate, old) == instant:
            partners[instant] = candidate
    return partners


def nearest(instant: datetime, among: Sequence[datetime]) -> datetime | None:
    """Give the nearest of increasing instants, the earlier of two that are equally near; None if there are none."""
    place = bisect_left(among, instant)
    around = among[max(place - 1, 0) : place + 1]
    return min(around, key=lambda one: (abs(one - instant), one), default=None)


def compared_instants(schedule: Schedule, old: Sequence[Planned], now: datetime, until: datetime) -> list[datetime]:
    """Give the new schedule's instants that `replan` needs: those to decide, and the neighbours of what lies before."""
    around = {schedule.previous_before(now + _SECOND), schedule.next_after(until)}
    if old and old[0].scheduled_at <= now:
        last = old[0].scheduled_at
        around |= {schedule.previous_before(last + _SECOND), schedule.next_after(last)}
    around |= set(schedule.instants(now, until))
    return sorted(instant for instant in around if instant is not None)


def beyond_plan(schedule: Schedule, planned_through: datetime, first: datetime | None) -> list[Planned]:
    """Give the old schedule's instants around the first new one that lie beyond what was planned.

    They claim nothing, but a new instant that is nearer to one of them is not the last claimed one's partner.
    """
    if first is None:
        return []
    around = (schedule.previous_before(first + _SECOND), schedule.next_after(first))
    return [Planned(instant) for instant in around if instant is not None and instant > planned_through]
