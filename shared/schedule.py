"""When a job is due: cron text, a zone, and what to do when the zone's clocks change. Pure, and without a clock.

Wall times are enumerated naive and then placed in UTC one by one (`shared.placing`), so a schedule is a function from
two instants to the instants between them: equal windows give equal instants on every machine, and windows join without
a seam. A zone other than UTC must name both policies: whatever they defaulted to, some job would run twice or not at
all. The policies hold for every job, also for one that runs all day; `warnings` says where that may be unwanted.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, tzinfo
from difflib import get_close_matches
from typing import get_args

from shared.bounds import ANY_YEAR, EARLIEST, LATEST, bounded, check_keys, in_zone
from shared.cron import CronExpression
from shared.cron_fields import shorten
from shared.declaration import Fault, FaultyDeclaration, refuse
from shared.errors import DeclarationError, refuse_together
from shared.explained import explain_mistakes, undecided_names
from shared.placing import ClockChange, Fold, Gap, change_at, in_order, offsets_around, place
from shared.schedule_protocol import Doubt, Named
from shared.zones import UTC_NAME, find_zone, zone_warning

__all__ = ["ClockChange", "Cron", "Fold", "Gap", "place"]

_HOUR = timedelta(hours=1)
_SECOND = timedelta(seconds=1)
_FARTHEST = timedelta(days=60 * 366)
_GAPS: tuple[Gap, ...] = get_args(Gap)
_FOLDS: tuple[Fold, ...] = get_args(Fold)
_MEANING = {
    "gap": "what becomes of a wall time that does not exist when clocks go forward",
    "fold": "what becomes of a wall time that happens twice when clocks go back",
}


@explain_mistakes
@dataclass(frozen=True, slots=True)
class Cron:
    """A schedule such as `Cron("0 2 * * *", zone="UTC")`.

    `text` is five cron fields or a macro (`shared.cron`), `zone` a name of the tz database. `gap` and `fold` may be
    left out for UTC only. Faults are found when it is made, all at once, as a DeclarationError; while modules of jobs
    are loaded they are kept in `faults` instead, and it is the use of the schedule that raises.
    """

    text: str
    zone: str = UTC_NAME
    gap: Gap | None = None
    fold: Fold | None = None
    faults: tuple[Fault, ...] = field(default=(), init=False, repr=False, compare=False)
    _parsed: CronExpression | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Check everything, and that the schedule fires at all."""
        try:
            self._check()
        except DeclarationError as error:
            faults = tuple(Fault(fault.place, fault.problem, fault.valid or "") for fault in error.faults)
            object.__setattr__(self, "faults", faults)
            try:
                refuse(faults)
            except FaultyDeclaration:
                raise error from None

    def _check(self) -> None:
        if "text" in undecided_names(self):
            raise DeclarationError("schedule text", "is left out", 'five fields or a macro, as "0 2 * * *"')
        faults = [
            *_policy_fault("gap", self.gap, _GAPS, self.zone),
            *_policy_fault("fold", self.fold, _FOLDS, self.zone),
        ]
        try:
            find_zone(self.zone)
        except DeclarationError as fault:
            faults.insert(0, fault)
        try:
            object.__setattr__(self, "_parsed", CronExpression.parse(self.text))
        except DeclarationError as fault:
            faults.insert(0, fault)
        refuse_together(f"schedule {shorten(self.text)}", faults)
        self.next_after(ANY_YEAR)

    @property
    def clocks(self) -> "Cron | None":
        """Itself, or None in UTC, where clocks never change."""
        return None if self.zone == UTC_NAME else self

    @property
    def description(self) -> str:
        """The text and the zone."""
        return f"{self.text} {self.zone}"

    def named(self, after: datetime, until: datetime) -> Iterator[Named]:
        """Give the due instants of `instants`: nothing is left out."""
        return (Named(instant) for instant in self.instants(after, until))

    def instants(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give the due instants after `after`, up to and including `until`, both aware.

        They are aware, in UTC, on whole seconds, increasing and distinct, in the years 100 to 9899.

        Raises:
            ValueError: one of the two has no zone.
        """
        first, last = bounded(after, "after"), bounded(until, "until")
        instants = in_order(self.wall_times(first, last), self._tzinfo, *self._policies)
        return (instant for instant in instants if first < instant <= last)

    def wall_times(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give, naive and in order, at least the wall times that can lead to an instant after `after`, up to `until`.

        A moved wall time reads as if the offset before the change still held, so both offsets near an end are allowed
        for, and some wall times at the ends may lead to instants outside. Both arguments are aware.
        """
        least, _ = offsets_around(after, self._tzinfo)
        _, greatest = offsets_around(until, self._tzinfo)
        return self._expression.wall_times(_naive(after, least) - _SECOND, _naive(until, greatest))

    def change_at(self, wall: datetime) -> ClockChange | None:
        """Give the clock change of this zone that makes a naive wall time missing or double, or None."""
        return change_at(wall, self._tzinfo)

    def next_after(self, after: datetime) -> datetime:
        """Give the first due instant after an aware `after`.

        Raises:
            ValueError: `after` has no zone.
            DeclarationError: there is none within 60 years, since clocks change whenever it would be due.
        """
        first = bounded(after, "after")
        least, _ = offsets_around(first, self._tzinfo)
        wall = self._expression.first_after(_naive(first, least) - _SECOND)
        searched = first
        while wall is not None and wall.replace(tzinfo=UTC) < min(first + _FARTHEST, LATEST):
            least, _ = offsets_around(wall.replace(tzinfo=UTC), self._tzinfo)
            end = wall.replace(tzinfo=UTC) - least
            for instant in self.instants(searched, end):
                return instant
            searched = max(searched, end)
            wall = self._expression.first_after(wall + _HOUR)
        problem = (
            f"never fires after {first:%Y-%m-%d}: clocks of zone {self.zone} leave its times out, and gap is {self.gap}"
        )
        raise DeclarationError(f"schedule {shorten(self.text)}", problem, "gap next_valid or shift, or another time")

    def previous_before(self, before: datetime) -> datetime | None:
        """Give the last due instant before an aware `before`, or None if there is none within 60 years.

        Raises:
            ValueError: `before` has no zone.
        """
        bound = bounded(before, "before")
        last = bound.replace(microsecond=0) - (timedelta(0) if bound.microsecond else _SECOND)
        _, greatest = offsets_around(last, self._tzinfo)
        wall = self._expression.last_before(_naive(last, greatest) + _SECOND)
        searched = last
        while wall is not None and wall.replace(tzinfo=UTC) > max(last - _FARTHEST, EARLIEST):
            _, greatest = offsets_around(wall.replace(tzinfo=UTC), self._tzinfo)
            start = wall.replace(tzinfo=UTC) - greatest - _SECOND
            found = list(self.instants(start, searched))
            if found:
                return found[-1]
            searched = min(searched, start)
            wall = self._expression.last_before(wall - _HOUR)
        return None

    def warnings(self) -> list[Doubt]:
        """Say what is valid but likely to surprise."""
        warnings = (
            [Doubt(warning, "a place's name, as Europe/Berlin, or UTC")] if (warning := zone_warning(self.zone)) else []
        )
        if self._expression.matches_either_day:
            either = "names days of the month and of the week, and runs on a day that matches either"
            instead = "* in one of the two fields; a weekday of a certain week is MON#1 or 5L"
            warnings.append(Doubt(f"schedule {self.text!r} {either}", instead))
        if self.zone == UTC_NAME:
            return warnings
        if self.is_interval_like and self.fold != "both":
            hole = f"when clocks go back, fold={self.fold} leaves a hole as long as the repeated time"
            warnings.append(Doubt(f"schedule {self.text!r} runs all day long: {hole}", "fold=both, which leaves none"))
        if self._expression.is_hourly_off_the_hour and self.gap == "next_valid":
            added = "gap=next_valid adds a run when clocks go forward"
            warnings.append(Doubt(f"schedule {self.text!r} runs in every hour: {added}", "gap=skip, which adds none"))
        return warnings

    def definition(self) -> dict[str, str | None]:
        """Give the canonical form, for JSON: two schedules that mean the same give the same.

        Keys: `text`, `zone`, `gap`, `fold`. In UTC, where clocks never change, the last two are None.
        """
        changes = self.zone != UTC_NAME
        return {
            "text": self._expression.text,
            "zone": self.zone,
            "gap": self.gap if changes else None,
            "fold": self.fold if changes else None,
        }

    @classmethod
    def from_definition(cls, definition: Mapping[str, str | None]) -> "Cron":
        """Make the schedule that a definition describes.

        Raises:
            DeclarationError: a key is missing or not known, or a value is not usable.
        """
        keys = ("text", "zone", "gap", "fold")
        check_keys(definition, keys)
        return cls(*(definition[key] for key in keys))  # type: ignore[arg-type] # the constructor checks each value

    def local(self, instant: datetime) -> datetime:
        """Give an aware instant as the zone's clocks show it, for display.

        Raises:
            ValueError: `instant` has no zone.
        """
        return in_zone(instant, self._tzinfo)

    @property
    def is_interval_like(self) -> bool:
        """Whether it is meant to run all day long."""
        return self._expression.is_interval_like

    @property
    def _expression(self) -> CronExpression:
        return self._parsed or CronExpression.parse(self.text)

    @property
    def _tzinfo(self) -> tzinfo:
        return UTC if self.zone == UTC_NAME else find_zone(self.zone)

    @property
    def _policies(self) -> tuple[Gap, Fold]:
        return self.gap or "skip", self.fold or "first"


def _policy_fault(name: str, value: str | None, valid: tuple[str, ...], zone: str) -> list[DeclarationError]:
    place = f"schedule {name}"
    if value is None:
        if zone == UTC_NAME:
            return []
        problem = f"is not decided for zone {shorten(zone)}: {_MEANING[name]}"
        return [DeclarationError(place, problem, ", ".join(valid))]
    if value in valid:
        return []
    near = get_close_matches(str(value), valid, n=1, cutoff=0.5)
    hint = f", did you mean {near[0]}?" if near else ""
    return [DeclarationError(place, f"cannot be {shorten(value)}{hint}", ", ".join(valid))]


def _naive(instant: datetime, offset: timedelta) -> datetime:
    return (instant + offset).replace(tzinfo=None)
