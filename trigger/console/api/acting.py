"""Acting by JSON: the same acts as the forms of the pages, by the same functions, in the name of who sends it.

A program bears a token of the role `operate`, which no browser sends by itself. Whoever is signed in sends the word of
their session in a header too, which no page of another site knows.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import Response

from shared.logs import logger
from shared.terminal import checked_reason
from trigger.api_answers import JSON
from trigger.api_request import NotTaken, read_body
from trigger.console.acting import ACT_SECONDS, why_not
from trigger.console.acts import Act, Doing
from trigger.console.admission import require_operator, require_word
from trigger.console.api.answers import problem, values
from trigger.console.api.orders import Ordered, named, read_order
from trigger.console.api.parameters import read_query
from trigger.console.asking import Unanswerable
from trigger.console.person import MAY_NOT, NotAdmitted
from trigger.console.place import Place
from trigger.operate import Order

WORD_HEADER: Final = "X-CSRF-Token"
_OPTION: Final = re.compile(r"--([a-z][a-z-]+)")
_STATUS: Final = {"large": (413, "a body has at most 64 KiB"), "slow": (408, "the body came too slowly")}
_log = logger(__name__)


def acted(place: Place, act: Act) -> Callable[[Request], Awaitable[Response]]:
    """Give what answers an order of this act."""

    async def answer(request: Request) -> Response:
        try:
            ordered, actor = await _ordered(place, act, request)
            subject = str(next(iter(request.path_params.values()), ""))
            if "\0" in subject:
                return problem(404, "there is nothing of this name")
            order = Order(actor, checked_reason(ordered.reason), place.instance, place.host)
            with anyio.fail_after(ACT_SECONDS):
                return await _done(place, act, subject, order, ordered)
        except NotAdmitted as error:
            return problem(error.status, str(error))
        except Unanswerable as error:
            return problem(400, str(error))
        except Exception as error:
            why = why_not(act, error)
            if why is None:
                raise
            return problem(why[0], _OPTION.sub(lambda found: named(found[1]), why[1]))

    return answer


async def _ordered(place: Place, act: Act, request: Request) -> tuple[Ordered, str]:
    """Give what is ordered, and by whom. Raises NotAdmitted and Unanswerable."""
    if place.admission is None:
        raise NotAdmitted(MAY_NOT, "this console only shows: nobody can sign in")
    admitted = await place.admission.admit(request)
    require_operator(admitted)
    require_word(admitted, request.headers.get(WORD_HEADER, ""))
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
        raise NotAdmitted(415, f"a body is {JSON}")
    try:
        body = await read_body(request)
    except NotTaken as error:
        status, told = _STATUS.get(error.outcome, (400, "the body cannot be read"))
        raise NotAdmitted(status, told) from None
    read_query((), request.query_params.multi_items())
    return read_order(act, body), admitted.person.name


async def _done(place: Place, act: Act, subject: str, order: Order, ordered: Ordered) -> Response:
    async with place.database.session() as session:
        doing = Doing(place, session, subject, order, ordered.form)
        if ordered.dry_run and act.ask is not None:
            asking = await act.ask(doing)
            if asking is None:
                return values(_told(done=False, told=[act.explained]))
            rows = [list(row) for row in asking.rows]
            told = [asking.question, *asking.remarks]
            return values(_told(done=False, told=told) | {"headings": list(asking.headings), "rows": rows})
        told = list(await act.perform(doing))
    _log.info("acted", act=act.name, subject=subject, person=order.actor)
    return values(_told(done=True, told=told))


def _told(*, done: bool, told: list[str]) -> dict[str, Any]:
    return {"done": done, "told": told, "headings": [], "rows": []}
