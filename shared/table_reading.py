"""Reading a table of a TOML setting: every fault with its place, and never the faulty value. Pure."""

from collections.abc import Callable
from typing import Any


class TableReading:
    """One table that is being read; what is wrong with it goes to `faults`, with its place."""

    def __init__(self, place: str, table: Any, faults: list[str]) -> None:
        self.place = place
        self.table = dict(table) if isinstance(table, dict) else {}
        self.given: set[str] = set()
        self._faults = faults
        if not isinstance(table, dict):
            self.fault("valid is a table")

    def fault(self, problem: str) -> None:
        """Note a fault of this table."""
        self._faults.append(f"{self.place}: {problem}")

    def take(self, name: str, read: Callable[[Any], Any], valid: str, default: Any) -> Any:
        """Give a value, or the default where there is none or a faulty one, of which nothing is said but the place."""
        if name not in self.table:
            return default
        self.given.add(name)
        try:
            return read(self.table.pop(name))
        except (ValueError, TypeError):
            self.fault(f"{name}: valid is {valid}")
            return default

    def refuse_others(self, known: str) -> None:
        """Note a fault for each name that was not taken; `known` lists what there is."""
        for name in self.table:
            self.fault(f"{str(name)[:80]!r} is unknown; known are {known}")
