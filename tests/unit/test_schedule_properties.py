"""What holds for every schedule near a clock change, found against placing each wall time around by itself."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from shared.schedule import Cron, Fold, Gap, place
from shared.zones import find_zone

SECOND = timedelta(seconds=1)
DAY = timedelta(days=1)
ZONES = st.sampled_from(
    [
        "UTC",
        "America/New_York",
        "Australia/Lord_Howe",
        "Pacific/Apia",
        "Europe/Dublin",
        "Africa/Casablanca",
        "America/Havana",
        "Asia/Kathmandu",
        "America/Sao_Paulo",
        "Africa/Cairo",
    ]
)
CHANGES = st.sampled_from(
    [
        "2011-12-30T10:00",
        "2018-11-04T03:00",
        "2019-10-05T15:30",
        "2023-04-27T22:00",
        "2025-02-23T02:00",
        "2025-03-09T07:00",
        "2025-11-02T06:00",
        "2026-03-29T01:00",
        "2026-04-04T15:00",
        "2026-07-01T00:00",
    ]
)
TEXTS = st.sampled_from(
    [
        "* * * * *",
        "*/20 * * * *",
        "30 * * * *",
        "*/20 2 * * *",
        "30 1 * * *",
        "0 0 * * *",
        "15 */6 * * *",
        "0,45 0-3 * * *",
        "30 23 * * *",
        "0 9 * * 5",
    ]
)
GAPS: st.SearchStrategy[Gap] = st.sampled_from(get_args(Gap))
FOLDS: st.SearchStrategy[Fold] = st.sampled_from(get_args(Fold))
SCHEDULES = st.builds(Cron, TEXTS, ZONES, GAPS, FOLDS)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


INSTANTS = st.builds(
    lambda change, minutes, seconds: utc(change) + timedelta(minutes=minutes, seconds=seconds),
    CHANGES,
    st.integers(-2_000, 2_000),
    st.integers(0, 59),
)


def _brute_force(schedule: Cron, after: datetime, until: datetime) -> list[datetime]:
    """Place every wall time within three days of the window, and sort."""
    zone = find_zone(schedule.zone)
    around = Cron(schedule.text).instants(after - 3 * DAY, until + 3 * DAY)
    placed = {
        instant
        for read in around
        for instant in place(read.replace(tzinfo=None), zone, schedule.gap or "skip", schedule.fold or "first")
    }
    return sorted(instant for instant in placed if after < instant <= until)


@settings(max_examples=150, deadline=None)
@given(SCHEDULES, INSTANTS, st.integers(0, 2_000))
def test_instants_increase_and_are_all_those_of_the_wall_times_around(
    schedule: Cron, after: datetime, length: int
) -> None:
    until = after + timedelta(minutes=length)
    instants = list(schedule.instants(after, until))
    assert all(earlier < later for earlier, later in pairwise(instants))
    assert instants == _brute_force(schedule, after, until)


@settings(max_examples=100, deadline=None)
@given(SCHEDULES, st.lists(INSTANTS, min_size=3, max_size=3))
def test_windows_join_without_a_seam(schedule: Cron, bounds: list[datetime]) -> None:
    first, middle, last = sorted(bounds)
    last = min(last, first + 4 * DAY)
    middle = min(middle, last)
    joined = [*schedule.instants(first, middle), *schedule.instants(middle, last)]
    assert list(schedule.instants(first, last)) == joined


@settings(max_examples=100, deadline=None)
@given(SCHEDULES, INSTANTS)
def test_next_and_previous_are_the_neighbours_in_a_window(schedule: Cron, instant: datetime) -> None:
    upcoming = schedule.next_after(instant)
    assert list(schedule.instants(instant, upcoming)) == [upcoming]
    earlier = schedule.previous_before(instant)
    assert earlier is not None
    assert list(schedule.instants(earlier - SECOND, instant - SECOND)) == [earlier]


@settings(max_examples=100, deadline=None)
@given(CHANGES, st.integers(-1_500, 1_500), ZONES, GAPS, FOLDS)
def test_a_wall_time_has_as_many_instants_as_its_policy_says(
    change: str, minutes: int, zone: str, gap: Gap, fold: Fold
) -> None:
    naive = datetime.fromisoformat(change) + timedelta(minutes=minutes)
    rules = find_zone(zone)
    placed = place(naive, rules, gap, fold)
    times_read = {
        known for known in _every_second_reading(naive) if known.astimezone(rules).replace(tzinfo=None) == naive
    }
    if not times_read:
        assert len(placed) == (0 if gap == "skip" else 1)
    else:
        assert set(placed) == (
            times_read if fold == "both" else {max(times_read) if fold == "second" else min(times_read)}
        )


def _every_second_reading(naive: datetime) -> list[datetime]:
    """Give every instant that could read `naive` in a zone whose offset is a multiple of a quarter of an hour."""
    return [naive.replace(tzinfo=UTC) + timedelta(minutes=15 * quarter) for quarter in range(-60, 61)]
