"""Charts of any number of runs and of any values: what is drawn lies in the chart, and says what `stats` says."""

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from shared.growth import lag_of, told_duration, told_lag
from shared.interval import forecast
from shared.job import Cron
from shared.runs import Run, durations, lags
from shared.schedule_protocol import Schedule
from trigger.console.chart import SHAPES, Change, Chart, Drawing, markers
from trigger.console.chart_runs import charts_of
from trigger.console.chart_scales import CountAxis, SecondsAxis, TimeAxis
from trigger.stats import Change as Changed
from trigger.stats import Stats, Tally

NIGHT = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), 3600.0
NIGHTLY = Cron("0 2 * * *")
TEN_MINUTES = timedelta(minutes=10)


def run(scheduled_at: datetime, seconds: float | None, lag: float = 0.5, state: str = "succeeded") -> Run:
    return Run(scheduled_at, state, "trigger-1", 10, lag, seconds)


def nights(*seconds: float | None, lag: float = 0.5) -> list[Run]:
    """Give a run a night, the last of them at NIGHT; None is one that failed."""
    first = NIGHT - (len(seconds) - 1) * DAY
    states = ["failed" if one is None else "succeeded" for one in seconds]
    return [
        run(first + place * DAY, one, lag, state)
        for place, (one, state) in enumerate(zip(seconds, states, strict=True))
    ]


def stats_of(
    runs: Sequence[Run],
    changes: Sequence[Changed] = (),
    tallies: dict[datetime, Tally] | None = None,
    schedule: Schedule = NIGHTLY,
) -> Stats:
    """Judge runs as `stats` does, an hour after the last of them."""
    now = (runs[-1].scheduled_at if runs else NIGHT) + timedelta(hours=1)
    usual = {one.scheduled_at: Tally(3, 1) for one in runs}
    found = forecast(durations(runs), schedule, now, all_of_it=True)
    lag = lag_of(lags(runs), TEN_MINUTES, all_of_it=True)
    return Stats("nightly", schedule, "", runs, usual if tallies is None else tallies, changes, found, lag)


def drawings(charts: Sequence[Chart]) -> list[Drawing]:
    return [drawing for chart in charts for drawing in chart.drawings]


def assert_inside(drawing: Drawing) -> None:
    """See that everything lies within the plot, and that ticks stand apart."""
    room = drawing.room
    places = [tuple(map(float, place.split(","))) for line in drawing.lines for place in line.places.split()]
    for x, y in [*places, *((sign.x, sign.y) for sign in drawing.signs)]:
        assert room.left <= x <= drawing.right
        assert room.top <= y <= drawing.bottom
    for marker in drawing.markers:
        assert all(room.left - 1 <= x <= drawing.right + 1 for x in marker.lines)
    assert 2 <= len(drawing.values) <= room.values
    assert 1 <= len(drawing.times) <= room.ticks
    heights = sorted(tick.at for tick in drawing.values)
    assert all(later - earlier >= 14 for earlier, later in pairwise(heights))
    across = [tick.at for tick in drawing.times]
    assert all(later - earlier >= 34 for earlier, later in pairwise(across))
    assert len({tick.label for tick in drawing.values}) == len(drawing.values)


def test_without_runs_there_is_no_chart() -> None:
    assert charts_of(stats_of([])) == []


@pytest.mark.parametrize(
    "runs",
    [
        nights(60.0),
        nights(None),
        nights(60.0, 61.0),
        nights(None, None),
        nights(None, 60.0),
        nights(0.0, 0.0, 0.0),
        nights(*[42.0] * 60),
        nights(*[HOUR * (12 + 0.2 * night) for night in range(60)]),
        nights(*[30.0 + night for night in range(30)], 10 * 365 * 24 * HOUR),
        nights(0.0, 0.001, 1e9),
        nights(*[1.3**night for night in range(80)]),
        nights(*[None if night % 3 else 60.0 for night in range(60)]),
        [run(NIGHT - timedelta(days=40_000), 60.0), run(NIGHT, 61.0)],
        [run(NIGHT - timedelta(seconds=place), 1.0) for place in range(1000, 0, -1)],
        [run(NIGHT - place * DAY, 1.0, lag=3.0 * (60 - place)) for place in range(60, 0, -1)],
        [run(NIGHT - place * DAY, 1.0, lag=20.0 * (60 - place)) for place in range(60, 0, -1)],
        [run(NIGHT, None, state="running")],
        [run(datetime(9898, 1, 1, tzinfo=UTC) + place * DAY, 60.0) for place in range(20)],
    ],
)
def test_whatever_the_runs_took_all_lies_inside_and_is_told(runs: list[Run]) -> None:
    stats = stats_of(runs)
    charts = charts_of(stats)
    assert [chart.name for chart in charts] == ["duration", "lag", "attempts"]
    for drawing in drawings(charts):
        assert_inside(drawing)
    for chart in charts:
        assert [drawing.shape for drawing in chart.drawings] == list(SHAPES)
        assert len(chart.rows) == len(runs)
        assert len(chart.drawings[0].signs) == len(chart.drawings[1].signs) >= len(runs)
    assert charts[0].told.lower() == f"{told_duration(stats.duration)}.".lower()
    assert charts[1].told.lower() == f"{told_lag(stats.lag)}.".lower()


