"""A schedule of even steps: every so many seconds, minutes, hours or days, counted in UTC from an anchor. Pure.

Each instant is computed from the anchor, never from the run before, so a fleet that was down, or a run that took long,
moves nothing. Clocks that change do not either: a day is 24 hours.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from shared.bounds import EARLIEST, LATEST, bounded, check_keys, declared_instant, written
from shared.declaration import Fault, keep_faults
from shared.explained import explain_mistakes
from shared.job_faults import duration_text, number_faults
from shared.schedule_in_utc import InUtc

# A Monday at midnight, so that steps of hours fall on the hour, those of days on midnight, and weeks begin on Mondays.
DEFAULT_ANCHOR: Final = datetime(2024, 1, 1, tzinfo=UTC)
LONGEST: Final = timedelta(days=3660)
_SECOND = timedelta(seconds=1)
_KEYS = ("anchor", "kind", "seconds")


@explain_mistakes
@dataclass(frozen=True, slots=True, kw_only=True)
class Every(InUtc):
    """A schedule such as `Every(minutes=15)`: due at the anchor, and every so long before and after it.

    The durations add up, to whole seconds, at least one and at most ten years. `anchor` is a datetime with a zone, or
    text such as `2026-03-01T06:20Z`; by default it is midnight in UTC of a Monday, 2024-01-01.
    """

    days: int = 0
    hours: int = 0
    minutes: int = 0
    seconds: int = 0
    anchor: datetime | str = DEFAULT_ANCHOR
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)
    _anchor: datetime = field(default=DEFAULT_ANCHOR, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the numbers and read the anchor."""
        faults: list[Fault] = []
        for name in ("days", "hours", "minutes", "seconds"):
            faults += number_faults(name, getattr(self, name), 0, LONGEST.total_seconds(), whole=True)
        if not faults and not _SECOND <= self.step <= LONGEST:
            faults.append(Fault("schedule", "has steps of no length, or of more than ten years", "Every(minutes=15)"))
        try:
            anchor = declared_instant(self.anchor)
        except ValueError as error:
            faults.append(Fault("anchor", str(error), "an instant with its zone, as 2026-03-01T06:20Z"))
        else:
            first = DEFAULT_ANCHOR if faults else DEFAULT_ANCHOR + (anchor - DEFAULT_ANCHOR) % self.step
            object.__setattr__(self, "_anchor", first)
        keep_faults(self, tuple(faults))

    @property
    def step(self) -> timedelta:
        """The time from one instant to the next."""
        return timedelta(days=self.days, hours=self.hours, minutes=self.minutes, seconds=self.seconds)

    @property
    def description(self) -> str:
        """The step and the anchor."""
        return f"every {duration_text(self.step)} from {written(self._anchor)}"

    def instants(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give the due instants after `after`, up to and including `until`, both aware.

        Raises:
            ValueError: one of the two has no zone.
        """
        upcoming, last = self.next_after(after), bounded(until, "until")
        return self._up_to(upcoming, last)

    def _up_to(self, upcoming: datetime | None, last: datetime) -> Iterator[datetime]:
        while upcoming is not None and upcoming <= last:
            yield upcoming
            upcoming += self.step

    def next_after(self, after: datetime) -> datetime | None:
        """Give the first due instant after an aware `after`; None at the end of the calendar alone."""
        steps = (bounded(after, "after") - self._anchor) // self.step + 1
        found = self._anchor + steps * self.step
        return found if found <= LATEST else None

    def previous_before(self, before: datetime) -> datetime | None:
        """Give the last due instant before an aware `before`; None at the beginning of the calendar alone."""
        steps = -((self._anchor - bounded(before, "before")) // self.step) - 1
        found = self._anchor + steps * self.step
        return found if found >= EARLIEST else None

    def definition(self) -> dict[str, Any]:
        """Give the canonical form, for JSON: `kind`, `seconds`, and the first `anchor` from the default one on."""
        return {"kind": "every", "seconds": int(self.step.total_seconds()), "anchor": written(self._anchor)}

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> "Every":
        """Make the schedule that a definition describes.

        Raises:
            DeclarationError: a key is missing or not known.
            FaultyDeclaration: a value is not usable.
        """
        check_keys(definition, _KEYS)
        return cls(seconds=definition["seconds"], anchor=definition["anchor"])
