"""The words that each cron field may use, checked strictly and rewritten for the library that evaluates them.

The library reads `*/60` as hourly, `1-5/8` as Mondays and refuses `FRI-MON`; here the first two are refused with the
reason and the third becomes a list. After rewriting only digits and `* , - / # L W` are left, so that two texts that
differ in case, names or leading zeros are one. A field that starts with `*` still does: the day rule depends on it.

- `N/S` means `N-highest/S`. A step must reach a second value, else only the first would ever run.
- A range may wrap (`FRI-MON`, `22-2`, `NOV-FEB`); in day-of-month it then takes no step, since months differ in length.
- Names are the first three letters, in any case, alone, in lists and in ranges.
- Sunday is 0 and 7. `5L` is the last Friday of the month, `1#5` or `MON#5` the fifth Monday; in day-of-month `L` is the
  last day and `LW` the last weekday.
- Not known: `?`, `W` by itself, `H`, `R`, seconds, years.
"""

import re
from dataclasses import dataclass

from shared.errors import DeclarationError

_RANGE = re.compile(r"(?P<first>\*|[0-9]+|[A-Z]{3})(?:-(?P<last>[0-9]+|[A-Z]{3}))?(?:/(?P<step>[0-9]+))?")
_NTH = re.compile(r"(?P<day>[0-9]|[A-Z]{3})#(?P<nth>[1-5])")
_SUNDAY_AS_LAST = 7


@dataclass(frozen=True, slots=True)
class Field:
    """One of the five fields: its name, its lowest and highest value, its names in order from the lowest value."""

    name: str
    lowest: int
    highest: int
    names: tuple[str, ...] = ()
    special: re.Pattern[str] | None = None
    special_valid: str = ""

    @property
    def valid(self) -> str:
        """Say what may stand in this field."""
        named = f", {self.names[0]}-{self.names[-1]}" if self.names else ""
        return f"*, {self.lowest}-{self.highest}{named}, ranges, lists, steps{self.special_valid}"


MINUTE = Field("minute", 0, 59)
HOUR = Field("hour", 0, 23)
DAY_OF_MONTH = Field("day-of-month", 1, 31, (), re.compile("LW?"), ", L, LW")
MONTH = Field("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
DAY_OF_WEEK = Field(
    "day-of-week", 0, 7, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"), re.compile("[0-7]L"), ", 5L, 1#1 to 1#5"
)
FIELDS = (MINUTE, HOUR, DAY_OF_MONTH, MONTH, DAY_OF_WEEK)


def normalize(field: Field, text: str) -> str:
    """Rewrite one field, upper case and ASCII, to digits and signs.

    Raises:
        DeclarationError: names the field, the token that is wrong and the valid values.
    """
    items = text.split(",")
    rewritten = [_item(field, item) for item in items]
    if len(items) > 1 and "*" in rewritten:
        raise _fault(field, text, "has * in a list, which leaves the rest without effect")
    return ",".join(rewritten)


def _item(field: Field, item: str) -> str:
    if not item:
        raise _fault(field, item, "is an empty item of a list")
    if field.special is not None and field.special.fullmatch(item):
        return item
    if field is DAY_OF_WEEK and (nth := _NTH.fullmatch(item)):
        return f"{_number(field, nth['day'])}#{nth['nth']}"
    match = _RANGE.fullmatch(item)
    if match is None or (match["first"] == "*" and match["last"]):
        raise _fault(field, item, "is not understood")
    if match["first"] == "*":
        step = _step(field, item, match["step"], field.highest - field.lowest)
        return "*" if step == 1 else f"*/{step}"
    first = _number(field, match["first"])
    if match["last"] is None and match["step"] is None:
        return str(first)
    last = field.highest if match["last"] is None else _number(field, match["last"])
    return _range(field, item, (first, last), match["step"])


def _range(field: Field, item: str, ends: tuple[int, int], step_text: str | None) -> str:
    first, last = _sunday_where_it_fits(field, *ends)
    if first <= last:
        step = _step(field, item, step_text, last - first)
        return f"{first}-{last}" if step == 1 else f"{first}-{last}/{step}"
    if field is DAY_OF_MONTH and step_text is not None:
        raise _fault(field, item, "has a step on a range that wraps, and months differ in length: list the days")
    highest = field.highest - 1 if field is DAY_OF_WEEK else field.highest
    values = [*range(first, highest + 1), *range(field.lowest, last + 1)]
    return ",".join(str(value) for value in values[:: _step(field, item, step_text, len(values) - 1)])


def _sunday_where_it_fits(field: Field, first: int, last: int) -> tuple[int, int]:
    """Let `SAT-SUN` end on 7 and `7-2` begin on 0, so that neither has to wrap."""
    if field is not DAY_OF_WEEK:
        return first, last
    if last == 0 and first > 0:
        return first, _SUNDAY_AS_LAST
    if first == _SUNDAY_AS_LAST and last < _SUNDAY_AS_LAST:
        return 0, last
    return first, last


def _step(field: Field, item: str, text: str | None, span: int) -> int:
    if text is None:
        return 1
    step = int(text)
    if step == 0:
        raise _fault(field, item, "has a step of 0")
    if step > span and step > 1:
        raise _fault(field, item, f"has a step that never reaches a second value (at most {span} here)")
    return step


def _number(field: Field, text: str) -> int:
    if text in field.names:
        return field.names.index(text) + field.lowest
    if not text.isdigit():
        raise _fault(field, text, "is not a name of this field")
    number = int(text)
    if not field.lowest <= number <= field.highest:
        raise _fault(field, text, f"is outside {field.lowest}-{field.highest}")
    return number


def _fault(field: Field, token: str, problem: str) -> DeclarationError:
    return DeclarationError(f"cron field {field.name}", f"{shorten(token)} {problem}", field.valid)


def shorten(value: object) -> str:
    """Quote a value for a message, escaped, and cut when it is long."""
    limit = 60
    if isinstance(value, str) and len(value) > limit:
        return f"{value[:limit]!r}… ({len(value)} characters)"
    return repr(value)
