"""A setting whose file may be replaced under a running process: read again every few seconds, so that it can rotate."""

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from shared import clock
from shared.errors import MatinsError
from shared.logs import logger

READ_AGAIN_SECONDS: Final = 5.0
_T = TypeVar("_T")
_log = logger(__name__)


class Rereading(Generic[_T]):
    """What a setting says now; while it cannot be read, what it said before. `problem` says that it cannot, or is None.

    `what` names it in the log, as "the callers".
    """

    def __init__(
        self,
        what: str,
        read: Callable[[], str],
        understand: Callable[[str], _T],
        monotonic: Callable[[], float] = clock.monotonic,
    ) -> None:
        """Take how it is read and understood. Raises FaultySettings or ValueError if it is faulty now."""
        self._what = what
        self._read = read
        self._understand = understand
        self._monotonic = monotonic
        self._value = understand(read())
        self._read_at = monotonic()
        self.problem: str | None = None

    def current(self) -> _T:
        """Give what it says, as of a few seconds ago."""
        if self._monotonic() - self._read_at >= READ_AGAIN_SECONDS:
            self._read_at = self._monotonic()
            try:
                self._value = self._understand(self._read())
            except (MatinsError, OSError, ValueError) as error:
                if self.problem is None:
                    _log.error(f"{self._what} cannot be read", reason=str(error))
                self.problem = f"{self._what} cannot be read; those known before still count"
            else:
                self.problem = None
        return self._value
