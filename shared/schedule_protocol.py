"""What every kind of schedule can do: planner, preview and comparison of definitions know no more than this."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from shared.declaration import Fault

if TYPE_CHECKING:
    from shared.schedule import Cron


class Named(NamedTuple):
    """An instant that a schedule names, aware and in UTC; `left_out` says what its calendar has against it, or ''."""

    instant: datetime
    left_out: str = ""


@dataclass(frozen=True, slots=True)
class Doubt:
    """What is valid but likely to surprise: why, and what to write instead."""

    why: str
    instead: str

    def __str__(self) -> str:
        """Give both as one line."""
        return f"{self.why}: {self.instead}"


class Schedule(Protocol):
    """When a job is due: a function from two instants to the instants between them, the same on every machine.

    Instants are aware, in UTC, on whole seconds, increasing and distinct, and windows join without a seam. Each method
    raises ValueError for an instant without a zone.
    """

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the declaration; a faulty schedule must not be asked for instants."""

    @property
    def zone(self) -> str:
        """The zone by whose clocks it is written and shown."""

    @property
    def clocks(self) -> "Cron | None":
        """The wall times that the clocks of a zone move about, or None where clocks change nothing."""

    @property
    def description(self) -> str:
        """What it is, in a few words for a person."""

    def named(self, after: datetime, until: datetime) -> Iterator[Named]:
        """Give every instant after `after`, up to and including `until`, also those that a calendar leaves out."""

    def instants(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give the due instants after `after`, up to and including `until`: those that nothing leaves out."""

    def next_after(self, after: datetime) -> datetime | None:
        """Give the first due instant after `after`, or None when the schedule has ended by then."""

    def previous_before(self, before: datetime) -> datetime | None:
        """Give the last due instant before `before`, or None if there is none."""

    def local(self, instant: datetime) -> datetime:
        """Give an instant as the zone's clocks show it, for display."""

    def warnings(self) -> list[Doubt]:
        """Say what is valid but likely to surprise."""

    def definition(self) -> dict[str, Any]:
        """Give the canonical form, for JSON: two schedules that mean the same give the same."""
