"""Acting: a form that somebody has sent, from who sends it to what they are told.

Each act is one POST, which is answered with the way to a page that tells of it. What cannot be done is told above the
same form, filled in again. What cannot be taken back is asked about first. A form is acted on once: sent twice, the
second is told so.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from shared.errors import MatinsError
from shared.logs import logger
from shared.masking import plain, text_of
from shared.postgres import InsufficientPrivilege, is_transient
from shared.terminal import NotDone, Refused, checked_reason
from trigger.console import acts_alerts, acts_fleet, acts_jobs, acts_occurrences
from trigger.console.acts import REASON, Act, Asking, Doing
from trigger.console.admission import Admission, require_operator, require_session, require_word
from trigger.console.answering import NO_STORE, Visit, page, problem
from trigger.console.forms import MARK, Form, new_mark, read_form
from trigger.console.person import CANNOT_TELL, MAY_NOT, NotAdmitted
from trigger.console.place import Place
from trigger.console.sessions import SignedIn, keep_notice, spend_form
from trigger.console.ways import local_path
from trigger.operate import Order

ACTS: Final = (*acts_jobs.ACTS, *acts_occurrences.ACTS, *acts_alerts.ACTS, *acts_fleet.ACTS)
ACT_SECONDS: Final = 60.0
NOT_SURE: Final = "the database did not answer: it may have been done, or not. Look at the page, then send it again"
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Sent:
    """A form for an act, by somebody who may."""

    visit: Visit
    act: Act
    subject: str
    session: SignedIn
    order: Order
    form: Form


def act_routes(place: Place, admission: Admission) -> list[Route]:
    """Give a route for each act."""
    return [Route(act.path, _acted(place, admission, act), methods=["POST"]) for act in ACTS]


def _acted(place: Place, admission: Admission, act: Act) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        visit = Visit(place, request)
        try:
            admitted = await admission.admit(request)
            visit = Visit(place, request, admitted)
            require_operator(admitted)
            form = await read_form(request)
            require_word(admitted, form.one("csrf"))
            session = require_session(admitted)
        except NotAdmitted as error:
            return problem(visit, error.status, str(error))
        return await _answered(visit, act, session, form)

    return answer


async def _answered(visit: Visit, act: Act, session: SignedIn, form: Form) -> Response:
    """Do it, or say above the form why not."""
    place, subject = visit.place, next(iter(visit.request.path_params.values()), "")
    try:
        order = Order(session.who.name, checked_reason(form.one(REASON.name)), place.instance, place.host)
        with anyio.fail_after(ACT_SECONDS):
            return await _asked_or_done(Sent(visit, act, subject, session, order, form))
    except NotAdmitted as error:
        return problem(visit, error.status, str(error))
    except Exception as error:
        why = why_not(act, error)
        if why is None:
            raise
        return _again(visit, act, subject, form, *why)


def why_not(act: Act, error: Exception) -> tuple[int, str] | None:
    """Give the status and the words for why something was not done, or is not known to be; None for a fault of ours."""
    if isinstance(error, Refused):
        return 422, str(error)
    if isinstance(error, InsufficientPrivilege):
        _log.error("the console's login may not do this", act=act.name, reason=text_of(error))
        return MAY_NOT, "the console's login may not do this"
    if is_transient(error):
        _log.warning("an act was cut off", act=act.name, reason=plain(text_of(error) or type(error).__name__, 300))
        return CANNOT_TELL, NOT_SURE
    return (409, str(error)) if isinstance(error, MatinsError) else None


async def _asked_or_done(sent: Sent) -> Response:
    mark = sent.form.one("form")
    if not MARK.fullmatch(mark):
        raise Refused("the form has no mark: load the page again, and send it from there")
    if not sent.subject.isprintable():
        raise Refused("there is nothing of this name")
    async with sent.visit.place.database.session() as session:
        doing = Doing(sent.visit.place, session, sent.subject, sent.order, sent.form)
        asking = await sent.act.ask(doing) if sent.act.ask and sent.form.one("sure") != "yes" else None
        if asking is not None:
            return _ask(sent, asking)
        if not await spend_form(session, sent.session, mark):
            raise NotDone("this form was sent before: look at the page for what became of it")
        told = await sent.act.perform(doing)
        await _keep(sent, session, mark, told)
    _log.info("acted", act=sent.act.name, subject=sent.subject, person=sent.order.actor)
    back = local_path(sent.form.one("back"))
    return RedirectResponse(f"{back}{'&' if '?' in back else '?'}done={mark}", 303, NO_STORE)


async def _keep(sent: Sent, session: Any, mark: str, told: Sequence[str]) -> None:
    """Keep what is told of what was done; it is done all the same where that fails."""
    try:
        await keep_notice(session, sent.session, mark, "\n".join(told))
    except Exception as error:
        if not is_transient(error):
            raise
        _log.warning("nobody is told of an act that was done", act=sent.act.name)


def _again(visit: Visit, act: Act, subject: str, form: Form, status: int, told: str) -> Response:
    values = {
        "title": act.title_for(subject),
        "act": act,
        "subject": subject,
        "told": act.in_words(told).split("\n"),
        "given": form.values,
        "back": local_path(form.all("back")[0] if form.all("back") else ""),
        "mark": new_mark(),
    }
    return page(visit, "act.html", values, status=status)


def _ask(sent: Sent, asking: Asking) -> Response:
    known = {REASON.name, *(one.name for one in sent.act.fields)}
    kept = {name: given for name, given in sent.form.values.items() if name in known}
    values = {
        "title": sent.act.title_for(sent.subject),
        "act": sent.act,
        "subject": sent.subject,
        "asking": asking,
        "kept": kept,
        "back": local_path(sent.form.one("back")),
        "mark": new_mark(),
    }
    return page(sent.visit, "sure.html", values)
