"""The parts of a service, each of which has to run for as long as the service does: one that dies takes it along."""

from collections.abc import Awaitable, Callable

from anyio.abc import TaskGroup

from shared import clock
from shared.errors import MatinsError
from shared.logs import logger
from shared.stopping import Stopping

_log = logger(__name__)


class PartDied(MatinsError):
    """A part of the service that has to run has ended; `name` is the part's, `at` the monotonic time in seconds."""

    def __init__(self, name: str, reason: str) -> None:
        """Take the part's name and why it ended."""
        super().__init__(f"{name}: {reason}")
        self.name = name
        self.reason = reason
        self.at = clock.monotonic()


def part_died(stopping: Stopping, name: str, error: Exception) -> PartDied:
    """Say that a part has died of `error`, have the service stop, and give what is to be raised."""
    _log.exception("a part died", part=name, error_class=type(error).__name__, exc_info=error)
    stopping.request(f"{name} died")
    return PartDied(name, f"{type(error).__name__}: {error}")


def start_part(group: TaskGroup, stopping: Stopping, name: str, run: Callable[[], Awaitable[None]]) -> None:
    """Start a part that has to run until `stopping`: if it raises or returns before, the service ends, naming it."""

    async def part() -> None:
        try:
            await run()
        except Exception as error:
            raise part_died(stopping, name, error) from error
        if not stopping.requested:
            stopping.request(f"{name} ended")
            raise PartDied(name, "it ended although nobody had asked it to")

    group.start_soon(part, name=name)
