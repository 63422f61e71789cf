"""Cron text: five fields or a calendar macro, read strictly, evaluated as naive wall times by a kept library.

- Day-of-month and day-of-week follow Debian's cron: if one of them starts with `*` (also `*/2`), a day must match both;
  if neither does, a day that matches one of them is enough.
- `@hourly @daily @midnight @weekly @monthly @yearly @annually`, in any case, are their five-field forms; `@reboot` and
  `@every` are refused.
- There is no seconds field: libraries disagree on whether it stands first or last, so six fields are refused.
- A text that could never fire is refused when it is read.
- What each field may hold is in `shared.cron_fields`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime

from cronsim import CronSim, CronSimError

from shared.cron_fields import FIELDS, normalize, shorten
from shared.errors import DeclarationError, refuse_together

_MACROS = {
    "@HOURLY": "0 * * * *",
    "@DAILY": "0 0 * * *",
    "@MIDNIGHT": "0 0 * * *",
    "@WEEKLY": "0 0 * * 0",
    "@MONTHLY": "0 0 1 * *",
    "@YEARLY": "0 0 1 1 *",
    "@ANNUALLY": "0 0 1 1 *",
}
_LONGEST = 1_000
_BLANKS = " \t"
_ORDER = " ".join(field.name for field in FIELDS)
_ANY_YEAR = datetime(2024, 1, 1)  # noqa: DTZ001 - a wall time has no zone; the calendar after any year is as good as another


@dataclass(frozen=True, slots=True)
class CronExpression:
    """When a job is due by the clock on the wall; make it with `parse`.

    `text` is the canonical form: five fields of digits and signs. Texts that differ in blanks, case, names, leading
    zeros or macros alone are equal.
    """

    text: str

    @classmethod
    def parse(cls, text: str) -> "CronExpression":
        """Read cron text.

        Raises:
            DeclarationError: the text is not usable; names field, token and valid values, all faults at once.
        """
        place = f"cron text {shorten(text)}"
        expression = cls(_canonical(text, place))
        if expression.first_after(_ANY_YEAR) is None:
            raise _never(place)
        return expression

    @property
    def is_interval_like(self) -> bool:
        """Whether the hour field is `*` or a step of it, so the job is meant to run all day long."""
        return self.text.split(" ")[1].startswith("*")

    @property
    def is_hourly_off_the_hour(self) -> bool:
        """Whether the job runs in every hour, but not at its first minute."""
        minute, hour, *_ = self.text.split(" ")
        return hour == "*" and 0 not in CronSim(f"{minute} * * * *", _ANY_YEAR).minutes

    @property
    def matches_either_day(self) -> bool:
        """Whether both day fields are restricted, so that a day which matches one of them is enough."""
        _, _, day_of_month, _, day_of_week = self.text.split(" ")
        return not day_of_month.startswith("*") and not day_of_week.startswith("*")

    def wall_times(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give the naive wall times that lie after `after`, up to and including `until`, in order; whole minutes.

        Both are naive. Gaps and folds of any zone are not looked at.
        """
        upcoming = CronSim(self.text, after)
        while (wall := _next(upcoming)) is not None and wall <= until:
            yield wall

    def first_after(self, wall: datetime) -> datetime | None:
        """Give the first naive wall time after `wall`, or None if there is none within 50 years."""
        return _next(CronSim(self.text, wall))

    def last_before(self, wall: datetime) -> datetime | None:
        """Give the last naive wall time before `wall`, or None if there is none within 50 years."""
        return _next(CronSim(self.text, wall, reverse=True))


def _next(walk: CronSim) -> datetime | None:
    try:
        return next(walk)
    except (StopIteration, OverflowError):
        return None


def _canonical(text: str, place: str) -> str:
    upper = _words(text, place).upper()
    if upper.startswith("@"):
        if upper not in _MACROS:
            raise DeclarationError(place, "is not a known macro", " ".join(_MACROS).lower())
        return _MACROS[upper]
    parts = upper.replace("\t", " ").split()
    if len(parts) != len(FIELDS):
        hint = ", and there is no field for seconds or years" if len(parts) > len(FIELDS) else ""
        raise DeclarationError(place, f"has {len(parts)} fields instead of five{hint}", _ORDER)
    faults = []
    canonical = []
    for field, part in zip(FIELDS, parts, strict=True):
        try:
            canonical.append(normalize(field, part))
        except DeclarationError as fault:
            faults.append(DeclarationError(f"{place}, {field.name}", fault.problem, fault.valid))
    refuse_together(place, faults)
    joined = " ".join(canonical)
    try:
        CronSim(joined, _ANY_YEAR)
    except CronSimError:
        raise _never(place) from None
    return joined


def _never(place: str) -> DeclarationError:
    return DeclarationError(place, "never fires: no month that it names has such a day", "a date that exists")


def _words(text: object, place: str) -> str:
    """Strip the text and refuse what a person cannot see or would not have typed."""
    if not isinstance(text, str):
        raise DeclarationError(place, f"is {type(text).__name__} instead of text", "five fields or a macro")
    if len(text) > _LONGEST:
        raise DeclarationError(place, f"is longer than {_LONGEST} characters", "five fields or a macro")
    stripped = text.strip(" \t\r\n")
    if not stripped:
        raise DeclarationError(place, "is empty", f"{_ORDER}, or a macro such as @daily")
    for sign in stripped:
        if not sign.isascii() or not (sign.isprintable() or sign in _BLANKS):
            problem = f"has the character U+{ord(sign):04X}"
            raise DeclarationError(place, problem, "ASCII letters, digits and signs; blanks or tabs between fields")
    return stripped
