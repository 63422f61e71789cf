"""What was read last, kept: so that many who look cost one reading, and an outage leaves what was known.

A page that may be some seconds old is answered with what there is, while it is read anew behind it. A page that may not
is read for everybody who asks, and what was read stands in for it only while the database is away.
"""

from collections import OrderedDict
from collections.abc import Awaitable, Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import anyio
from anyio.abc import TaskGroup

from shared import clock
from shared.errors import MatinsError
from shared.logs import FailureLog, logger
from shared.masking import plain, text_of

MOST_KEPT: Final = 200
PATIENCE_SECONDS: Final = 5.0
# Who is away is not asked again by everybody who looks.
AGAIN_SECONDS: Final = 2.0
# So much longer than it took to read is it kept at least, so that looking never is what the database does most.
SHARE: Final = 5
_log = logger(__name__)

Read = Callable[[], Awaitable[Any]]


class Unseen(MatinsError):
    """It cannot be read now, and was not before; the message says why."""


@dataclass(frozen=True, slots=True)
class Kept:
    """What was read, and when; `problem` says why it is not newer, or is ''."""

    value: Any
    read_at: datetime
    problem: str = ""

    def of(self, value: Any) -> "Kept":
        """Give something that was made of what was read, as of the same time."""
        return Kept(value, self.read_at, self.problem)


@dataclass(slots=True)
class _Entry:
    """`failed` is why the last reading failed, '' if it did not; `refused` what it said of the question itself.

    `spent` is how long the last one took, whether it failed or not; `done` is set when the one under way is over.
    """

    value: Any = None
    read_at: datetime | None = None
    read: float = float("-inf")
    took: float = 0.0
    failed: str = ""
    refused: MatinsError | None = None
    tried: float = float("-inf")
    spent: float = 0.0
    done: anyio.Event | None = None


@dataclass(slots=True)
class Keeping:
    """Keeps what was read, by name; for one event loop, in which `run` runs for as long as it is asked.

    `is_outage` tells an error that passes by itself from a fault of ours, which is raised to whoever asked.
    """

    is_outage: Callable[[BaseException], bool]
    monotonic: Callable[[], float] = clock.monotonic
    _entries: OrderedDict[str, _Entry] = field(default_factory=OrderedDict)
    _group: TaskGroup | None = None
    _turn: anyio.Lock | None = None
    _failures: FailureLog = field(default_factory=lambda: FailureLog(_log))

    async def run(self) -> None:
        """Read in the background what is asked for, until cancelled."""
        async with anyio.create_task_group() as group:
            self._group, self._turn = group, anyio.Lock()
            try:
                await anyio.Event().wait()
            finally:
                self._group = None

    async def get(self, name: str, read: Read, *, fresh_for: float = 0.0, stale_for: float = 0.0) -> Kept:
        """Give what `read` gives, or gave at most `fresh_for` seconds ago.

        Up to `stale_for` seconds old it is given at once, and read anew behind that. Raises Unseen, and what `read`
        raises of the question itself, a MatinsError.
        """
        entry = self._entry(name)
        age = self.monotonic() - entry.read
        if entry.read_at is not None and age <= max(fresh_for, SHARE * entry.took if fresh_for else 0.0):
            return Kept(entry.value, entry.read_at)
        if fresh_for and self._group is not None:
            self._begin(entry, read)
            if entry.read_at is not None and age <= stale_for:
                return Kept(entry.value, entry.read_at, entry.failed)
            if entry.done is not None:
                with anyio.move_on_after(PATIENCE_SECONDS):
                    await entry.done.wait()
        elif not self._is_away(entry):
            await self._read(entry, read)
        return _told(entry)

    def glimpse(self, name: str, read: Read, *, fresh_for: float, within: float) -> Kept | None:
        """Give what `read` gave last, at once; None before it first did.

        It is read anew behind that once it is `fresh_for` seconds old: what takes long, of which one is read at a time,
        each for at most `within` seconds, and never for more than a sixth of the time. Raises Unseen, and what `read`
        raises of the question itself, a MatinsError, as long as it has given nothing.
        """
        entry = self._entry(name)
        now = self.monotonic()
        if now - entry.read > fresh_for and now - entry.tried > (SHARE + 1) * entry.spent:
            self._begin(entry, read, within=within, turn=self._turn)
        if entry.read_at is None:
            if entry.refused is not None or entry.failed:
                return _told(entry)
            return None
        return Kept(entry.value, entry.read_at, entry.failed)

    def _entry(self, name: str) -> _Entry:
        entry = self._entries.setdefault(name, _Entry())
        self._entries.move_to_end(name)
        while len(self._entries) > MOST_KEPT:
            self._entries.popitem(last=False)
        return entry

    def _is_away(self, entry: _Entry) -> bool:
        return bool(entry.failed) and self.monotonic() - entry.tried < AGAIN_SECONDS

    def _begin(
        self, entry: _Entry, read: Read, *, within: float = PATIENCE_SECONDS, turn: anyio.Lock | None = None
    ) -> None:
        """Begin a reading, unless one is under way; with a `turn`, once that is free."""
        if entry.done is not None or self._is_away(entry) or self._group is None:
            return
        done = entry.done = anyio.Event()

        async def work() -> None:
            entry.refused = None
            try:
                async with turn or nullcontext():
                    await self._read(entry, read, within)
            except MatinsError as error:
                entry.refused = error
            except Exception as error:  # noqa: BLE001 - nobody waits for it who could be told; the page says so
                entry.failed = f"it could not be read: {type(error).__name__}"
                _log.exception("a page could not be read")
            finally:
                entry.done = None
                done.set()

        self._group.start_soon(work)

    async def _read(self, entry: _Entry, read: Read, within: float = PATIENCE_SECONDS) -> None:
        began = entry.tried = self.monotonic()
        try:
            with anyio.fail_after(within):
                value = await read()
        except Exception as error:
            if not self.is_outage(error):
                raise
            entry.failed = _reason(error, within)
            self._failures.failure("the console could not read", error_class=type(error).__name__, reason=entry.failed)
            return
        finally:
            entry.spent = self.monotonic() - began
        entry.value, entry.failed = value, ""
        entry.read, entry.read_at = self.monotonic(), clock.utc_now()
        entry.took = entry.read - began


def _told(entry: _Entry) -> Kept:
    if entry.refused is not None:
        raise entry.refused
    if entry.read_at is None:
        raise Unseen(entry.failed or f"no answer within {PATIENCE_SECONDS:g} s")
    return Kept(entry.value, entry.read_at, entry.failed)


def _reason(error: Exception, within: float) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer within {within:g} s"
    return plain(text_of(error) or type(error).__name__, 300)
