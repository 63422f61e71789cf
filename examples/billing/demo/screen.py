"""What the demo says: with colours and a live display on a terminal, plain lines elsewhere."""

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from shared import clock
from shared.errors import MatinsError

LOOK_SECONDS = 0.25
LINE_SECONDS = 2.0


class DemoFailed(MatinsError):
    """Something that must happen in the demo did not."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that must hold, whether it does, and what was found."""

    text: str
    passed: bool
    found: str = ""


class Screen:
    """Writes to standard output."""

    def __init__(self) -> None:
        self._console = Console(highlight=False, emoji=False)
        self.failed: list[Check] = []

    def heading(self, text: str) -> None:
        """Begin a part."""
        self._console.print()
        self._console.print(Text(text, "bold cyan"))

    def say(self, text: str, style: str = "") -> None:
        """Write a sentence or more."""
        self._console.print(Text(f"  {text}", style), soft_wrap=not self._console.is_terminal)

    def fact(self, name: str, value: str) -> None:
        """Write a name and what belongs to it."""
        self._console.print(Text.assemble((f"  {name:<12}", "dim"), value), soft_wrap=True)

    def incident(self, text: str) -> None:
        """Write what the demo breaks."""
        self._console.print(Text(f"  {text}", "bold red"), soft_wrap=not self._console.is_terminal)

    def check(self, check: Check) -> None:
        """Write a check's outcome, and keep it if it failed."""
        mark = ("  ok      ", "bold green") if check.passed else ("  FAILED  ", "bold red")
        found = f"  ({check.found})" if check.found else ""
        self._console.print(Text.assemble(mark, check.text, (found, "dim")), soft_wrap=True)
        if not check.passed:
            self.failed.append(check)

    @contextmanager
    def progress(self, names: Mapping[str, int]) -> Iterator[Callable[[str, int, str], None]]:
        """Show how far each of `names` has got of its number; give a function of name, number done and remark."""
        if not self._console.is_terminal:
            yield self._lines(names)
            return
        columns = (
            TextColumn("  {task.description:<13}"),
            BarColumn(),
            TextColumn("{task.completed:>6} of {task.total}"),
            TextColumn("{task.fields[remark]}"),
            TimeElapsedColumn(),
        )
        with Progress(*columns, console=self._console, transient=False) as shown:
            tasks = {name: shown.add_task(name, total=total, remark="") for name, total in names.items()}
            yield lambda name, done, remark: shown.update(tasks[name], completed=done, remark=remark)

    def _lines(self, names: Mapping[str, int]) -> Callable[[str, int, str], None]:
        told = dict.fromkeys(names, 0.0)

        def tell(name: str, done: int, remark: str) -> None:
            if clock.monotonic() - told[name] > LINE_SECONDS or done == names[name]:
                if told[name] != float("inf"):
                    self.say(f"{name:<13} {done:>6} of {names[name]}  {remark}")
                told[name] = float("inf") if done == names[name] else clock.monotonic()

        return tell


async def until(what: str, look: Callable[[], Awaitable[object]], seconds: float) -> None:
    """Look until something true is seen. Raises DemoFailed after `seconds`."""
    deadline = clock.monotonic() + seconds
    while not await look():
        if clock.monotonic() > deadline:
            raise DemoFailed(f"waited {seconds:g} s in vain: {what}")
        await clock.sleep(LOOK_SECONDS / 5)
