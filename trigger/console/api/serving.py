"""Answering the JSON: who asks is let in as on the pages, what is asked is read, and what is wrong is a problem."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import anyio
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from shared import clock
from shared.masking import plain, text_of
from shared.terminal import Refused
from trigger.console.acting import ACTS
from trigger.console.api.acting import acted
from trigger.console.api.answers import problem, values
from trigger.console.api.parameters import read_query
from trigger.console.api.route import Question, Read
from trigger.console.api.table import READS
from trigger.console.asking import Unanswerable
from trigger.console.keeping import PATIENCE_SECONDS, Kept, Unseen
from trigger.console.person import NotAdmitted
from trigger.console.place import Place
from trigger.console.ways import PREFIX

# What is kept has its own patience.
LONGEST_SECONDS: Final = 2 * PATIENCE_SECONDS
METHOD: Final = 405
Answer = Callable[[Request], Awaitable[Response]]


def json_routes(place: Place) -> list[Route]:
    """Give a route for each path, with its question and its act."""
    answers: dict[str, dict[str, Answer]] = {}
    for one in READS:
        answers.setdefault(PREFIX + one.path, {})["GET"] = _answered(place, _question(one))
    for act in ACTS:
        answers.setdefault(PREFIX + act.path, {})["POST"] = acted(place, act)
    return [_route(path, of) for path, of in answers.items()]


def _route(path: str, answers: Mapping[str, Answer]) -> Route:
    """Make one route of what a path has, so that `Allow` names all of it."""

    async def answer(request: Request) -> Response:
        return await answers["POST" if request.method == "POST" else "GET"](request)

    return Route(path, answer, methods=list(answers))


def json_problem(error: Exception) -> Response:
    """Answer what no route did, or what has failed."""
    if not isinstance(error, HTTPException):
        return problem(500)
    allowed = (error.headers or {}).get("Allow", "")
    told = f"valid are {allowed}" if error.status_code == METHOD else ""
    return problem(error.status_code, told, error.headers)


def _question(one: Read) -> Callable[[Place, Request], Awaitable[Response]]:
    async def answer(place: Place, request: Request) -> Response:
        admitted = await place.admission.admit(request) if place.admission else None
        path = {name: _seen(str(value)) for name, value in request.path_params.items()}
        query = read_query(one.parameters, request.query_params.multi_items())
        with anyio.fail_after(LONGEST_SECONDS):
            found = await one.read(Question(place, {**path, **query}, admitted))
        if not isinstance(found, Kept):
            return values(found)
        if found.problem:
            raise Unseen(found.problem)
        return values(found.value, (clock.utc_now() - found.read_at).total_seconds())

    return answer


def _answered(place: Place, answer: Callable[[Place, Request], Awaitable[Response]]) -> Answer:
    """Have what cannot be answered told as a problem."""

    async def answered(request: Request) -> Response:
        try:
            return await answer(place, request)
        except NotAdmitted as error:
            return problem(error.status, str(error))
        except Unanswerable as error:
            return problem(400, str(error))
        except Refused as error:
            return problem(404, str(error))
        except Unseen as error:
            return problem(503, plain(text_of(error), 300))
        except Exception as error:
            if not place.keeping.is_outage(error):
                raise
            return problem(503, _away(error))

    return answered


def _away(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"no answer within {PATIENCE_SECONDS:g} s"
    return plain(text_of(error) or type(error).__name__, 300)


def _seen(text: str) -> str:
    """Give a value of the path. Raises Refused for what names nothing."""
    if "\0" in text:
        raise Refused("there is nothing of this name")
    return text
