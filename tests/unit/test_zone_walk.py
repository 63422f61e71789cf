"""Every zone whose clocks change in 2024 to 2030, against a walk over each minute of UTC that knows of no cron library.

The walk reads the zone's clocks at each minute around a change. A wall time that it reads twice is double; one that
lies between what it reads at two neighbouring minutes is missing. What cron text means is written here as plain
comparisons.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from itertools import pairwise, product
from typing import get_args

import pytest

from shared.placing import Fold, Gap
from shared.schedule import Cron
from shared.timing import Timing
from shared.zones import find_zone, zone_names
from trigger.preview import preview

FIRST, LAST = datetime(2024, 1, 1, tzinfo=UTC), datetime(2031, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HALF_A_DAY = timedelta(hours=12)
AROUND = timedelta(hours=3)
SHARES = 6
POLICIES: list[tuple[Gap, Fold]] = list(product(get_args(Gap), get_args(Fold)))
Change = tuple[datetime, timedelta, timedelta]
Matches = Callable[[datetime], bool]


@dataclass(frozen=True)
class Minute:
    """A minute of UTC as the zone's clocks read it, whether for the second time, and what they left out before it."""

    instant: datetime
    wall: datetime
    missing: tuple[datetime, ...]


def _offset(instant: datetime, zone: tzinfo) -> timedelta:
    found = instant.astimezone(zone).utcoffset()
    assert found is not None
    return found


def _changes(zone: tzinfo) -> Iterator[Change]:
    """Give each change in the seven years: the minute from which it counts, and the offsets before and after."""
    instant, before = FIRST, _offset(FIRST, zone)
    while instant < LAST:
        after = _offset(instant + HALF_A_DAY, zone)
        if before != after:
            minutes = [instant + number * MINUTE for number in range(1, int(HALF_A_DAY / MINUTE) + 1)]
            yield minutes[bisect_left(minutes, 1, key=lambda at: int(_offset(at, zone) == after))], before, after
        instant, before = instant + HALF_A_DAY, after


@cache
def _groups() -> dict[tuple[Change, ...], list[str]]:
    """Gather the zones whose clocks agree through the seven years, apart from those that never change."""
    groups: dict[tuple[Change, ...], list[str]] = {}
    for name in sorted(zone_names()):
        groups.setdefault(tuple(_changes(find_zone(name))), []).append(name)
    groups.pop((), None)
    return groups


def _share(number: int) -> list[tuple[tuple[Change, ...], list[str]]]:
    """Give one of the shares into which the groups are dealt, so that none takes long."""
    return list(_groups().items())[number::SHARES]


def _walk(zone: tzinfo, change: datetime) -> list[Minute]:
    """Read the zone's clocks at each minute around a change."""
    start = change - AROUND
    readings = [start + number * MINUTE for number in range(2 * int(AROUND / MINUTE) + 1)]
    walls = [instant.astimezone(zone).replace(tzinfo=None) for instant in readings]
    minutes = [Minute(readings[0], walls[0], ())]
    for instant, (earlier, wall) in zip(readings[1:], pairwise(walls), strict=True):
        left_out = range(1, max(int((wall - earlier) / MINUTE), 1))
        minutes.append(Minute(instant, wall, tuple(earlier + number * MINUTE for number in left_out)))
    return minutes


def _expected(minutes: list[Minute], matches: Matches, gap: Gap, fold: Fold) -> list[datetime]:
    read: dict[datetime, list[datetime]] = {}
    moved: set[datetime] = set()
    for minute in minutes:
        if matches(minute.wall):
            read.setdefault(minute.wall, []).append(minute.instant)
        for place, wall in enumerate(minute.missing):
            if matches(wall) and gap != "skip":
                moved.add(minute.instant + (place * MINUTE if gap == "shift" else timedelta(0)))
    chosen = {"first": slice(0, 1), "second": slice(-1, None), "both": slice(None)}[fold]
    return sorted(moved.union(*(instants[chosen] for instants in read.values())))


def _shapes(change: Change) -> list[tuple[str, Matches]]:
    """Give six cron texts that have to do with a change, each with what it means."""
    instant, before, after = change
    # The first wall time that is missing or double.
    wall = (instant + min(before, after)).replace(tzinfo=None)
    hour, day, weekday = wall.hour, wall.day, (wall.weekday() + 1) % 7
    return [
        ("*/20 * * * *", lambda at: at.minute % 20 == 0),
        ("30 * * * *", lambda at: at.minute == 30),
        ("0 */2 * * *", lambda at: at.minute == 0 and at.hour % 2 == 0),
        (f"*/25 {hour} * * *", lambda at: at.minute % 25 == 0 and at.hour == hour),
        (f"15,45 {hour} {day} * *", lambda at: at.minute in (15, 45) and at.hour == hour and at.day == day),
        (f"10 {hour} * {wall.month} {weekday}",
         lambda at: (at.minute, at.hour, at.month, (at.weekday() + 1) % 7) == (10, hour, wall.month, weekday)),
    ]  # fmt: skip


def test_the_zones_are_all_there() -> None:
    names = [name for group in _groups().values() for name in group]
    assert len(names) > 150
    assert {"Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "Europe/Dublin"} <= {*names}
    assert len(_groups()) < len(names), "zones whose clocks agree are walked once"


@pytest.mark.parametrize("share", range(SHARES))
def test_each_clock_change_under_each_policy_is_what_a_walk_over_the_minutes_finds(share: int) -> None:
    for changes, names in _share(share):
        zone = find_zone(names[0])
        for change in changes:
            minutes = _walk(zone, change[0])
            for (text, matches), (gap, fold) in product(_shapes(change), POLICIES):
                found = list(Cron(text, names[0], gap, fold).instants(minutes[0].instant - MINUTE, minutes[-1].instant))
                expected = _expected(minutes, matches, gap, fold)
                assert found == expected, f"{text} {names[0]} {change[0]} {gap} {fold}"
                assert all(earlier < later for earlier, later in pairwise(found))


def test_zones_that_agree_in_their_changes_agree_in_their_instants() -> None:
    for changes, names in _groups().items():
        instant = changes[-1][0]
        (text, _), *_ = _shapes(changes[-1])
        schedules = [Cron(text, name, "shift", "both") for name in names]
        assert len({tuple(one.instants(instant - AROUND, instant + AROUND)) for one in schedules}) == 1, names


def test_preview_and_planner_hold_the_same_instants() -> None:
    for (changes, names), (gap, fold) in product(_groups().items(), POLICIES):
        instant = changes[0][0]
        schedule = Cron("*/20 * * * *", names[0], gap, fold)
        planned = list(Timing("walk", schedule).occasions(instant - AROUND, instant + AROUND))
        rows = preview(Timing("walk", schedule), instant - AROUND, instant + AROUND, 1000)
        assert [row.scheduled_at for row in rows if row.due_at] == [
            f"{one.scheduled_at:%Y-%m-%dT%H:%M:%SZ}" for one in planned
        ]
