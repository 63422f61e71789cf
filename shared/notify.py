"""Telling people, as the part of a service that does it: a loop for each channel, so that none waits for another.

Which channels there are is read at the start; what they are is read again every few seconds, so that keys and addresses
can be replaced in the file. How a receiver fares touches nothing but its own channel.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from anyio.abc import TaskGroup

from shared import clock
from shared.channels import Channel, Ping, read_channels
from shared.deliver import AT_ONCE, Delivering, deliver_pass
from shared.health import Health
from shared.lifecycle import start_part
from shared.logs import FailureLog, logger
from shared.loop import every
from shared.ping_watch import ping_watch_pass
from shared.postgres import Database, is_transient
from shared.rereading import Rereading
from shared.start import Prepared
from shared.stopping import Stopping, Wake

DELIVER_INTERVAL: Final = timedelta(seconds=5)
_log = logger(__name__)


class KnownChannels:
    """The channels as their setting has them now; while it cannot be read, as it had them before."""

    def __init__(self, read: Callable[[], str], monotonic: Callable[[], float] = clock.monotonic) -> None:
        """Take how the setting is read. Raises FaultySettings or ValueError if it is faulty now."""
        self._known = Rereading("the channels", read, _by_name, monotonic)

    @property
    def names(self) -> list[str]:
        """The names of the channels."""
        return list(self._known.current())

    def current(self, name: str) -> Channel | None:
        """Give a channel; None when it is no longer declared."""
        return self._known.current().get(name)


def _by_name(content: str) -> dict[str, Channel]:
    return {one.name: one for one in read_channels(content)}


@dataclass(slots=True)
class Notifying:
    """One process's part in telling people."""

    prepared: Prepared
    database: Database
    channels: KnownChannels = field(init=False)
    failures: FailureLog = field(init=False)

    def __post_init__(self) -> None:
        """Read the channels. Raises FaultySettings."""
        self.channels = KnownChannels(lambda: self.prepared.settings.secret("channels"))
        self.failures = FailureLog(_log)

    def start(self, group: TaskGroup, stopping: Stopping, health: Health) -> None:
        """Start a loop for each channel."""
        for name in self.channels.names:
            start_part(group, stopping, f"notify {name}", self._loop(name, stopping, health))

    def _loop(self, name: str, stopping: Stopping, health: Health) -> Callable[[], Awaitable[None]]:
        wake = Wake()

        async def run_pass() -> None:
            if await self.notify_pass(name) == AT_ONCE:
                wake.set()

        async def run() -> None:
            await every(
                f"notify {name}",
                min(DELIVER_INTERVAL, self.prepared.settings.watch_interval),
                run_pass,
                stopping,
                health=health,
                transient=is_transient,
                wake=wake,
            )

        return run

    async def notify_pass(self, name: str) -> int:
        """Deliver what is due through a channel; give how many messages that were."""
        channel = self.channels.current(name)
        self.failures.report()
        if channel is None:
            return 0
        settings, instance = self.prepared.settings, self.prepared.instance
        if isinstance(channel.target, Ping) and not channel.target.job:
            outcome = await ping_watch_pass(
                self.database, channel, channel.target, settings.environment, settings.watch_interval
            )
            if outcome is not None and not outcome.delivered:
                self.failures.failure("a ping was not delivered", error_class=name, reason=outcome.error)
            return 0
        return await deliver_pass(Delivering(self.database, channel, settings.environment, instance.id, self.failures))
