"""Plain functions that outlived their timeout or the drain. A thread cannot be stopped, so what is left is counted.

Each holds memory, and whatever its code holds. The slot is free again at once; but from a certain number on something
is wrong for good, and only a new process is rid of them: the worker is not ready, then drains and ends with an error.
"""

import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anyio
import anyio.to_thread

from shared.errors import MatinsError
from shared.logs import logger
from shared.stopping import Stopping, Wake

UNWELL = 8
AT_MOST = 32
_log = logger(__name__)


class TooManyLeftBehind(MatinsError):
    """Too many plain functions still run past their timeouts, and hold their threads."""


@dataclass(slots=True)
class _Call:
    """One call in a thread."""

    job: str
    begun: bool = False
    over: threading.Event = field(default_factory=threading.Event)


class LeftBehind:
    """The calls of this worker that nobody waits for any more, though they still run."""

    def __init__(self) -> None:
        """Begin with none."""
        self._calls: tuple[_Call, ...] = ()
        self._added = Wake()

    async def run(self, job: str, function: Callable[[Any], Any], call: Any, threads: anyio.CapacityLimiter) -> object:
        """Run a plain function in a thread; when this is cancelled, the thread is left to itself, and counted."""
        kept = _Call(job)

        def in_thread() -> object:
            kept.begun = True
            try:
                return function(call)
            finally:
                kept.over.set()

        try:
            return await anyio.to_thread.run_sync(in_thread, abandon_on_cancel=True, limiter=threads)
        except anyio.get_cancelled_exc_class():
            if kept.begun and not kept.over.is_set():
                self._add(kept)
            raise

    def _add(self, call: _Call) -> None:
        self._calls = (*(one for one in self._calls if not one.over.is_set()), call)
        _log.warning("a plain function was left behind", job=call.job, left_behind=len(self._calls))
        self._added.set()

    def by_job(self) -> Counter[str]:
        """Count the calls that still run, by job; may be asked from any thread."""
        return Counter(call.job for call in self._calls if not call.over.is_set())

    def problem(self) -> str | None:
        """Say what is wrong, once there are too many to be late ones."""
        counts = self.by_job()
        if counts.total() < UNWELL:
            return None
        named = ", ".join(f"{count} of {job}" for job, count in sorted(counts.items()))
        return f"calls that outlived their timeout hold threads: {named}; the worker ends at {AT_MOST}"

    async def watch(self, stopping: Stopping, drained: anyio.Event) -> None:
        """Ask for a drain when there are too many, and raise TooManyLeftBehind behind it; return when stopping."""
        with stopping.waking(self._added):
            while not stopping.requested:
                if self.by_job().total() >= AT_MOST:
                    problem = self.problem()
                    stopping.request("too many plain functions were left behind")
                    await drained.wait()
                    raise TooManyLeftBehind(problem)
                await self._added.wait(60.0)
