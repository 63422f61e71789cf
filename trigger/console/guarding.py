"""What stands before every answer: who is meant by the request, and what a browser may do with what it is given."""

from collections.abc import Callable
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from shared.console_access import Access
from trigger.api_request import BEARER
from trigger.console.api.answers import problem
from trigger.console.forgery import SAFE_METHODS, is_from
from trigger.console.ways import is_beneath

HEADERS: Final = {
    # Nothing comes from elsewhere, nothing is inline, and nobody puts these pages in a frame.
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
KEPT_FOR_GOOD: Final = "public, max-age=31536000, immutable"
_LOOPBACK: Final = frozenset({"127.0.0.1", "localhost", "[::1]"})


class Guarded:
    """Refuses what was meant for another host, or comes from another's pages, and adds the headers.

    Without a check of the host, any page that a browser shows could have its own name lead to the loopback interface,
    and read what is there. Where people sign in (`access`) the one host is that of the console's address. Where nobody
    does, nothing is taken that could change anything.
    """

    def __init__(self, inner: ASGIApp, access: Callable[[], Access] | None = None) -> None:
        self._inner = inner
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._inner(scope, receive, send)
            return
        kept = scope["path"].startswith("/static/") and bool(scope["query_string"])

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                if kept and message["status"] == 200:  # noqa: PLR2004 - what is not there is not kept
                    headers["Cache-Control"] = KEPT_FOR_GOOD
            await send(message)

        refused = self._refused(scope["method"], Headers(scope=scope))
        await (_said(scope["path"], *refused) if refused else self._inner)(scope, receive, guarded)

    def _refused(self, method: str, headers: Headers) -> tuple[int, str] | None:
        access = self._access() if self._access else None
        hosts = headers.getlist("host")
        if len(hosts) != 1 or _name_of(hosts[0]) not in ({access.host} if access else _LOOPBACK):
            return 421, "This console answers under another name."
        if method in SAFE_METHODS:
            return None
        if access is None:
            return 403, "This console only shows: nobody can sign in."
        origins, sites = headers.getlist("origin"), headers.getlist("sec-fetch-site")
        if not is_from(access.origin, origins, sites, proven=_bears(headers)):
            return 403, "This was not sent from a page of this console."
        return None


def _said(path: str, status: int, told: str) -> Response:
    return problem(status, told) if is_beneath(path) else PlainTextResponse(f"{told}\n", status)


def _bears(headers: Headers) -> bool:
    """Tell whether a token is borne; a name and password a browser adds by itself, whoever's page it sends from."""
    given = headers.getlist("authorization")
    return bool(given) and all(one.lower().startswith(BEARER) for one in given)


def _name_of(host: str) -> str:
    name = host if host.endswith("]") else host.rpartition(":")[0] if ":" in host else host
    return name.lower()
