"""One finding of `doctor`: how it stands with one thing, and what to do about it."""

from dataclasses import dataclass
from typing import Literal

from shared.masking import mask

Level = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A check's name, `ok`, `warn` or `fail`, what was found, and the way out ('' when all is well)."""

    check: str
    level: Level
    found: str
    advice: str = ""


def ok(check: str, found: str) -> Finding:
    """Say that it is well."""
    return Finding(check, "ok", mask(found))


def warn(check: str, found: str, advice: str) -> Finding:
    """Say what will hurt some day."""
    return Finding(check, "warn", mask(found), advice)


def fail(check: str, found: str, advice: str) -> Finding:
    """Say what does not work."""
    return Finding(check, "fail", mask(found), advice)
