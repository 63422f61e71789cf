"""What every page is answered with: its frame, who looks at it, and the pages that say what is wrong."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from shared import clock
from trigger.console.admission import Admitted, cookie_name
from trigger.console.keeping import Kept
from trigger.console.person import CANNOT_TELL, NOBODY, NotAdmitted
from trigger.console.place import Place
from trigger.console.rendering import render
from trigger.console.ways import sign_in_address

NO_STORE: Final = {"Cache-Control": "no-store"}
TITLES: Final = {
    400: "It cannot be read",
    401: "Nobody is signed in",
    403: "Not allowed",
    404: "There is no such thing",
    405: "Not so",
    413: "It is too much",
    415: "It cannot be read",
    422: "It was not done",
    429: "Too often",
    500: "Something failed",
    502: "The provider does not say who you are",
    503: "The database does not answer",
}


@dataclass(frozen=True, slots=True)
class Visit:
    """One request to a console; `admitted` is None where nobody is, or nobody can be, let in."""

    place: Place
    request: Request
    admitted: Admitted | None = None


def page(
    visit: Visit,
    template: str,
    values: Mapping[str, Any],
    *,
    section: str = "",
    kept: Kept | None = None,
    status: int = 200,
) -> Response:
    """Answer with a page; a session that the browser does not know yet is given to it."""
    html = render(template, _around(visit, section, kept) | dict(values))
    answer = Response(html, status, NO_STORE, "text/html")
    admission, admitted = visit.place.admission, visit.admitted
    if admission is not None and admitted is not None and admitted.session is not None and admitted.fresh:
        give_cookie(answer, cookie_name(admission.access.current()), admitted.session.token, visit)
    return answer


def problem(visit: Visit, status: int, told: str, *, section: str = "", title: str = "") -> Response:
    """Say in a page why there is nothing to show."""
    values = {"title": title or TITLES.get(status, "Not so"), "told": told, "status": status}
    answer = page(visit, "problem.html", values, section=section, status=status)
    if status == NOBODY:
        answer.headers["WWW-Authenticate"] = "Bearer"
    return answer


def not_admitted(visit: Visit, error: NotAdmitted) -> Response:
    """Send who is nobody to where they sign in, if they can; tell others why they are not let in."""
    admission = visit.place.admission
    can = admission is not None and admission.access.current().oidc is not None
    is_person = visit.request.method == "GET" and "authorization" not in visit.request.headers
    if error.status == NOBODY and can and is_person:
        path = visit.request.url.path + (f"?{query}" if (query := visit.request.url.query) else "")
        return RedirectResponse(sign_in_address(path), 303, NO_STORE)
    title = "Nobody can be let in now" if error.status == CANNOT_TELL else ""
    return problem(visit, error.status, str(error), title=title)


def give_cookie(answer: Response, name: str, value: str, visit: Visit, *, seconds: int | None = None) -> None:
    """Have the browser keep something for this host alone, which no script can read and no other site's form sends."""
    encrypted = visit.place.admission is not None and visit.place.admission.access.current().encrypted
    answer.set_cookie(name, value, max_age=seconds, path="/", secure=encrypted, httponly=True, samesite="lax")


def _here(request: Request) -> str:
    """Give the address of a page, without what is told of an act on it."""
    asked = [(name, value) for name, value in request.query_params.multi_items() if name != "done"]
    return quote(request.url.path, safe="/:@+") + (f"?{urlencode(asked)}" if asked else "")


def _around(visit: Visit, section: str, kept: Kept | None) -> dict[str, Any]:
    """Give what every page's frame needs."""
    admission, admitted = visit.place.admission, visit.admitted
    access = admission.access.current() if admission else None
    session = admitted.session if admitted else None
    # The address says which form it is told of, and never what: that is the session's own.
    is_told = session is not None and bool(session.form) and visit.request.query_params.get("done") == session.form
    return {
        "environment": visit.place.settings.environment,
        "section": section,
        "read_at": kept.read_at if kept else None,
        "problem": kept.problem if kept else "",
        "now": clock.utc_now(),
        "signs_in": access is not None,
        "person": admitted.person if admitted else None,
        "csrf": admitted.form_word if admitted else "",
        "here": _here(visit.request),
        "notice": session.notice.split("\n") if session and is_told and session.notice else [],
        "proxy_sign_out": access.proxy.sign_out if access and access.proxy else "",
    }
