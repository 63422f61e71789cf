"""What a person reads: tables, instants in UTC and in a chosen zone, and the progress of long work.

On a terminal rich draws, row below row where a table is too wide for it; elsewhere the same is plain text, a line
for each row, for a log or for `grep`.
"""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from shared import clock
from shared.durations import show_seconds
from shared.masking import plain
from shared.zones import UTC_NAME, find_zone

__all__ = ["Advance", "Times", "print_line", "print_table", "progress", "show_seconds", "show_value"]

QUIET_SECONDS = 10.0
LONGEST_CELL = 200
_GAP = 3  # columns of the terminal between two of a table
_STYLES = {
    "succeeded": "green",
    "ok": "green",
    "partial": "yellow",
    "warn": "yellow",
    "late": "yellow",
    "failed": "red",
    "fail": "red",
    "dead": "red",
    "missed": "red",
    "overdue": "red",
    "running": "cyan",
    "claimed": "cyan",
    "expected": "dim",
    "skipped": "dim",
    "coalesced": "dim",
}

Advance = Callable[[int, int, str], None]


@dataclass(frozen=True, slots=True)
class Times:
    """Writes instants in UTC and, when a zone is chosen, in that zone beside it."""

    zone: str = UTC_NAME

    def __post_init__(self) -> None:
        """Refuse an unknown zone. Raises DeclarationError."""
        find_zone(self.zone)

    def show(self, instant: datetime | None) -> str:
        """Write an aware instant, `-` for none: `2026-08-25 02:00:00Z`, and `(04:00:00 CEST)` for a zone's."""
        if instant is None:
            return "-"
        utc = instant.astimezone(UTC)
        written = f"{utc:%Y-%m-%d %H:%M:%S}Z"
        if self.zone == UTC_NAME:
            return written
        local = instant.astimezone(find_zone(self.zone))
        form = "%H:%M:%S %Z" if local.date() == utc.date() else "%Y-%m-%d %H:%M:%S %Z"
        return f"{written} ({local.strftime(form)})"

    def local(self, instant: datetime) -> str:
        """Write an aware instant as the zone's clocks show it: `2026-08-25 04:00 CEST`; its seconds if any."""
        local = instant.astimezone(find_zone(self.zone))
        return local.strftime("%Y-%m-%d %H:%M %Z" if local.second == 0 else "%Y-%m-%d %H:%M:%S %Z")


def show_value(value: object) -> str:
    """Write a cell: `-` for nothing, one line, no secrets or control characters."""
    if value is None or value == "":
        return "-"
    return plain(str(value).replace("\n", " "), LONGEST_CELL)


def print_line(text: str = "", style: str = "") -> None:
    """Print a line to standard output; `style` shows on a terminal only."""
    Console(file=sys.stdout, soft_wrap=True, highlight=False).print(Text(plain(text), style))


def print_table(title: str, headings: Sequence[str], rows: Sequence[Sequence[object]], *, empty: str = "none") -> None:
    """Print rows under headings; a table without rows says `empty`."""
    cells = [[show_value(value) for value in row] for row in rows]
    console = Console(file=sys.stdout, highlight=False)
    if title:
        print_line(title, "bold")
    if not cells:
        print_line(f"  {empty}")
    elif console.is_terminal:
        console.print(_drawn(headings, cells) if _fits(headings, cells, console.width) else _stacked(headings, cells))
    else:
        for line in _aligned([list(headings), *cells]):
            sys.stdout.write(f"  {line}\n")
    if title:
        print_line()


def _fits(headings: Sequence[str], cells: list[list[str]], width: int) -> bool:
    """Tell whether a drawn table breaks no word: a name that is cut in two cannot be copied into a command."""
    columns = zip(headings, *cells, strict=True)
    words = sum(max(len(word) for value in column for word in value.split() or [""]) for column in columns)
    return words + _GAP * len(headings) <= width


def _stacked(headings: Sequence[str], cells: list[list[str]]) -> Table:
    """Draw each row below the one before, a line for each cell that says something."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for row in cells:
        for heading, value in zip(headings, row, strict=True):
            if value != "-":
                table.add_row(Text(heading, "bold"), Text(value, _STYLES.get(value, "")))
        table.add_row()
    return table


def _drawn(headings: Sequence[str], cells: list[list[str]]) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for number, heading in enumerate(headings):
        table.add_column(heading, overflow="fold", no_wrap=all(" " not in row[number] for row in cells))
    for row in cells:
        table.add_row(*(Text(value, _STYLES.get(value, "")) for value in row))
    return table


def _aligned(lines: list[list[str]]) -> Iterator[str]:
    widths = [max(len(value) for value in column) for column in zip(*lines, strict=True)]
    for line in lines:
        yield "  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip()


@contextmanager
def progress(title: str) -> Iterator[Advance]:
    """Show on standard error how far long work is: call the result with what is done, the total and a note.

    A terminal gets a bar; anything else a line at each new note, and every few seconds.
    """
    console = Console(stderr=True, highlight=False)
    if not console.is_terminal:
        yield _Lines(title)
        return
    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(plain(title), total=None, note="")
        yield lambda done, total, note: bar.update(task, completed=done, total=total or None, note=plain(note))


class _Lines:
    """Progress where no bar can be drawn."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._note = ""
        self._next_at = 0.0

    def __call__(self, done: int, total: int, note: str) -> None:
        now = clock.monotonic()
        if note == self._note and now < self._next_at:
            return
        self._note, self._next_at = note, now + QUIET_SECONDS
        sys.stderr.write(plain(f"{self._title}: {done} of {total} accounts, {note}") + "\n")
        sys.stderr.flush()
