"""How a faulty declaration is told: all of its faults at once, each with its place and the valid values.

A declaration that is written on its own raises at once. While a module of jobs is being loaded the faults are kept on
the object instead: one pass over the modules names every fault, and a faulty job can be told from its neighbours.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

from shared.errors import MatinsError

_collecting: ContextVar[bool] = ContextVar("collecting_declaration_faults", default=False)


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing wrong: where, what, and what would be right."""

    place: str
    problem: str
    valid: str = ""

    def __str__(self) -> str:
        """Give what an author reads: one line, and behind it, where there is something to paste, the block."""
        return f"{self.place}: {self.problem}" + (f"; valid: {self.valid}" if self.valid else "")

    def within(self, place: str) -> "Fault":
        """Name the place that holds this fault's place; a place that says so itself is not named twice."""
        inner = self.place
        if inner == place or inner.startswith(f"{place}: "):
            return self
        return replace(self, place=f"{place}: {inner.removeprefix(f'{place} ')}")


class FaultyDeclaration(MatinsError):
    """A declaration cannot be used; its faults are listed."""

    def __init__(self, faults: tuple[Fault, ...]) -> None:
        """Compose the message from all faults, a line each."""
        super().__init__("\n".join(str(fault) for fault in faults))
        self.faults = faults


@contextmanager
def collecting_faults() -> Iterator[None]:
    """Keep faults on the objects instead of raising, for as long as modules of jobs are loaded."""
    token = _collecting.set(True)
    try:
        yield
    finally:
        _collecting.reset(token)


def refuse(faults: tuple[Fault, ...]) -> None:
    """Raise FaultyDeclaration for any fault, unless faults are being collected."""
    if faults and not _collecting.get():
        raise FaultyDeclaration(faults)


def keep_faults(declared: Any, *faults: tuple[Fault, ...]) -> None:
    """Keep the faults found on a declaration, and refuse it unless faults are being collected."""
    found = tuple(fault for group in faults for fault in group)
    object.__setattr__(declared, "faults", found)
    refuse(found)
