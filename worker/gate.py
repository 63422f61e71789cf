"""Who runs beside whom in a worker: most together, and an account that may end its process alone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio


class Gate:
    """Let many pass together, or one alone: who wants to be alone holds back those who come after."""

    def __init__(self) -> None:
        """Begin open."""
        self._changed = anyio.Condition()
        self._together = 0
        self._alone = False
        self._waiting_alone = 0

    def _is_kept(self) -> bool:
        return self._alone or self._waiting_alone > 0

    @asynccontextmanager
    async def together(self) -> AsyncIterator[None]:
        """Pass beside others; wait while one is alone, or waits to be."""
        # Nothing is awaited between the look and the entry, so where nobody is alone no lock is needed.
        if self._is_kept():
            async with self._changed:
                while self._is_kept():
                    await self._changed.wait()
                self._together += 1
        else:
            self._together += 1
        try:
            yield
        finally:
            self._together -= 1
            if self._waiting_alone and not self._together:
                with anyio.CancelScope(shield=True):
                    async with self._changed:
                        self._changed.notify_all()

    @asynccontextmanager
    async def alone(self) -> AsyncIterator[None]:
        """Pass when everybody has left, and keep everybody out."""
        async with self._changed:
            self._waiting_alone += 1
            try:
                while self._alone or self._together:
                    await self._changed.wait()
                self._alone = True
            finally:
                self._waiting_alone -= 1
                self._changed.notify_all()
        try:
            yield
        finally:
            with anyio.CancelScope(shield=True):
                async with self._changed:
                    self._alone = False
                    self._changed.notify_all()
