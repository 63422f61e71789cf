"""Asking the parts of a service to drain, and calling a loop to run now: both for the event loop's own thread only."""

import contextlib
from collections.abc import Iterator

import anyio


class Wake:
    """A call to run now. Calls that come before somebody waits count as one."""

    def __init__(self) -> None:
        self._called = anyio.Event()

    def set(self) -> None:
        """Call."""
        self._called.set()

    def clear(self) -> None:
        """Forget a call that nobody has answered."""
        self._called = anyio.Event()

    async def wait(self, seconds: float) -> None:
        """Return at a call, or after `seconds`."""
        with anyio.move_on_after(seconds):
            await self._called.wait()
        self.clear()


class Stopping:
    """Whether the service has been asked to drain."""

    def __init__(self) -> None:
        self.reason = ""
        self._requested = anyio.Event()
        self._wakes: set[Wake] = set()
        self._scopes: set[anyio.CancelScope] = set()

    @property
    def requested(self) -> bool:
        """Whether no new work may begin."""
        return self._requested.is_set()

    def request(self, reason: str) -> None:
        """Ask for a drain; the first reason stays."""
        if not self.requested:
            self.reason = reason
            self._requested.set()
            for wake in self._wakes:
                wake.set()
            for scope in self._scopes:
                scope.cancel()

    async def wait(self) -> None:
        """Return when a drain is asked for."""
        await self._requested.wait()

    @contextlib.contextmanager
    def waking(self, wake: Wake) -> Iterator[None]:
        """Have a request call `wake` while the block lasts."""
        self._wakes.add(wake)
        try:
            yield
        finally:
            self._wakes.discard(wake)

    @contextlib.contextmanager
    def cutting_off(self) -> Iterator[None]:
        """End the block as soon as a drain is asked for, whatever it waits for: nothing in it needs to be finished."""
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                if self.requested:
                    scope.cancel()
                yield
            finally:
                self._scopes.discard(scope)
