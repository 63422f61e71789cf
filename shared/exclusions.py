"""Days on which a schedule does not run: single dates, weekdays, spans of dates, and calendars with a name. Pure.

An exclusion looks at the date that the clocks on the wall show, in the schedule's zone. Each is a value: a calendar
that was read from a file is the dates that stood there, so that another file is another definition of the job.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, Protocol

from shared.cron_fields import shorten
from shared.declaration import Fault, keep_faults
from shared.errors import DeclarationError
from shared.explained import UNDECIDED, explain_mistakes
from shared.job_faults import name_faults

MOST_DATES: Final = 10_000
_WEEKDAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")
_DAY_VALID = 'a date, as "2026-12-25"'
_DAYS_VALID = 'a list of dates, as ["2026-12-25", "2027-01-01"]'


class Exclusion(Protocol):
    """What leaves out whole days."""

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong with the declaration."""

    def leaves_out(self, day: date) -> str:
        """Say, in a few words, what leaves the day out, or ''."""

    def definition(self) -> dict[str, Any]:
        """Give the canonical form, for JSON, with its `kind`."""


@explain_mistakes
@dataclass(frozen=True, slots=True)
class Weekdays:
    """Days of the week, as `Weekdays(["sat", "sun"])`."""

    names: Iterable[str]
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the names, and bring them into the week's order."""
        names = _listed(self.names)
        wrong = [name for name in names if name not in _WEEKDAYS]
        problem = f"{shorten(wrong[0])} is no weekday" if wrong else "name no weekday"
        object.__setattr__(self, "names", tuple(name for name in _WEEKDAYS if name in names))
        keep_faults(self, (Fault("weekdays", problem, ", ".join(_WEEKDAYS)),) if wrong or not names else ())

    def leaves_out(self, day: date) -> str:
        """Give the weekday's name, or ''."""
        name = _WEEKDAYS[day.weekday()]
        return name if name in self.names else ""

    def definition(self) -> dict[str, Any]:
        """Give `kind` and `names`."""
        return {"kind": "weekdays", "names": list(self.names)}


@explain_mistakes
@dataclass(frozen=True, slots=True)
class Dates:
    """Single days, as `Dates(["2026-12-24", "2026-12-31"])`."""

    days: Iterable[date | str]
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Read the dates."""
        days, faults = _dates("dates", self.days)
        object.__setattr__(self, "days", frozenset(days))
        keep_faults(self, faults)

    def leaves_out(self, day: date) -> str:
        """Give the date, or ''."""
        return day.isoformat() if day in _read(self.days) else ""

    def definition(self) -> dict[str, Any]:
        """Give `kind` and `days`, increasing."""
        return {"kind": "dates", "days": [day.isoformat() for day in sorted(_read(self.days))]}


@explain_mistakes
@dataclass(frozen=True, slots=True)
class Between:
    """A span of days, as `Between("2026-12-24", "2027-01-02")`; both belong to it."""

    first: date | str
    last: date | str
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Read the two dates."""
        ends, faults = _dates("between", [self.first, self.last])
        if not faults and ends[0] > ends[1]:
            faults = (Fault("between", f"ends on {ends[1]}, before its first day {ends[0]}", "the first day first"),)
        if not faults:
            object.__setattr__(self, "first", ends[0])
            object.__setattr__(self, "last", ends[1])
        keep_faults(self, faults)

    def leaves_out(self, day: date) -> str:
        """Give the span, or ''."""
        first, last = _read((self.first, self.last))
        return f"{first} to {last}" if first <= day <= last else ""

    def definition(self) -> dict[str, Any]:
        """Give `kind`, `first` and `last`."""
        return {"kind": "between", "first": str(self.first), "last": str(self.last)}


@explain_mistakes
@dataclass(frozen=True, slots=True)
class Calendar:
    """Days off that have a name together, as `Calendar("berlin", ["2026-12-25", "2026-12-26"])`.

    `days` are dates or text, of whatever gives them: a library of public holidays, or `shared.calendars.read_calendar`.
    """

    name: str
    days: Iterable[date | str]
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check the name and read the dates."""
        place = f"calendar {shorten(self.name)}"
        days, faults = _dates(place, self.days)
        object.__setattr__(self, "days", frozenset(days))
        keep_faults(self, name_faults("calendar", self.name), faults)

    @property
    def last(self) -> date:
        """The last of the dates, behind which nothing is left out."""
        last: date = max(_read(self.days))
        return last

    def leaves_out(self, day: date) -> str:
        """Give the calendar's name, or ''."""
        return f"calendar {self.name}" if day in _read(self.days) else ""

    def definition(self) -> dict[str, Any]:
        """Give `kind`, `name`, `days`, increasing, and their `fingerprint`, by which two calendars are told apart."""
        days = [day.isoformat() for day in sorted(_read(self.days))]
        mark = hashlib.sha256("\n".join(days).encode()).hexdigest()
        return {"kind": "calendar", "name": self.name, "days": days, "fingerprint": mark[:16]}


def exclusion_of(definition: Mapping[str, Any]) -> Exclusion:
    """Make the exclusion that a definition describes.

    Raises:
        DeclarationError: its kind is not known, or a key is missing.
        FaultyDeclaration: a value is not usable.
    """
    kind = definition.get("kind")
    try:
        match kind:
            case "weekdays":
                return Weekdays(definition["names"])
            case "dates":
                return Dates(definition["days"])
            case "between":
                return Between(definition["first"], definition["last"])
            case "calendar":
                return Calendar(definition["name"], definition["days"])
    except KeyError as error:
        raise DeclarationError("exclusion", f"has no key {error}", "what its kind needs") from error
    raise DeclarationError("exclusion", f"is of the kind {shorten(kind)}", "weekdays, dates, between, calendar")


def _listed(values: object) -> list[Any]:
    """Give what is listed; a single text is no list."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        return [] if values is UNDECIDED else [values]
    return list(values)


def _dates(place: str, values: object) -> tuple[list[date], tuple[Fault, ...]]:
    """Read dates; give the faults of those that are none, a few of them."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        told = "is left out" if values is UNDECIDED else f"is {shorten(values)}"
        return [], (Fault(place, told, _DAYS_VALID),)
    days: list[date] = []
    wrong: list[Fault] = []
    for value in values:
        try:
            days.append(_date(value))
        except ValueError:
            told = "a day is left out" if value is UNDECIDED else f"{shorten(value)} is no date"
            wrong.append(Fault(place, told, _DAY_VALID))
    if not wrong and not 0 < len(days) <= MOST_DATES:
        wrong.append(Fault(place, f"has {len(days)} dates", f"1 to {MOST_DATES}"))
    return days, tuple(wrong[:5])


def _date(value: object) -> date:
    if isinstance(value, str):
        return date.fromisoformat(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise ValueError(value)  # noqa: TRY004 - one kind of error for whatever is no date
    return value


def _read(days: Iterable[date | str]) -> Any:
    """Give dates as `__post_init__` left them."""
    return days
