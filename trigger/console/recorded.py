"""Reading a recorded declaration name by name: what this release does not know is shown, and not left out. Pure."""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from shared.job_faults import LONGEST_DURATION, duration_text

LONGEST_WRITTEN: Final = 200
_UNREADABLE: Final = (TypeError, ValueError, KeyError, AttributeError, OverflowError)

Tell = Callable[[Any], str]


@dataclass(frozen=True, slots=True)
class Policy:
    """One thing that was decided: as it is recorded, and what it means, '' where this release does not know."""

    written: str
    told: str


@dataclass(frozen=True, slots=True)
class Part:
    """What belongs together, under one heading."""

    heading: str
    policies: tuple[Policy, ...]


class Recorded:
    """The values of one object of a definition; each is read once, and `rest` gives those that nobody read."""

    def __init__(self, values: object, within: str = "") -> None:
        """Take the object, and the name of what holds it; anything that is no object is one value of that name."""
        self._within = f"{within}." if within else ""
        self._values: dict[str, Any] = dict(values) if isinstance(values, Mapping) else {}
        self._odd = () if isinstance(values, Mapping) or values is None else (Policy(f"{within}={_shown(values)}", ""),)

    def value(self, name: str) -> Any:
        """Give a value without having read it; None where there is none."""
        return self._values.get(name)

    def word(self, name: str) -> str:
        """Give a value without having read it; '' where it is no text."""
        value = self._values.get(name)
        return value if isinstance(value, str) else ""

    def take(self, *names: str) -> None:
        """Read values that say nothing by themselves."""
        for name in names:
            self._values.pop(name, None)

    def part(self, name: str) -> "Recorded":
        """Read the object of that name."""
        return Recorded(self._values.pop(name, None), f"{self._within}{name}")

    def of(self, name: str, tell: Tell, write: Callable[[Any], str] | None = None) -> Iterator[Policy]:
        """Give what a value means; nothing where it was not decided. `tell` raises, or gives '', for what it is not."""
        if name not in self._values:
            return
        value = self._values.pop(name)
        if value is None:
            return
        try:
            told, written = tell(value), (write or _shown)(value)
        except _UNREADABLE:
            told, written = "", _shown(value)
        yield Policy(f"{self._within}{name}={written}", told)

    def lasting(self, name: str, tell: Callable[[str], str]) -> Iterator[Policy]:
        """Give what a duration means, which is recorded in seconds; `tell` is given it as `20h`."""
        return self.of(name, lambda seconds: tell(_duration(seconds)), _duration)

    def worded(self, name: str, words: Mapping[str, str]) -> Iterator[Policy]:
        """Give what a word means."""
        return self.of(name, lambda word: words.get(word, ""))

    def rest(self) -> Iterator[Policy]:
        """Give what nobody read: a later release has recorded it."""
        yield from self._odd
        for name, value in self._values.items():
            yield Policy(f"{self._within}{name}={_shown(value)}", "")
        self._values = {}


def _duration(seconds: Any) -> str:
    if isinstance(seconds, bool) or not 0 <= float(seconds) <= LONGEST_DURATION.total_seconds():
        raise ValueError(seconds)
    return duration_text(timedelta(seconds=float(seconds)))


def whole(value: Any, least: int = 1) -> int:
    """Give a whole number. Raises ValueError for anything else."""
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ValueError(value)
    return value


def share(value: Any) -> str:
    """Write a share from 0 to 1 in per cent: `2.5%`. Raises ValueError for anything else."""
    if isinstance(value, bool) or not 0 <= float(value) <= 1:
        raise ValueError(value)
    return f"{100 * float(value):.4g}%"


def text(value: Any) -> str:
    """Give a text. Raises ValueError for anything else."""
    if not isinstance(value, str):
        raise ValueError(value)  # noqa: TRY004 - one kind of error for whatever this release does not know
    return value


def _shown(value: Any) -> str:
    """Write a value as JSON, cut with a mark."""
    written = json.dumps(value, ensure_ascii=False, default=str)
    return written if len(written) <= LONGEST_WRITTEN else f"{written[:LONGEST_WRITTEN]}…"
