"""Reading a calendar of days off from a file, while a module of jobs is loaded."""

import json
from datetime import date
from pathlib import Path
from typing import Final

from shared.cron_fields import shorten
from shared.declaration import Fault, collecting_faults, refuse
from shared.exclusions import Calendar

LARGEST: Final = 1_000_000
_VALID = "a date a line, as 2026-12-25; or, in a file that ends in .json, an array of them"


def read_calendar(path: str | Path, name: str = "") -> Calendar:
    """Read days off: a date a line, as `2026-12-25 Christmas`, and lines that begin with `#`; or a JSON array of dates.

    Its name is that of the file without its ending, unless one is given. What is read is part of the job's definition:
    a changed file changes the job, when a process starts with it, and all processes of a fleet need the same one.
    Faults are told as those of any declaration, with the file and the line.
    """
    file = Path(path)
    called = name or file.stem.lower()
    try:
        text = file.read_bytes()[: LARGEST + 1].decode("utf-8-sig")
        if len(text) > LARGEST:
            return _faulty(called, str(path), f"is longer than {LARGEST} characters")
        return Calendar(called, _in_json(text) if file.suffix == ".json" else _in_lines(text))
    except (OSError, ValueError) as error:
        told = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        return _faulty(called, str(path), told)


def _in_lines(text: str) -> list[date]:
    days = []
    for number, line in enumerate(text.splitlines(), 1):
        word, *_ = line.split(None, 1) or [""]
        if word and not word.startswith("#"):
            days.append(_date(word, f"line {number}: "))
    return days


def _in_json(text: str) -> list[date]:
    found = json.loads(text)
    if not isinstance(found, list):
        raise ValueError("holds no array")  # noqa: TRY004 - one kind of error for every fault of a file
    return [_date(value, f"value {number}: ") for number, value in enumerate(found, 1)]


def _date(value: object, where: str) -> date:
    try:
        return date.fromisoformat(value if isinstance(value, str) else "")
    except ValueError:
        raise ValueError(f"{where}{shorten(value)} is no date") from None


def _faulty(name: str, path: str, problem: str) -> Calendar:
    """Give a calendar that keeps what is wrong with its file, or refuse it at once."""
    fault = Fault(f"calendar file {path!r}", problem, _VALID)
    with collecting_faults():
        calendar = Calendar(name, ())
    object.__setattr__(calendar, "faults", (fault,))
    refuse((fault,))
    return calendar
