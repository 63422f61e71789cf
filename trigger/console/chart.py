"""A chart as what is drawn of it: axes, lines, signs, and where something was changed; in two shapes. Pure.

A page draws both shapes, and shows the narrow one where there is no room: its letters keep a size that can be read.
What is drawn is told by shapes and dashes too, never by a colour alone.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, NamedTuple

from trigger.console.chart_scales import CountAxis, SecondsAxis, Tick, TimeAxis

Shape = Literal["wide", "narrow"]
Kind = Literal["dot", "cross", "ring", "square", "diamond"]
SHAPES: Final[tuple[Shape, ...]] = ("wide", "narrow")


class Room(NamedTuple):
    """The size of a chart and of what lies around its plot, in its own units, and how many ticks find room."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    ticks: int
    values: int
    # Markers that are nearer to one another share a number.
    near: int


ROOMS: Final[dict[Shape, Room]] = {
    "wide": Room(width=800, height=230, left=62, right=18, top=26, bottom=24, ticks=10, values=6, near=26),
    "narrow": Room(width=360, height=210, left=54, right=12, top=26, bottom=24, ticks=5, values=5, near=30),
}


class Sign(NamedTuple):
    """What stands for one run; `told` says what it is."""

    x: float
    y: float
    kind: Kind
    told: str


class Line(NamedTuple):
    """A line through places, written as SVG has them; `kind` says what it stands for: trend, forecast, limit, stem."""

    kind: str
    places: str


class Marker(NamedTuple):
    """Something was changed: where, its numbers in the list, what a pointer is told; `lines` are where each was."""

    x: float
    label: str
    told: str
    lines: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Drawing:
    """One shape of a chart, in its own units; all places are inside of `room`."""

    shape: Shape
    room: Room
    times: Sequence[Tick]
    values: Sequence[Tick]
    lines: Sequence[Line]
    signs: Sequence[Sign]
    markers: Sequence[Marker]
    logarithmic: bool = False

    @property
    def right(self) -> int:
        """The right edge of the plot."""
        return self.room.width - self.room.right

    @property
    def bottom(self) -> int:
        """The lower edge of the plot."""
        return self.room.height - self.room.bottom


class Key(NamedTuple):
    """One thing that a chart draws, for its legend: a sign's or a line's kind, and what it stands for."""

    kind: str
    told: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart, and the same in words and numbers; `headings` and `rows` are the table of what it shows."""

    name: str
    title: str
    told: str
    facts: str
    keys: Sequence[Key]
    drawings: Sequence[Drawing]
    headings: Sequence[str]
    rows: Sequence[Sequence[object]]


class Change(NamedTuple):
    """Something that was changed, by its number in the list beneath the charts."""

    at: datetime
    number: int
    told: str


def time_axis(shape: Shape, since: datetime, until: datetime) -> TimeAxis:
    """Make the axis of times of a shape."""
    room = ROOMS[shape]
    return TimeAxis(since, until, room.left, room.width - room.right)


def seconds_axis(shape: Shape, values: Sequence[float], also: Sequence[float]) -> SecondsAxis:
    """Make the axis of durations of a shape; `also` are those of what is drawn beside the runs."""
    room = ROOMS[shape]
    return SecondsAxis.of(values, room.height - room.bottom, room.top, also)


def count_axis(shape: Shape, most: int) -> CountAxis:
    """Make the axis of whole numbers of a shape."""
    room = ROOMS[shape]
    return CountAxis(most, room.height - room.bottom, room.top)


def line(kind: str, places: Sequence[tuple[float, float]]) -> Iterator[Line]:
    """Give a line through places; none through fewer than two."""
    if len(places) > 1:
        yield Line(kind, " ".join(f"{x:g},{y:g}" for x, y in places))


def markers(changes: Sequence[Change], axis: TimeAxis, near: int) -> list[Marker]:
    """Give a marker for the changes that the axis holds; those that are near one another share one."""
    groups: list[list[Change]] = []
    for change in changes:
        if not axis.holds(change.at):
            continue
        if groups and axis.place(change.at) - axis.place(groups[-1][0].at) < near:
            groups[-1].append(change)
        else:
            groups.append([change])
    return [_marker(group, axis) for group in groups]


def _marker(group: Sequence[Change], axis: TimeAxis) -> Marker:
    first, last = group[0], group[-1]
    label = f"{first.number}" if first is last else f"{first.number}-{last.number}"
    places = sorted({round(axis.place(change.at)) for change in group})
    told = "; ".join(change.told for change in group[:3]) + (f"; and {len(group) - 3} more" if len(group) > 3 else "")  # noqa: PLR2004 - a pointer's note is short
    return Marker(axis.place(first.at), label, told, tuple(float(place) for place in places))
