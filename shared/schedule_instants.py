"""A schedule of instants that are written out one by one, and that ends with the last of them. Pure."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from shared.bounds import bounded, check_keys, declared_instant, written
from shared.declaration import Fault, keep_faults
from shared.explained import UNDECIDED, explain_mistakes
from shared.schedule_in_utc import InUtc

MOST: Final = 10_000
_VALID = 'instants with their zone, as ["2026-12-24T10:00Z", "2027-04-01T06:30+02:00"]'


@explain_mistakes
@dataclass(frozen=True, slots=True)
class Instants(InUtc):
    """A schedule such as `Instants(["2026-12-24T10:00Z", "2027-04-01T06:30+02:00"])`.

    Each is a datetime with a zone, or text, on a whole second, and stands there once, in any order. Behind the last one
    nothing is due any more; the job stays known, and can be fired by hand.
    """

    at: Sequence[datetime | str]
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)
    _at: tuple[datetime, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Read the instants."""
        found: list[datetime] = []
        faults: list[Fault] = []
        given: Any = self.at
        if isinstance(given, str) or not isinstance(given, Iterable):
            told = "is left out" if given is UNDECIDED else "is no list of instants"
            keep_faults(self, (Fault("instants", told, _VALID),))
            return
        for value in given:
            try:
                found.append(declared_instant(value))
            except ValueError as error:
                faults.append(Fault("instants", str(error), _VALID))
        found.sort()
        twice = sorted({later for earlier, later in pairwise(found) if earlier == later})
        faults += [Fault("instants", f"{written(one)} is given twice", "each once") for one in twice]
        if not 0 < len(found) <= MOST and not faults:
            faults.append(Fault("instants", f"are {len(found)}", f"1 to {MOST}"))
        object.__setattr__(self, "_at", tuple(found))
        object.__setattr__(self, "at", tuple(found))
        keep_faults(self, tuple(faults[:10]))

    @property
    def description(self) -> str:
        """How many there are, and which is the last."""
        return f"{len(self._at)} instants, the last at {written(self._at[-1])}"

    def instants(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give the due instants after `after`, up to and including `until`, both aware.

        Raises:
            ValueError: one of the two has no zone.
        """
        first, last = bounded(after, "after"), bounded(until, "until")
        return iter(self._at[bisect_right(self._at, first) : bisect_right(self._at, last)])

    def next_after(self, after: datetime) -> datetime | None:
        """Give the first due instant after an aware `after`, or None behind the last."""
        place = bisect_right(self._at, bounded(after, "after"))
        return self._at[place] if place < len(self._at) else None

    def previous_before(self, before: datetime) -> datetime | None:
        """Give the last due instant before an aware `before`, or None if there is none."""
        place = bisect_left(self._at, bounded(before, "before"))
        return self._at[place - 1] if place else None

    def definition(self) -> dict[str, Any]:
        """Give the canonical form, for JSON. Keys: `kind`, and `instants`, increasing."""
        return {"kind": "instants", "instants": [written(one) for one in self._at]}

    @classmethod
    def from_definition(cls, definition: Mapping[str, Any]) -> "Instants":
        """Make the schedule that a definition describes.

        Raises:
            DeclarationError: a key is missing or not known.
            FaultyDeclaration: a value is not usable.
        """
        check_keys(definition, ("kind", "instants"))
        return cls(definition["instants"])
