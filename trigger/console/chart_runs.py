"""The three charts of a job's runs: what each took, how late it began, and who attempted it. Pure.

They stand on one axis of time, so that what was changed lies at the same place of each. All numbers are those of
`stats`.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from schemas.occurrence import format_instant
from shared.durations import show_seconds
from shared.growth import told_duration, told_lag
from shared.runs import Run
from trigger.console.chart import (
    ROOMS,
    SHAPES,
    Change,
    Chart,
    Drawing,
    Key,
    Line,
    Shape,
    Sign,
    count_axis,
    line,
    markers,
    time_axis,
)
from trigger.console.chart_lines import Beside
from trigger.console.chart_scales import SecondsAxis, TimeAxis, padded
from trigger.stats import Stats

# So far beyond the last run, as a share of what is shown, goes a line that meets nothing, and what was changed since.
_BEYOND: Final = 1 / 4
_LONGEST_TOLD: Final = 120
_UNRECORDED: Final = "attempts are pruned with the ledger, and what runs elsewhere has none"
_ACTIVE: Final = frozenset({"claimed", "running"})

_Axes = Mapping[Shape, TimeAxis]


def charts_of(stats: Stats) -> list[Chart]:
    """Give the charts of a job's runs; none where there is no run."""
    if not stats.runs:
        return []
    since, until = padded(stats.runs[0].scheduled_at, _until(stats))
    axes = {shape: time_axis(shape, since, until) for shape in SHAPES}
    return [_durations(stats, axes), _lags(stats, axes), _attempts(stats, axes)]


def changes_of(stats: Stats) -> list[Change]:
    """Number what was changed, the oldest first, from 1."""
    return [
        Change(one.at, number, f"{_at(one.at)} {one.system} {one.version}"[:_LONGEST_TOLD])
        for number, one in enumerate(stats.changes, 1)
    ]


def _until(stats: Stats) -> datetime:
    """Give where the axis of time ends: behind the last run is room for a forecast, and for what was changed since."""
    first, last = stats.runs[0].scheduled_at, stats.runs[-1].scheduled_at
    span = last - first
    # What was changed after a single run is drawn wherever it was: there is no span yet that it could be far from.
    ends = [last, *(min(one.at, last + _BEYOND * span) if span else one.at for one in stats.changes[-1:])]
    meets = stats.duration.meets
    if meets is not None and meets <= last + span:
        ends.append(meets + span / 20)
    elif stats.duration.trend is not None:
        ends.append(last + _BEYOND * span)
    return max(ends)


def _durations(stats: Stats, axes: _Axes) -> Chart:
    found = stats.duration
    took = [run.seconds for run in stats.runs if run.seconds is not None]
    beside = Beside.of(took, found.interval, "time to the next instant", found.trend)
    drawings = []
    for shape, times in axes.items():
        values = beside.axis(shape, took, times)
        signs = [_run(run, times, values) for run in stats.runs]
        if found.meets is not None and times.holds(found.meets) and beside.is_drawn and beside.limit is not None:
            told = f"{_at(found.meets)}: at this growth the run meets the next one"
            signs.append(Sign(times.place(found.meets), values.place(beside.limit), "diamond", told))
        drawings.append(_drawing(stats, shape, times, values, [*beside.lines(times, values)], signs))
    meeting = [Key("diamond", "meets the next one")] if drawings[0].signs[-1].kind == "diamond" else []
    return Chart(
        "duration",
        "How long each run took",
        _sentence(told_duration(found)),
        _facts(stats.runs, took, "took") + beside.told() + _scale_told(drawings[0].logarithmic),
        [*_run_keys(stats.runs), *beside.keys(), *meeting],
        drawings,
        *_table(stats, "scheduled_at", "state", "accounts", "took", "seconds", "fitted_seconds"),
    )


def _lags(stats: Stats, axes: _Axes) -> Chart:
    late = [run.lag_seconds for run in stats.runs]
    beside = Beside.of(late, stats.lag.start_within, "bound start_within", stats.lag.trend if stats.lag.grows else None)
    drawings = []
    for shape, times in axes.items():
        values = beside.axis(shape, late, times)
        signs = []
        for run in stats.runs:
            told = f"{_at(run.scheduled_at)} {run.state}: began {show_seconds(run.lag_seconds)} late"
            signs.append(Sign(times.place(run.scheduled_at), values.place(run.lag_seconds), "dot", told))
        drawings.append(_drawing(stats, shape, times, values, [*beside.lines(times, values)], signs))
    return Chart(
        "lag",
        "How late each run began",
        _sentence(told_lag(stats.lag)),
        _facts(stats.runs, late, "began after") + beside.told() + _scale_told(drawings[0].logarithmic),
        [Key("dot", "a run"), *beside.keys()],
        drawings,
        *_table(stats, "scheduled_at", "state", "began_after", "lag_seconds"),
    )


