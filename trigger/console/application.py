"""The console's routes, and what every answer of it has: headers, the keeping, the pages that say what is wrong."""

from collections.abc import Awaitable, Callable
from importlib import resources
from typing import Any, Final

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from shared import clock
from shared.logs import logger
from shared.terminal import Refused
from trigger.console import alerts, tonight
from trigger.console.asking import Unanswerable
from trigger.console.guarding import Guarded
from trigger.console.keeping import Kept, Unseen
from trigger.console.place import Asked, Page, Place
from trigger.console.rendering import render

PAGES: Final = (tonight.PAGE, alerts.LIST, alerts.ONE)
_log = logger(__name__)
_TITLES: Final = {400: "It cannot be read", 404: "There is no such thing", 405: "Not so", 500: "Something failed"}


def application(place: Place) -> Starlette:
    """Make the console's application."""
    static = resources.files(__package__).joinpath("static")
    routes: list[Any] = [Route(page.path, _shown(place, page), methods=["GET"]) for page in PAGES]
    routes.append(Mount("/static", StaticFiles(directory=str(static))))

    async def refused(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 500
        return problem(place, request, status, "")

    made = Starlette(routes=routes, exception_handlers={HTTPException: refused, 500: refused})
    made.add_middleware(Guarded)
    return made


def _shown(place: Place, page: Page) -> Callable[[Request], Awaitable[Response]]:
    async def show(request: Request) -> Response:
        query = {name: value for name, value in request.query_params.items() if name in page.queries}
        asked = Asked(place, request.path_params, query)
        name = f"{request.url.path}?{'&'.join(f'{one}={query[one]}' for one in sorted(query))}"
        try:
            kept = await place.keeping.get(
                name, lambda: page.read(asked), fresh_for=page.fresh_for, stale_for=page.stale_for
            )
        except Unanswerable as error:
            return problem(place, request, 400, str(error))
        except Refused as error:
            return problem(place, request, 404, str(error))
        except Unseen as error:
            return _unseen(place, request, page, str(error))
        return _answer(render(page.template, _around(place, page.section, kept) | kept.value))

    return show


def _around(place: Place, section: str, kept: Kept | None) -> dict[str, Any]:
    """Give what every page's frame needs."""
    return {
        "environment": place.settings.environment,
        "section": section,
        "read_at": kept.read_at if kept else None,
        "problem": kept.problem if kept else "",
        "now": clock.utc_now(),
    }


def problem(place: Place, request: Request, status: int, told: str) -> Response:
    """Say in a page why there is nothing to show."""
    values = {"title": _TITLES.get(status, "Not so"), "told": told, "path": request.url.path}
    return _answer(render("problem.html", _around(place, "", None) | values), status)


def _unseen(place: Place, request: Request, page: Page, why: str) -> Response:
    values = {"title": "The database does not answer", "told": why, "path": request.url.path}
    return _answer(render("problem.html", _around(place, page.section, None) | values), 503)


def _answer(html: str, status: int = 200) -> Response:
    return Response(html, status, {"Cache-Control": "no-store"}, "text/html")
