"""The console's routes, and what every answer of it has: headers, the keeping, the pages that say what is wrong."""

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any, Final
from urllib.parse import urlencode

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp

from shared.terminal import Refused
from trigger.console import account, accounts, alerts, audit, fleet, job, occurrence, tonight
from trigger.console.acting import act_routes
from trigger.console.answering import Visit, not_admitted, page, problem
from trigger.console.api.serving import json_problem, json_routes
from trigger.console.asking import Unanswerable
from trigger.console.guarding import Guarded
from trigger.console.keeping import Unseen
from trigger.console.person import NotAdmitted
from trigger.console.place import Asked, Page, Place
from trigger.console.signing_in import SigningIn
from trigger.console.ways import BACK, BEGIN, SIGN_IN, SIGN_OUT, is_beneath

PAGES: Final = (
    tonight.PAGE,
    job.PAGE,
    occurrence.PAGE,
    accounts.PAGE,
    account.PAGE,
    alerts.LIST,
    alerts.ONE,
    audit.PAGE,
    fleet.PAGE,
)


def application(place: Place, signing_in: SigningIn | None = None) -> ASGIApp:
    """Make the console's application; with `signing_in` nobody looks who is not let in."""
    static = resources.files(__package__).joinpath("static")
    routes: list[Any] = [Route(one.path, _shown(place, one), methods=["GET"]) for one in PAGES]
    routes += _sign_in_routes(signing_in) if signing_in else []
    routes += json_routes(place)
    routes += act_routes(place, place.admission) if place.admission else []
    routes.append(Mount("/static", StaticFiles(directory=str(static))))

    async def refused(request: Request, error: Exception) -> Response:
        if is_beneath(request.url.path):
            return json_problem(error)
        status = error.status_code if isinstance(error, HTTPException) else 500
        return problem(Visit(place, request), status, "")

    made = Starlette(routes=routes, exception_handlers={HTTPException: refused, 500: refused})
    # Behind what ends TLS a redirection would name http://.
    made.router.redirect_slashes = False
    # Around everything: what breaks is answered with the same headers.
    return Guarded(made, place.admission.access.current if place.admission else None)


def _sign_in_routes(signing_in: SigningIn) -> list[Route]:
    return [
        Route(SIGN_IN, signing_in.show, methods=["GET"]),
        Route(BEGIN, signing_in.begin, methods=["GET"]),
        Route(BACK, signing_in.back, methods=["GET"]),
        Route(SIGN_OUT, signing_in.out, methods=["POST"]),
    ]


def _shown(place: Place, shown: Page) -> Callable[[Request], Awaitable[Response]]:
    async def show(request: Request) -> Response:
        visit = Visit(place, request)
        try:
            visit = await visited(place, request)
            query = {name: value for name, value in request.query_params.items() if name in shown.queries}
            asked = Asked(place, request.path_params, query)
            name = f"{request.url.path}?{urlencode(sorted(query.items()))}"
            kept = await place.keeping.get(
                name, lambda: shown.read(asked), fresh_for=shown.fresh_for, stale_for=shown.stale_for
            )
        except NotAdmitted as error:
            return not_admitted(visit, error)
        except Unanswerable as error:
            return problem(visit, 400, str(error))
        except Refused as error:
            return problem(visit, 404, str(error))
        except Unseen as error:
            return problem(visit, 503, str(error), section=shown.section)
        return page(visit, shown.template, kept.value, section=shown.section, kept=kept)

    return show


async def visited(place: Place, request: Request) -> Visit:
    """Give who looks, where people sign in. Raises NotAdmitted."""
    return Visit(place, request, await place.admission.admit(request) if place.admission else None)
