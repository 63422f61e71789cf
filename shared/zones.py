"""Time zones by name, always from the tzdata that is a dependency of this project, never from the machine.

The standard library reads the machine's copy first, so the same job could run at another hour on an older machine, or
not at all in an image that has no copy. Here a name is known if and only if the dependency knows it, in this spelling;
nothing falls back to UTC or to the machine. A job's own code that asks the standard library still gets the machine's
copy: `tzdata_warning` tells when the two differ.
"""

import re
import zoneinfo
from difflib import get_close_matches
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from shared.cron_fields import shorten
from shared.errors import DeclarationError

UTC_NAME: Final = "UTC"
_NOT_PLACES = frozenset({"Factory", "localtime", "posixrules"})
_OFFSET = re.compile(r"(?:UTC|GMT)?[+-]\d{1,2}(?::?\d\d)?", re.ASCII | re.IGNORECASE)
_ABBREVIATION = re.compile(r"[A-Z]{2,5}")
_REVERSED = re.compile(r"Etc/GMT(?P<sign>[+-])(?P<hours>\d+)", re.ASCII)
_VERSION = re.compile(r"# version (\S+)")
_EXAMPLE = "a name such as UTC or Europe/Berlin"
_LONGEST = 100


def find_zone(name: str) -> ZoneInfo:
    """Give the zone of this name.

    Raises:
        DeclarationError: the name is not a zone of the bundled tzdata; says which names are near.
    """
    place = f"zone {shorten(name)}"
    if _is_blank(name):
        raise DeclarationError(place, "is not the name of a time zone", _EXAMPLE)
    if name in zone_names():
        return _load(name)
    if name in _NOT_PLACES:
        raise DeclarationError(place, "means something else on each machine", _EXAMPLE)
    if _OFFSET.fullmatch(name):
        problem = "is an offset, and an offset says nothing of when clocks change"
        raise DeclarationError(place, problem, "the name of a place such as Europe/Berlin; UTC")
    if _ABBREVIATION.fullmatch(name):
        raise DeclarationError(place, "is an abbreviation, and those mean several zones", _EXAMPLE)
    near = _near(name)
    problem = f"is not known to tzdata {tzdata_version()}"
    raise DeclarationError(place, problem, f"nearest: {', '.join(near)}" if near else _EXAMPLE)


@cache
def zone_names() -> frozenset[str]:
    """Give every name that a schedule may use."""
    listed = resources.files("tzdata").joinpath("zones").read_text(encoding="utf-8").split("\n")
    return frozenset(listed) - _NOT_PLACES - {""}


def zone_warning(name: str) -> str | None:
    """Say what is easily misread about a valid zone name, or None."""
    reversed_offset = _REVERSED.fullmatch(name)
    if reversed_offset is None or int(reversed_offset["hours"]) == 0:
        return None
    sign = "-" if reversed_offset["sign"] == "+" else "+"
    return f"zone {name} is UTC{sign}{reversed_offset['hours']}: names of this kind count the other way round"


@cache
def tzdata_version() -> str:
    """Give the release of the zone data that schedules use, such as `2026f`."""
    return _version_in(_bundled()) or "of unknown release"


def tzdata_warning() -> str | None:
    """Say that the machine's own zone data is of another release, or None if it is the same or there is none.

    Schedules do not use that copy, but a job's code does when it asks the standard library for a zone.
    """
    for folder in map(Path, zoneinfo.TZPATH):
        if not folder.joinpath(UTC_NAME).is_file():
            continue
        found = _version_in(folder)
        if found == tzdata_version():
            return None
        return (
            f"schedules use the bundled tzdata {tzdata_version()}; the machine's copy in {folder} is "
            f"{found or 'of unknown release'}, and zoneinfo.ZoneInfo in a job's own code reads that one first"
        )
    return None


def _version_in(folder: Traversable) -> str | None:
    try:
        with folder.joinpath("tzdata.zi").open(encoding="utf-8", errors="replace") as source:
            line = _VERSION.match(source.readline())
    except OSError:
        return None
    return line[1] if line else None


def _bundled() -> Traversable:
    return resources.files("tzdata").joinpath("zoneinfo")


@cache
def _load(name: str) -> ZoneInfo:
    with _bundled().joinpath(*name.split("/")).open("rb") as compiled:
        return ZoneInfo.from_file(compiled, key=name)


def _is_blank(name: object) -> bool:
    return not isinstance(name, str) or not name.strip()


def _near(name: str) -> list[str]:
    spellings = {known.lower(): known for known in sorted(zone_names())}
    wanted = name.strip().lower()[:_LONGEST]
    if wanted in spellings:
        return [spellings[wanted]]
    inside = [known for low, known in spellings.items() if low.startswith(f"{wanted}/") or low.endswith(f"/{wanted}")]
    return inside[:3] or [spellings[low] for low in get_close_matches(wanted, spellings, n=3)]
