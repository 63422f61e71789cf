"""The console as a part of a process: its address, its own thread and connections, and what it keeps."""

from typing import Final

import anyio

from shared import clock
from shared.console_access import Access, read_access
from shared.postgres import Database, is_transient
from shared.rereading import Rereading
from shared.setting_values import OFF
from shared.settings import Settings
from shared.stopping import Stopping
from trigger.api_request import DatabaseClock
from trigger.console.admission import Admission
from trigger.console.application import application
from trigger.console.keeping import Keeping
from trigger.console.place import Place
from trigger.console.provider import Provider
from trigger.console.sessions import Sessions
from trigger.console.signing_in import SigningIn
from trigger.endpoint import Endpoint
from trigger.issuer_keys import IssuerKeys

DATABASE_CONNECTIONS: Final = 4
TIDY_SECONDS: Final = 60.0
_IDLE_SECONDS: Final = 30


def is_wanted(settings: Settings) -> bool:
    """Tell whether a process with these settings has a console."""
    return settings.console_address != OFF


class Console:
    """The console; nothing is opened before `serve`."""

    def __init__(self, settings: Settings, database: Database, instance: str, host: str) -> None:
        """Take what it reads from; `database` is its own. `instance` and `host` are of its process.

        Raises FaultySettings or ValueError where who may do what cannot be read.
        """
        self._keeping = Keeping(is_transient)
        admission = _admission(settings, database, instance) if settings.console_access else None
        place = Place(settings, database, self._keeping, instance, host, admission)
        self._signing_in = None
        if admission is not None:
            self._signing_in = SigningIn(place, admission, Provider(IssuerKeys(), admission.database_clock))
        options = {"timeout_keep_alive": _IDLE_SECONDS}
        made = application(place, self._signing_in)
        self._endpoint = Endpoint("console", settings.console_address, database, made, self._beside, options)

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

    async def _beside(self) -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(self._keeping.run)
            if self._signing_in is not None:
                group.start_soon(_tidy, self._signing_in)


async def _tidy(signing_in: SigningIn) -> None:
    """Delete, now and then, what is over."""
    while True:
        try:
            await signing_in.admission.tidy()
            await signing_in.tidy()
        except Exception as error:
            if not is_transient(error):
                raise
        await clock.sleep(TIDY_SECONDS)


def _admission(settings: Settings, database: Database, instance: str) -> Admission:
    access = Rereading("who may use the console", lambda: settings.secret("console_access"), _some_access)
    return Admission(access, Sessions(database, instance), DatabaseClock(database))


def _some_access(content: str) -> Access:
    """Read who may do what. Raises ValueError, also for what has become empty: it would let everybody look."""
    access = read_access(content)
    if access is None:
        raise ValueError("it is empty: start again without it for a console that only shows")
    return access