def _attempts(stats: Stats, axes: _Axes) -> Chart:
    kept = [(run, tally) for run in stats.runs if (tally := stats.tally(run)).attempts]
    drawings = []
    for shape, times in axes.items():
        counts = count_axis(shape, max([tally.attempts for _, tally in kept], default=1))
        signs: list[Sign] = []
        lines: list[Line] = []
        for run, tally in kept:
            x, told = (
                times.place(run.scheduled_at),
                f"{_at(run.scheduled_at)}: {tally.attempts} attempts, {tally.wins} won",
            )
            lines += line("stem", [(x, counts.place(tally.wins)), (x, counts.place(tally.attempts))])
            signs.append(Sign(x, counts.place(tally.attempts), "ring", told))
            signs.append(Sign(x, counts.place(tally.wins), "square", told))
        drawings.append(_drawing(stats, shape, times, counts, lines, signs))
    gone = len(stats.runs) - len(kept)
    return Chart(
        "attempts",
        "Who attempted it, and who won",
        f"{stats.attempts} attempts at {_count(stats.runs)}, {stats.wins} won.",
        f"Of {gone} of the runs no attempt is recorded: {_UNRECORDED}." if gone else "",
        [Key("ring", "attempts"), Key("square", "wins")],
        drawings,
        *_table(stats, "scheduled_at", "state", "attempts", "wins", "claimed_by"),
    )


def _drawing(
    stats: Stats, shape: Shape, times: TimeAxis, values: Any, lines: Sequence[Line], signs: Sequence[Sign]
) -> Drawing:
    room = ROOMS[shape]
    changed = markers(changes_of(stats), times, room.near)
    logarithmic = isinstance(values, SecondsAxis) and values.logarithmic
    time_ticks, value_ticks = times.ticks(room.ticks), values.ticks(room.values)
    return Drawing(shape, room, time_ticks, value_ticks, lines, signs, changed, logarithmic)


def _table(stats: Stats, *names: str) -> tuple[list[str], list[list[Any]]]:
    """Give headings and rows: the values of `stats --json`, and durations in words beside their seconds."""
    rows = []
    for row in stats.as_json()["runs"]:
        words = {"took": show_seconds(row["seconds"]), "began_after": show_seconds(row["lag_seconds"])}
        rows.append([(row | words)[name] for name in names])
    return [name.replace("_", " ") for name in names], rows


def _run(run: Run, times: TimeAxis, values: SecondsAxis) -> Sign:
    x, named = times.place(run.scheduled_at), f"{_at(run.scheduled_at)} {run.state}"
    if run.seconds is not None:
        return Sign(x, values.place(run.seconds), "dot", f"{named}: took {show_seconds(run.seconds)}")
    if run.state in _ACTIVE:
        return Sign(x, values.low, "ring", f"{named}: it still runs")
    return Sign(x, values.low, "cross", f"{named}: it did not go through")


def _run_keys(runs: Sequence[Run]) -> Iterator[Key]:
    yield Key("dot", "a run")
    if any(run.seconds is None and run.state in _ACTIVE for run in runs):
        yield Key("ring", "still runs")
    if any(run.seconds is None and run.state not in _ACTIVE for run in runs):
        yield Key("cross", "did not go through")


def _facts(runs: Sequence[Run], values: Sequence[float], verb: str) -> str:
    """Say in a sentence what was measured, from when to when."""
    span = f"{_count(runs)} from {_at(runs[0].scheduled_at)} to {_at(runs[-1].scheduled_at)}"
    without = len(runs) - len(values)
    left = f"; {without} did not go through, or not yet" if without else ""
    if not values:
        return f"{span}{left}."
    if min(values) == max(values):
        return f"{span}: {'it' if len(values) == 1 else 'each'} {verb} {show_seconds(values[0])}{left}."
    least, most, last = (show_seconds(value) for value in (min(values), max(values), values[-1]))
    return f"{span}: {verb} {least} to {most}, the last {last}{left}."


def _sentence(told: str) -> str:
    return f"{told[0].upper()}{told[1:]}."


def _scale_told(logarithmic: bool) -> str:  # noqa: FBT001 - it is what there is to tell
    return " The scale is logarithmic: each line is several times the one below." if logarithmic else ""


def _count(runs: Sequence[Run]) -> str:
    return "1 run" if len(runs) == 1 else f"{len(runs)} runs"


def _at(instant: datetime) -> str:
    return format_instant(instant.replace(microsecond=0))
