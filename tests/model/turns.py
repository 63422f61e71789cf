"""Who goes next: every statement, publish and acknowledgement waits for its turn, and the seed gives the turns out.

Between two turns nothing runs but what the last one has set free. So one seed is one interleaving, whatever the machine
is busy with; a statement that waits for a lock is seen to wait, and the others go on.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.model.process import Process

PROCESS: ContextVar["Process"] = ContextVar("PROCESS")
# A statement that takes longer is asked after: it may wait for a lock.
PATIENCE_SECONDS = 0.003
STUCK_SECONDS = 20.0
WAITING_FOR_LOCKS = "select pid from pg_locks where not granted"


class Killed(BaseException):
    """What a dead process finds wherever it turns: no code of the product may take it for an error of its own."""


@dataclass(eq=False, slots=True)
class Line:
    """One task of a process: the last step that it took, and the step that it is about to take."""

    process: "Process"
    number: int
    last: str = "begin"
    intent: str = "begin"


@dataclass(eq=False, slots=True)
class Turn:
    """A task that waits to take a step. `idle` begins a pass that need not be; `ready` says whether it could begin."""

    line: Line
    step: str
    idle: bool
    ready: Callable[[], bool]
    released: "asyncio.Future[None]"

    @property
    def process(self) -> "Process":
        """Whose step it is."""
        return self.line.process

    @property
    def order(self) -> tuple[str, int, str]:
        """A total order that does not depend on the machine."""
        return self.process.name, self.line.number, self.step


@dataclass(eq=False, slots=True)
class Turns:
    """The turns that are waited for, and what is at the server now. `control` looks past the product."""

    control: Any
    waiting: dict[Turn, None] = field(default_factory=dict)
    flying: dict[object, int | None] = field(default_factory=dict)
    landed: asyncio.Event = field(default_factory=asyncio.Event)
    blocked: set[int] = field(default_factory=set)
    lines: dict["asyncio.Task[Any]", Line] = field(default_factory=dict)

    def line(self) -> Line:
        """Give the line of the running task."""
        task = asyncio.current_task()
        assert task is not None
        if task not in self.lines:
            process = PROCESS.get()
            process.lines += 1
            self.lines[task] = Line(process, process.lines)
        return self.lines[task]

    async def take(self, step: str, *, idle: bool = False, ready: Callable[[], bool] = lambda: True) -> Line:
        """Wait for a turn. Raises Killed when the process dies first."""
        line = self.line()
        line.process.check()
        turn = Turn(line, step, idle, ready, asyncio.get_running_loop().create_future())
        self.waiting[turn] = None
        try:
            await turn.released
        finally:
            self.waiting.pop(turn, None)
        line.process.check()
        return line

    @contextmanager
    def flight(self, pid: int | None = None) -> Iterator[None]:
        """Say that something is under way to the server and back; `pid` may be seen to wait for a lock."""
        mark = object()
        self.flying[mark] = pid
        try:
            yield
        finally:
            del self.flying[mark]
            self.blocked.discard(pid or 0)
            self.landed.set()

    async def quiesce(self) -> None:
        """Return when nothing can run on without a turn, or without a lock that another holds."""
        loop: Any = asyncio.get_running_loop()
        ends = loop.time() + STUCK_SECONDS
        while True:
            await asyncio.sleep(0)
            while loop._ready:  # noqa: SLF001, ASYNC110 - no other way to see that no task can run on
                await asyncio.sleep(0)
            if not self.flying:
                return
            if set(self.flying.values()) <= self.blocked and set(self.flying.values()) <= await self._locked():
                return
            self.landed.clear()
            try:
                await asyncio.wait_for(self.landed.wait(), PATIENCE_SECONDS)
            except TimeoutError:
                self.blocked = await self._locked()
            if loop.time() > ends:
                problem = f"what was released does not come back: {self.flying}"
                raise RuntimeError(problem)

    async def _locked(self) -> set[int]:
        return {row["pid"] for row in await self.control.fetch(WAITING_FOR_LOCKS)}

    def forget(self) -> None:
        """Drop the lines of tasks that are over."""
        for task in [task for task in self.lines if task.done()]:
            del self.lines[task]
