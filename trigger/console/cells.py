"""One occurrence in a strip: a cell with a letter, a colour's name, and what a screen reader says. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from schemas.occurrence import Identity, format_instant
from shared.declaration import FaultyDeclaration
from shared.errors import DeclarationError
from shared.masking import plain
from shared.schedule_definition import schedule_of

# A state's letter, and what it means; what did not run is a hole.
LETTERS: Final[Mapping[str, tuple[str, str]]] = {
    "succeeded": ("S", "succeeded"),
    "partial": ("P", "partial: some accounts did not succeed"),
    "failed": ("F", "failed"),
    "cancelled": ("X", "cancelled"),
    "running": ("R", "runs"),
    "claimed": ("R", "runs: its accounts are being read"),
    "missed": ("M", "missed: it was not run in time"),
    "skipped": ("K", "skipped by a decision"),
    "coalesced": ("J", "joined into a later one"),
    "expected": ("L", "late: due, and not claimed"),
    "unplanned": ("?", "nobody was there to plan it"),
}
_LONGEST_REASON: Final = 80
HOLES: Final = frozenset({"missed", "skipped", "coalesced", "expected", "unplanned"})


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell; `href` is '' where there is no occurrence to look at."""

    state: str
    letter: str
    told: str
    href: str
    hole: bool


def cell_of(row: Mapping[str, Any]) -> Cell:
    """Make a cell of an occurrence's row: job, scheduled_at, variant, state, reason, total and succeeded."""
    state = row["state"]
    letter, meaning = LETTERS.get(state, ("?", state))
    written = str(Identity(row["job"], row["scheduled_at"], row["variant"]))
    told = f"{format_instant(row['scheduled_at'])} {meaning}"
    if row["total"]:
        told += f", {row['succeeded']} of {row['total']} accounts"
    elif row["reason"]:
        told += f" ({plain(row['reason'], _LONGEST_REASON)})"
    return Cell(state, letter, told, f"/occurrences/{written}", state in HOLES)


def hole_at(scheduled_at: datetime) -> Cell:
    """Make the cell of an instant of which nothing is recorded."""
    letter, meaning = LETTERS["unplanned"]
    return Cell("unplanned", letter, f"{format_instant(scheduled_at)} {meaning}", "", hole=True)


def unplanned(definition: Mapping[str, Any], found: Sequence[Any], now: datetime, most: int) -> list[Cell]:
    """Give the instants of a recorded schedule since the last of the rows: nobody was there to plan them."""
    if not found:
        return []
    try:
        return [hole_at(one) for one in islice(schedule_of(definition).instants(found[-1]["scheduled_at"], now), most)]
    except (DeclarationError, FaultyDeclaration):
        return []
