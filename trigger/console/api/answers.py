"""What the JSON answers are: values with instants in UTC, and problems as RFC 9457 has them."""

import math
from collections.abc import Mapping
from typing import Any, Final

import orjson
from starlette.responses import Response

from trigger.api_answers import JSON, PROBLEM
from trigger.console.ways import PREFIX

AGAIN_SECONDS: Final = 5.0
UNPROVEN, TOO_OFTEN, AWAY = 401, 429, 503
TITLES: Final = {
    400: "It cannot be read",
    401: "Nobody is signed in",
    403: "Not allowed",
    404: "There is no such thing",
    405: "Not so",
    408: "It came too slowly",
    409: "It cannot be done now",
    413: "It is too much",
    415: "The body is not JSON",
    421: "This console answers under another name",
    422: "It was not done",
    429: "Too often",
    500: "Something failed",
    503: "Not at present",
}
_FORM: Final = orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE
_HEADERS: Final = {"Cache-Control": "no-store"}
_MINUTE: Final = 60.0


def values(found: Any, age: float | None = None) -> Response:
    """Answer with values; `age` is how many seconds ago they were read, where they are kept for several who ask."""
    headers = dict(_HEADERS) if age is None else {**_HEADERS, "Age": str(max(0, int(age)))}
    return Response(orjson.dumps(found, option=_FORM), 200, headers, JSON)


def problem(status: int, detail: str = "", headers: Mapping[str, str] | None = None) -> Response:
    """Say why there is nothing: the place and what is valid, as far as who asks may know."""
    body = {"type": "about:blank", "title": TITLES.get(status, "Not so"), "status": status}
    told = {"detail": detail} if detail else {}
    with_them = {**_HEADERS, **_required(status), **(headers or {})}
    return Response(orjson.dumps(body | told), status, with_them, PROBLEM)


def _required(status: int) -> dict[str, str]:
    """Give the header that goes with a status."""
    if status == UNPROVEN:
        return {"WWW-Authenticate": f'Bearer realm="{PREFIX}"'}
    if status in {TOO_OFTEN, AWAY}:
        return {"Retry-After": str(math.ceil(AGAIN_SECONDS if status == AWAY else _MINUTE))}
    return {}
