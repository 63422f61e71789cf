"""Growth is seen where there is growth, and dated within two nights, whatever a night did; all else is silence."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.forecast import LEAST_RUNS, Point, growing, sureness
from shared.interval import Forecast, forecast
from shared.job import Cron, Instants, hours, minutes

Nights = Callable[[int], float]
FIRST = datetime(2026, 1, 5, 2, tzinfo=UTC)
DAY = timedelta(days=1)
HOUR = 3600.0
NIGHTLY = Cron("0 2 * * *")
SEEDS = range(8)


def nights(seconds: Nights, count: int = 50, *, noise: float = 0.0, seed: int = 0, outliers: int = 0) -> list[Point]:
    """Measure nights in a row: `noise` is a share of each, and an outlier took a tenth or thrice as long."""
    chance = Random(seed)  # noqa: S311 - the same nights for the same seed
    points = [Point(FIRST + night * DAY, seconds(night) * (1 + chance.gauss(0, noise))) for night in range(count)]
    for night in chance.sample(range(count), outliers):
        points[night] = Point(points[night].at, points[night].seconds * chance.choice((0.1, 3.0)))
    return points


def meeting(points: list[Point]) -> Forecast:
    """Forecast in the hour after the last night."""
    return forecast(points, NIGHTLY, points[-1].at + hours(1))


GROWTHS: dict[str, Nights] = {
    "by the same amount": lambda night: 12 * HOUR + 760 * night,
    "by a factor": lambda night: 9.25 * HOUR * 1.017**night,
    "by more each night": lambda night: 12 * HOUR + 240 * night + 9 * night**2,
    "from little": lambda night: 0.2 * HOUR + 1480 * night,
}


@pytest.mark.parametrize("growth", GROWTHS)
@pytest.mark.parametrize(("noise", "outliers"), [(0.0, 0), (0.005, 0), (0.005, 3), (0.01, 0)])
def test_fifty_nights_of_growth_name_the_night_of_the_first_overlap_to_within_two(
    growth: str, noise: float, outliers: int
) -> None:
    seconds = GROWTHS[growth]
    overlap = next(night for night in range(500) if seconds(night) >= 24 * HOUR)
    assert 52 <= overlap <= 60, "what is to be found lies ahead of the last night"
    off = []
    for seed in SEEDS:
        found = meeting(nights(seconds, noise=noise, seed=seed, outliers=outliers))
        assert found.soon
        assert found.meets is not None
        off.append(abs((found.meets - FIRST) / DAY - overlap))
    assert max(off) <= 2, off


@pytest.mark.parametrize("growth", GROWTHS)
def test_it_is_told_nights_before_the_first_overlap_and_on_every_night_from_then(growth: str) -> None:
    seconds = GROWTHS[growth]
    overlap = next(night for night in range(500) if seconds(night) >= 24 * HOUR)
    told = [meeting(nights(seconds, count, noise=0.005)).soon for count in range(LEAST_RUNS, overlap + 1)]
    first = told.index(True) + LEAST_RUNS
    assert first <= overlap - 7
    assert all(told[first - LEAST_RUNS :]), "once it is told it stays so until it happens"


def ramp_then_level(night: int) -> float:
    return 10 * HOUR + 900 * min(night, 20)


SILENT: dict[str, tuple[Nights, float]] = {
    "level": (lambda _: 20 * HOUR, 0.05),
    "level to the second": (lambda _: 20 * HOUR, 0.0),
    "falling": (lambda night: 23 * HOUR - 300 * night, 0.02),
    "one step": (lambda night: (10 if night < 25 else 20) * HOUR, 0.02),
    "a step lately": (lambda night: (10 if night < 41 else 20) * HOUR, 0.02),
    "mondays": (lambda night: (20 if night % 7 == 0 else 12) * HOUR, 0.02),
    "growth that has ended": (ramp_then_level, 0.01),
    "growth within the noise": (lambda night: 20 * HOUR + 20 * night, 0.1),
}


@pytest.mark.parametrize("case", SILENT)
def test_what_does_not_grow_is_no_trend(case: str) -> None:
    seconds, noise = SILENT[case]
    found = [growing(nights(seconds, noise=noise, seed=seed)) for seed in SEEDS]
    # Chance may look like growth once in a thousand times.
    assert sum(trend is not None for trend in found) <= 1


def test_too_few_runs_say_nothing() -> None:
    points = nights(lambda night: 20 * HOUR + 600 * night, LEAST_RUNS)
    assert growing(points[1:]) is None
    assert growing(points) is not None
    assert growing([]) is None


def test_growth_that_began_lately_is_dated_by_the_nights_since() -> None:
    points = nights(lambda night: 10 * HOUR + 1800 * max(0, night - 28), 50)
    found = meeting(points)
    assert found.meets is not None
    assert abs((found.meets - FIRST) / DAY - 56) <= 2


def test_growth_of_the_last_fifteen_nights_is_dated_in_time_whatever_the_months_before_were() -> None:
    points = nights(lambda night: 10 * HOUR + 2400 * max(0, night - 44), 60)
    found = meeting(points)
    assert found.meets is not None
    assert FIRST + 60 * DAY < found.meets <= FIRST + 65 * DAY


def test_growth_that_slows_down_is_told_too_early_rather_than_not_at_all() -> None:
    points = nights(lambda night: HOUR * (6 + 2.4 * night**0.5), 50)
    found = meeting(points)
    assert found.meets is not None
    assert FIRST + 50 * DAY <= found.meets <= FIRST + 57 * DAY


def test_what_is_far_from_its_interval_is_not_fitted_unless_asked() -> None:
    points = nights(lambda night: 60 + 100 * night)
    found = meeting(points)
    assert (found.trend, found.meets, found.soon, found.usual) == (None, None, False, 4760)
    whole = forecast(points, NIGHTLY, points[-1].at, all_of_it=True)
    assert whole.trend is not None
    assert whole.trend.per_day == pytest.approx(100)
    assert whole.meets is not None
    assert not whole.soon


def test_runs_that_take_as_long_as_the_interval_overlap_with_or_without_growth() -> None:
    assert meeting(nights(lambda _: 25 * HOUR, 5)).overlaps
    assert not meeting(nights(lambda _: 25 * HOUR, 4)).overlaps, "four runs are few"
    assert not meeting(nights(lambda night: (40 if night == 49 else 20) * HOUR)).overlaps, "one long night is none"
    grown = meeting(nights(lambda night: 20 * HOUR + 600 * night))
    assert grown.overlaps
    assert grown.meets == FIRST + 50 * DAY, "the next run meets the one after it"


def test_the_shortest_of_the_intervals_to_come_counts() -> None:
    weekdays = Cron("0 2 * * MON-FRI")
    instants = list(weekdays.instants(FIRST - minutes(1), FIRST + 80 * DAY))[:50]
    points = [Point(instant, 12 * HOUR + 10 * (instant - FIRST).total_seconds() / 86_400 * 60) for instant in instants]
    found = forecast(points, weekdays, points[-1].at)
    assert found.interval == hours(24), "not the 72 hours of a weekend"
    assert found.meets == FIRST + 72 * DAY == datetime(2026, 3, 18, 2, tzinfo=UTC)


def test_the_night_that_clocks_shorten_counts() -> None:
    berlin = Cron("0 1 * * *", zone="Europe/Berlin", gap="shift", fold="first")
    found = forecast([Point(FIRST, HOUR)], berlin, datetime(2026, 3, 27, tzinfo=UTC))
    assert found.interval == hours(23)


def test_a_schedule_that_has_ended_leaves_nothing_to_meet() -> None:
    points = nights(GROWTHS["by a factor"])
    found = forecast(points, Instants([points[-1].at]), points[-1].at, all_of_it=True)
    assert (found.interval, found.meets, found.overlaps) == (None, None, False)
    assert found.trend is not None


def test_the_sureness_is_that_of_the_textbook() -> None:
    # 5 of 5 in order: S = 10, variance 5 * 4 * 15 / 18, and 1 for continuity.
    assert sureness([1, 2, 3, 4, 5]) == pytest.approx(9 / (300 / 18) ** 0.5)
    assert sureness([5, 4, 3, 2, 1]) == pytest.approx(-9 / (300 / 18) ** 0.5)
    assert sureness([7.0] * 20) == 0
    # S = 5, and two values of four are equal.
    assert sureness([1, 1, 2, 3]) == pytest.approx(4 / ((4 * 3 * 13 - 2 * 1 * 9) / 18) ** 0.5)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.floats(0, 1e6), min_size=0, max_size=40))
def test_any_measurements_give_a_growth_that_grows_or_none(values: list[float]) -> None:
    trend = growing([Point(FIRST + night * DAY, value) for night, value in enumerate(values)])
    if trend is not None:
        assert trend.at(trend.until) > trend.at(trend.until - (trend.until - trend.since) / 2)
        reached = trend.meets(2 * trend.at(trend.until) + 1)
        assert reached is None or reached > trend.until


@settings(deadline=None, max_examples=40)
@given(st.floats(1, 1e4), st.floats(1, 1e3), st.integers(LEAST_RUNS, 60), st.integers(1, 30))
def test_a_straight_line_is_found_exactly(base: float, slope: float, count: int, ahead: int) -> None:
    points = nights(lambda night: base + slope * night, count)
    trend = growing(points)
    assert trend is not None
    reached = trend.meets(base + slope * (count + ahead))
    assert reached is not None
    assert abs(reached - (FIRST + (count + ahead) * DAY)) < minutes(10)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000))
def test_an_outlier_moves_the_date_by_less_than_two_nights(seed: int) -> None:
    grown = nights(GROWTHS["by the same amount"], noise=0.003, seed=seed)
    moved = nights(GROWTHS["by the same amount"], noise=0.003, seed=seed, outliers=1)
    dates = [found.meets for found in (meeting(grown), meeting(moved)) if found.meets]
    assert all(abs(later - earlier) <= 2 * DAY for earlier, later in pairwise(dates))
    assert len(dates) == 2
