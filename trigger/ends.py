"""When something that a person orders ends: at an instant, or after so long; never in the past, or never. Pure."""

import re
from datetime import datetime, timedelta
from typing import TypeAlias

from schemas.occurrence import format_instant
from shared.terminal import Refused, read_instant

# An instant, or how long from the database's present.
Until: TypeAlias = datetime | timedelta

_LASTING = re.compile(r"(\d{1,6})(m|h|d)", re.ASCII)
_UNITS = {"m": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1)}
_VALID = "write minutes, hours or days: 30m, 8h, 2d"


def read_until(until: str | None, lasting: str | None) -> Until:
    """Read `--until` or `--for`, of which one is to be given. Raises Refused, naming the option."""
    if (until is None) == (lasting is None):
        problem = "say when it ends: with --until INSTANT or with --for 8h" + (", not with both" if until else "")
        raise Refused(problem)
    return read_instant("--until", until) if until is not None else read_lasting("--for", str(lasting))


def read_lasting(option: str, text: str) -> timedelta:
    """Read how long something lasts. Raises Refused, naming the option."""
    match = _LASTING.fullmatch(text)
    if match is None or int(match[1]) == 0:
        problem = f"{option}: {text[:40]!r} is no time that something could last: {_VALID}"
        raise Refused(problem)
    return int(match[1]) * _UNITS[match[2]]


def end_of(until: Until, begin: datetime, longest: timedelta, what: str) -> datetime:
    """Give the end of `what` begins at `begin`. Raises Refused for one that is not later, or later than may be."""
    end = begin + until if isinstance(until, timedelta) and until <= longest else until
    if isinstance(end, timedelta) or end - begin > longest:
        problem = f"{what} lasts {longest.days} days at most: give a sooner end, and order it again when that comes"
        raise Refused(problem)
    if end <= begin:
        problem = f"{what} ends later than it begins: {format_instant(end)} is not after {format_instant(begin)}"
        raise Refused(problem)
    return end
