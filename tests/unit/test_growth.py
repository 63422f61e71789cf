"""The sentences about growth, the versions that are marked, and the lag that is worth telling."""

from datetime import UTC, datetime, timedelta

import pytest

from shared.deploys import deployed_version
from shared.durations import show_date, show_seconds
from shared.forecast import Point
from shared.growth import detail_of_lag, lag_of, told_duration, told_lag
from shared.interval import forecast
from shared.job import Cron, minutes

FIRST = datetime(2026, 1, 5, 2, tzinfo=UTC)
DAY = timedelta(days=1)
NIGHTLY = Cron("0 2 * * *")
A_DAY = "the 1d 0h to the next"
MEETS = "at this growth the run meets the next one"
NEVER = "at this growth it does not meet the next one in ten years"
LATER = "at this growth it is later than start_within, 10m 00s"


def measured(*seconds: float) -> list[Point]:
    return [Point(FIRST + night * DAY, one) for night, one in enumerate(seconds)]


@pytest.mark.parametrize(
    ("points", "told"),
    [
        (measured(), "no run has gone through yet"),
        (measured(60), "a run takes 1m 00s of the 1d 0h to the next, and shows no growth"),
        (measured(*[90_000] * 6), "a run takes 1d 1h of the 1d 0h to the next: it meets the next one already"),
        (
            measured(*(40_000 + 1000 * night for night in range(40))),
            f"a run takes 21h 23m of {A_DAY}, and 16m 40s more each day: {MEETS} on 21 February 2026",
        ),
        (
            measured(*(60 + night for night in range(40))),
            f"a run takes 1m 37s of {A_DAY}, and 1.0s more each day: {NEVER}",
        ),
    ],
)
def test_durations_are_told(points: list[Point], told: str) -> None:
    now = points[-1].at if points else FIRST
    assert told_duration(forecast(points, NIGHTLY, now, all_of_it=True)) == told


@pytest.mark.parametrize(
    ("seconds", "grows", "told"),
    [
        ((), False, "none has begun yet"),
        ((0.2,) * 30, False, "a run begins 0.2s after it is due, and that does not grow"),
        (
            tuple(0.001 * night for night in range(40)),
            False,
            "a run begins 0.0s after it is due, and that does not grow",
        ),
        (
            tuple(60 + 0.01 * night for night in range(40)),
            False,
            "a run begins 1m 00s after it is due, and that does not grow",
        ),
        (
            tuple(3 + 2 * night for night in range(40)),
            True,
            f"a run begins 1m 17s after it is due, and 2.0s later each day: {LATER}, on 30 October 2026",
        ),
        (
            tuple(3 + 20 * night for night in range(40)),
            True,
            "a run begins 12m 23s after it is due, and 20s later each day: later than start_within, 10m 00s",
        ),
    ],
)
def test_lag_is_told_and_milliseconds_are_not_worth_an_alert(
    seconds: tuple[float, ...],
    grows: bool,  # noqa: FBT001 - a case of the table
    told: str,
) -> None:
    lag = lag_of(measured(*seconds), minutes(10), all_of_it=True)
    assert lag.grows is grows
    assert told_lag(lag).startswith(told)
    assert lag_of(measured(*seconds), minutes(10)).grows is grows, "as the watch judges it"
    assert detail_of_lag(lag)["grows"] is grows


def test_the_version_of_a_deploy_is_the_standard_variable_s_or_ours() -> None:
    assert deployed_version({}, "0.1.0") == "0.1.0"
    given = {"OTEL_RESOURCE_ATTRIBUTES": "team=billing, service.version=2026.8.25%2Bb7 ,x"}
    assert deployed_version(given, "0.1.0") == "2026.8.25+b7"
    assert deployed_version({"OTEL_RESOURCE_ATTRIBUTES": "service.version="}, "0.1.0") == "0.1.0"


def test_durations_and_dates_are_written_for_people() -> None:
    written = [show_seconds(one) for one in (None, 0.04, 9.96, 42, 200, 3720, 180_000)]
    assert written == ["-", "0.0s", "10.0s", "42s", "3m 20s", "1h 02m", "2d 2h"]
    assert show_date(datetime(2026, 3, 14, 23, 30, tzinfo=UTC)) == "14 March 2026"
