"""What the endpoint says: the status of each outcome, and bodies that tell a caller enough and a stranger nothing.

All failures to prove who calls look the same. Whoever isn't allowed a job is not told whether there is one.
"""

import math

import orjson
from starlette.responses import Response

from schemas.occurrence import Identity

PROBLEM, JSON = "application/problem+json", "application/json"
UNPROVEN = 401
_HEADERS = {"Cache-Control": "no-store", "Connection": "close"}
_TITLES = {
    400: "The request cannot be read",
    401: "Who calls is not proven",
    403: "Not allowed",
    404: "Not found",
    405: "The method is POST",
    408: "The request came too slowly",
    409: "It cannot run now",
    413: "The request is too large",
    415: "The body is not JSON",
    422: "Not an occurrence for this call",
    429: "Too many requests",
    500: "Something failed",
    503: "Not at present",
}
# Every other outcome is one of the many ways not to prove who calls.
STATUS = {
    "malformed": 400,
    "forbidden": 403,
    "unknown": 404,
    "path": 404,
    "method": 405,
    "slow": 408,
    "overlap": 409,
    "paused": 409,
    "large": 413,
    "media_type": 415,
    "reused": 422,
    "other_job": 422,
    "not_due": 422,
    "too_old": 422,
    "off_schedule": 422,
    "elsewhere": 422,
    "runs_here": 422,
    "over": 422,
    "another_run": 422,
    "rate": 429,
    "error": 500,
    "early": 503,
    "held": 503,
    "unplanned": 503,
    "moved": 503,
    "database": 503,
    "issuer_away": 503,
}


def status_of(outcome: str) -> int:
    """Give the status that an outcome is answered with."""
    return STATUS.get(outcome, UNPROVEN)


def problem(status: int, detail: str = "", again: float | None = None) -> Response:
    """Say that nothing was done, as RFC 9457 has it; `again` is in how many seconds it may be otherwise."""
    body = {"type": "about:blank", "title": _TITLES[status], "status": status} | ({"detail": detail} if detail else {})
    headers = dict(_HEADERS)
    if again is not None:
        headers["Retry-After"] = str(max(1, math.ceil(again)))
    if status == STATUS["method"]:
        headers["Allow"] = "POST"
    if status == UNPROVEN:
        headers["WWW-Authenticate"] = "Bearer"
    return Response(orjson.dumps(body), status, headers, PROBLEM)


def named(identity: Identity, occurrence_id: int, state: str, *, accepted: bool) -> Response:
    """Name the occurrence: 202 for a call that claimed it, or has it wait for the one before; 200 for every other."""
    body = {"occurrence": str(identity), "id": occurrence_id, "state": state, "deduplicated": not accepted}
    return Response(orjson.dumps(body), 202 if accepted else 200, _HEADERS, JSON)