def test_random_runs_lie_inside() -> None:
    draw = random.Random(7)  # noqa: S311 - these numbers guard nothing
    for _ in range(100):
        at, runs = NIGHT, []
        for _ in range(draw.randint(1, 80)):
            at += timedelta(seconds=round(10 ** draw.uniform(0, 7)))
            took = None if draw.random() < 0.2 else 10 ** draw.uniform(-4, draw.uniform(0, 9))
            runs.append(run(at, took, lag=10 ** draw.uniform(-4, 6), state="failed" if took is None else "succeeded"))
        changes = [
            Changed(at - timedelta(hours=hour), "x", "1", None, None) for hour in range(draw.randint(0, 30), 0, -1)
        ]
        for drawing in drawings(charts_of(stats_of(runs, changes))):
            assert_inside(drawing)


def test_all_three_stand_on_one_axis_of_time() -> None:
    changes = [Changed(NIGHT - 5 * DAY, "tax-service", "9.1", "ann", "new rates")]
    charts = charts_of(stats_of(nights(*[12 * HOUR + 760 * night for night in range(50)]), changes))
    for place in range(2):
        assert len({tuple(chart.drawings[place].times) for chart in charts}) == 1
        assert len({tuple(chart.drawings[place].markers) for chart in charts}) == 1
    marker = charts[0].drawings[0].markers[0]
    fifth = next(one for one in charts[0].drawings[0].signs if one.told.startswith("2026-08-20T02:00Z"))
    assert (marker.label, marker.x) == ("1", fifth.x), "it stands where the run of that night does"
    assert "tax-service 9.1" in marker.told


def test_growth_goes_on_to_where_it_meets_the_next_instant() -> None:
    """12 hours and 760 seconds more each night are 24 hours eight nights after the fiftieth."""
    stats = stats_of(nights(*[12 * HOUR + 760 * night for night in range(50)]))
    chart = charts_of(stats)[0]
    assert "meets the next one on 2 September 2026" in chart.told
    wide = chart.drawings[0]
    lines = {line.kind: line.places.split() for line in wide.lines}
    assert set(lines) == {"limit", "trend", "forecast"}
    diamond = wide.signs[-1]
    assert diamond.kind == "diamond"
    assert diamond.told.startswith("2026-09-02T02:00Z")
    limit_height = float(lines["limit"][0].split(",")[1])
    assert diamond.y == limit_height
    crossing = next(x for x, y in (map(float, one.split(",")) for one in lines["forecast"]) if y <= limit_height)
    assert crossing == pytest.approx(diamond.x, abs=15), "the dashed line crosses there"
    assert lines["trend"][-1] == lines["forecast"][0], "the two are one line"
    assert [key.kind for key in chart.keys] == ["dot", "trend", "forecast", "limit", "diamond"]


def test_a_far_limit_does_not_flatten_the_runs_and_is_named() -> None:
    chart = charts_of(stats_of(nights(*[30.0 + night % 3 for night in range(20)])))[0]
    assert "The time to the next instant, 1d 0h, lies far above what is drawn." in chart.facts
    heights = {sign.y for sign in chart.drawings[0].signs}
    assert max(heights) - min(heights) > 5
    assert not chart.drawings[0].logarithmic
    assert [line for line in chart.drawings[0].lines if line.kind == "limit"] == []


def test_one_that_took_very_much_longer_leaves_the_others_visible() -> None:
    chart = charts_of(stats_of(nights(*[30.0 + night for night in range(20)], 90_000.0)))[0]
    assert chart.drawings[0].logarithmic
    assert "The scale is logarithmic" in chart.facts
    assert [tick.label for tick in chart.drawings[0].values][-1].endswith("d")


def test_what_did_not_go_through_has_a_sign_of_its_own_and_no_duration() -> None:
    runs = [*nights(60.0, None, 62.0), run(NIGHT + DAY, None, state="running")]
    chart = charts_of(stats_of(runs))[0]
    signs = chart.drawings[0].signs
    assert [sign.kind for sign in signs] == ["dot", "cross", "dot", "ring"]
    assert signs[1].y == chart.drawings[0].bottom, "at the edge, where no time is"
    assert signs[1].told == "2026-08-24T02:00Z failed: it did not go through"
    assert signs[3].told.endswith("running: it still runs")
    assert "; 2 did not go through, or not yet." in chart.facts
    assert [key.told for key in chart.keys][:3] == ["a run", "still runs", "did not go through"]
    assert chart.rows[1][3:] == ["-", None, None]


