"""What stands before every answer: who is meant by the request, and what a browser may do with what it is given."""

from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
    """Refuses what was meant for another host, and adds the headers.

    Without a check of the host, any page that a browser shows could have its own name lead to the loopback interface,
    and read what is there.
    """

    def __init__(self, inner: ASGIApp) -> None:
        self._inner = inner

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

        if not _is_meant(Headers(scope=scope).get("host", "")):
            await PlainTextResponse("This console answers under another name.\n", 421)(scope, receive, guarded)
            return
        await self._inner(scope, receive, guarded)


def _is_meant(host: str) -> bool:
    name = host if host.endswith("]") else host.rpartition(":")[0] if ":" in host else host
    return name in _LOOPBACK
