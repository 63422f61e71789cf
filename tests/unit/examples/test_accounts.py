"""What the data maker chooses before it writes anything."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from examples.billing.accounts import ZONES, Choice, closing_days

NIGHT = datetime(2026, 8, 25, 2, tzinfo=UTC)


@pytest.mark.parametrize(
    ("numbers", "problem"),
    [
        ({"count": -1, "failing": 0, "flaky": 0, "slow": 0, "hostile": False}, "negative"),
        ({"count": 10, "failing": -1}, "negative"),
        ({"count": 7}, "8 odd accounts are more than 7"),
    ],
)
def test_impossible_numbers_are_refused(numbers: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        Choice(seed=1, until=NIGHT, **numbers)


def test_an_instant_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        Choice(count=10, seed=1, until=NIGHT.replace(tzinfo=None))


@pytest.mark.parametrize("hour", range(24))
def test_every_zone_has_one_midnight_in_an_ordinary_day(hour: int) -> None:
    until = NIGHT.replace(hour=hour)
    closing = closing_days(until)
    assert set(closing) == set(ZONES)
    assert all(until - timedelta(days=1) < midnight <= until for midnight in closing.values())


def test_a_zone_without_a_midnight_in_the_window_is_left_out() -> None:
    before_midnight_of_the_long_day = datetime(2026, 11, 2, 4, 30, tzinfo=UTC)
    assert set(ZONES) - set(closing_days(before_midnight_of_the_long_day)) == {"America/New_York"}


def test_midnights_follow_each_other_through_a_year() -> None:
    nights = [datetime(2026, 1, 1, 2, tzinfo=UTC) + timedelta(days=day) for day in range(366)]
    berlin = [closing_days(night)["Europe/Berlin"].date() for night in nights]
    assert all(after - before == timedelta(days=1) for before, after in pairwise(berlin))