def test_the_table_holds_the_numbers_of_stats() -> None:
    stats = stats_of(nights(*[12 * HOUR + 760 * night for night in range(50)]))
    duration, lag, attempts = charts_of(stats)
    told = stats.as_json()["runs"]
    assert [row[4:] for row in duration.rows] == [[one["seconds"], one["fitted_seconds"]] for one in told]
    assert [row[3] for row in lag.rows] == [one["lag_seconds"] for one in told]
    assert [row[2:4] for row in attempts.rows] == [[one["attempts"], one["wins"]] for one in told]
    assert attempts.told == "150 attempts at 50 runs, 50 won."


def test_attempts_that_were_pruned_are_not_drawn_as_none() -> None:
    runs = nights(60.0, 61.0)
    chart = charts_of(stats_of(runs, tallies={runs[1].scheduled_at: Tally(3, 1)}))[2]
    assert [sign.kind for sign in chart.drawings[0].signs] == ["ring", "square"]
    assert chart.facts.startswith("Of 1 of the runs no attempt is recorded")


def test_changes_that_are_near_one_another_share_a_number() -> None:
    axis = TimeAxis(NIGHT, NIGHT + 100 * DAY, 0, 1000)
    changes = [Change(NIGHT + days * DAY, number, f"{number}") for number, days in enumerate((1, 2, 2.5, 50, 200), 1)]
    found = markers(changes, axis, near=26)
    assert [(marker.label, marker.x) for marker in found] == [("1-3", 10.0), ("4", 500.0)]
    assert found[0].lines == (10.0, 20.0, 25.0)
    assert markers([], axis, near=26) == []


def test_what_was_changed_long_after_the_last_run_does_not_push_the_runs_aside() -> None:
    changes = [Changed(NIGHT + days * DAY, "worker", f"{days}", None, None) for days in (1, 300)]
    wide = charts_of(stats_of(nights(*[60.0] * 20), changes))[0].drawings[0]
    assert [marker.label for marker in wide.markers] == ["1"]
    dots = [sign.x for sign in wide.signs]
    assert dots[-1] - dots[0] > 0.7 * (wide.right - wide.room.left)
    alone = charts_of(stats_of(nights(60.0), changes))[0].drawings[0]
    assert [marker.label for marker in alone.markers] == ["1", "2"], "after a single run there is room"


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([0.02, 0.05], ["0", "10 ms", "20 ms", "30 ms", "40 ms", "50 ms"]),
        ([0.3, 0.9], ["0", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]),
        ([61.0, 75.0], ["0", "15 s", "30 s", "45 s", "60 s", "75 s"]),
        ([HOUR / 2], ["0", "10 min", "20 min", "30 min"]),
        ([20 * HOUR], ["0", "6 h", "12 h", "18 h"]),
        ([80 * HOUR], ["0", "1 d", "2 d", "3 d"]),
        ([], ["0", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1 s"]),
        ([0.0], ["0", "0.2 s", "0.4 s", "0.6 s", "0.8 s", "1 s"]),
        ([1.0, 1.0, 90_000.0], ["1 s", "1 min", "1 h", "1 d"]),
    ],
)
def test_durations_have_ticks_that_a_person_reads(values: list[float], labels: list[str]) -> None:
    assert [tick.label for tick in SecondsAxis.of(values, 200, 20).ticks(6)] == labels


@pytest.mark.parametrize(
    ("span", "labels"),
    [
        (timedelta(minutes=3), ["02:00", "02:01", "02:02", "02:03"]),
        (timedelta(seconds=40), ["02:00:00", "02:00:15", "02:00:30"]),
        (timedelta(hours=30), ["06:00", "12:00", "18:00", "26 Aug", "06:00"]),
        (timedelta(days=4), ["26 Aug", "27 Aug", "28 Aug", "29 Aug"]),
        (timedelta(days=30), ["31 Aug", "7 Sep", "14 Sep", "21 Sep"]),
        (timedelta(days=150), ["Sep", "Oct", "Nov", "Dec", "2027"]),
        (timedelta(days=700), ["2027", "Jul", "2028", "Jul"]),
        (timedelta(days=4000), ["2028", "2030", "2032", "2034", "2036"]),
    ],
)
def test_times_have_ticks_on_the_hours_days_and_months_of_utc(span: timedelta, labels: list[str]) -> None:
    found = [tick.label for tick in TimeAxis(NIGHT, NIGHT + span, 0, 1000).ticks(6)]
    assert found == labels


@pytest.mark.parametrize(
    ("most", "labels"), [(0, ["0", "1"]), (3, ["0", "1", "2", "3"]), (40, ["0", "8", "16", "24", "32", "40"])]
)
def test_counts_have_whole_ticks(most: int, labels: list[str]) -> None:
    assert [tick.label for tick in CountAxis(most, 200, 20).ticks(6)] == labels
