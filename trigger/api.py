"""The endpoint for outside schedulers and for what runs elsewhere: two paths to POST to, off unless somebody may call.

It has a thread with an event loop and a few database connections of its own, so that whoever floods it takes nothing
from the trigger's work, and a trigger whose loop is blocked still answers. What is claimed here is nobody's to go on
with: any live trigger takes it over at once, as when an operator fires by hand.

A connection carries one request, which has seconds to arrive. The body is read before anybody is believed, because the
signature is over its bytes; so it is bounded first.
"""

from collections.abc import Awaitable, Callable

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.routing import Route

from shared import clock
from shared.health import Health
from shared.logs import logger
from shared.postgres import Session, is_transient
from shared.start import Prepared
from shared.stopping import Stopping
from trigger.api_calls import Calls
from trigger.api_request import DatabaseClock, Gate, known_callers
from trigger.claim_outcome import Claimant
from trigger.endpoint import Endpoint
from trigger.issuer_keys import IssuerKeys
from trigger.operate import NO_LEASE
from trigger.outside_call import forget

OCCURRENCES_PATH = "/v1/jobs/{job}/occurrences"
CHECK_INS_PATH = "/v1/check-ins/{job}"
DATABASE_CONNECTIONS = 4
TIDY_SECONDS = 60.0
_log = logger(__name__)


class Api:
    """The endpoint; nothing is opened before `serve`."""

    def __init__(self, prepared: Prepared, health: Health, examine: Callable[[Session], Awaitable[None]]) -> None:
        """Take what the trigger was started with; `examine` sees every new connection to the database first."""
        self._settings = prepared.settings
        self._claimant = Claimant(prepared.instance.id, prepared.instance.region, NO_LEASE)
        self._declared = set(prepared.loaded.jobs)
        self._database = prepared.database(DATABASE_CONNECTIONS)
        self._database.examine_new(examine)
        self._endpoint: Endpoint | None = None
        if self.wanted:
            health.part("endpoint", lambda: self._endpoint.problem if self._endpoint else "not open")

    @property
    def wanted(self) -> bool:
        """Whether somebody may call."""
        return bool(self._settings.api_callers)

    @property
    def port(self) -> int:
        """Which port it listens on; 0 while it doesn't."""
        return self._endpoint.port if self._endpoint else 0

    async def serve(self, stopping: Stopping) -> None:
        """Answer until `stopping`, and finish what was begun. Raises OSError when the address can't be listened on."""
        calls = self._calls()
        options = {"timeout_keep_alive": 2}
        self._endpoint = Endpoint(
            "endpoint",
            self._settings.api_address,
            self._database,
            _application(calls),
            lambda: self._tidy(calls),
            options,
        )
        await self._endpoint.serve(stopping)

    async def _tidy(self, calls: Calls) -> None:
        while True:
            calls.report()
            try:
                async with self._database.session() as session:
                    await forget(session)
            except Exception as error:
                if not is_transient(error):
                    raise
            await clock.sleep(TIDY_SECONDS)

    def _calls(self) -> Calls:
        callers = known_callers(lambda: self._settings.secret("api_callers"))
        for caller in callers.current():
            if undeclared := sorted((caller.jobs | caller.check_ins) - self._declared):
                _log.warning("a caller may call for jobs that are not declared", caller=caller.name, jobs=undeclared)
        gate = Gate(callers, IssuerKeys(), DatabaseClock(self._database))
        return Calls(gate, self._database, self._claimant)


def _application(calls: Calls) -> Starlette:
    routes = [
        Route(OCCURRENCES_PATH, calls.occurrences, methods=["POST"]),
        Route(CHECK_INS_PATH, calls.check_ins, methods=["POST"]),
    ]
    application = Starlette(routes=routes, exception_handlers={HTTPException: calls.elsewhere})
    # Behind what ends TLS a redirection would name http://, and who follows it would show a token to everybody.
    application.router.redirect_slashes = False
    return application
