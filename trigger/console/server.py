"""The console as a part of a process: its address, its own thread and connections, and what it keeps."""

from collections.abc import Awaitable, Callable
from typing import Final

from shared.postgres import Database, Session, is_transient
from shared.setting_values import OFF
from shared.settings import Settings
from shared.stopping import Stopping
from trigger.console.application import application
from trigger.console.keeping import Keeping
from trigger.console.place import Place
from trigger.endpoint import Endpoint

DATABASE_CONNECTIONS: Final = 4
_IDLE_SECONDS: Final = 30


def is_wanted(settings: Settings) -> bool:
    """Tell whether a process with these settings has a console."""
    return settings.console_address != OFF


class Console:
    """The console; nothing is opened before `serve`."""

    def __init__(self, settings: Settings, database: Database, instance: str, host: str) -> None:
        """Take what it reads from; `database` is its own. `instance` and `host` are of its process."""
        keeping = Keeping(is_transient)
        options = {"timeout_keep_alive": _IDLE_SECONDS}
        made = application(Place(settings, database, keeping, instance, host))
        self._endpoint = Endpoint("console", settings.console_address, database, made, keeping.run, options)

    @classmethod
    def beside(
        cls,
        settings: Settings,
        database: Database,
        instance: str,
        host: str,
        examine: Callable[[Session], Awaitable[None]],
    ) -> "Console":
        """Make the console of a trigger, whose `examine` sees every new connection to the database first."""
        database.examine_new(examine)
        return cls(settings, database, instance, host)

    @property
    def problem(self) -> str | None:
        """Why nobody is answered; None while everybody is."""
        return self._endpoint.problem

    @property
    def port(self) -> int:
        """Which port it listens on; 0 while it doesn't."""
        return self._endpoint.port

    async def serve(self, stopping: Stopping) -> None:
        """Answer until `stopping`. Raises OSError when the address can't be listened on."""
        await self._endpoint.serve(stopping)
