"""The only module that knows the HTTP client: one request, bounded in time and in size, that follows nobody elsewhere.

Proxies come from the environment (`HTTPS_PROXY`, `NO_PROXY` and their kin), as the client reads them. Certificates are
verified always: by the system's authorities, or by a channel's own.
"""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

import anyio
import httpx2

from shared.masking import plain, text_of
from shared.tls import handshake_problem
from shared.version import VERSION

SEND_SECONDS = 15.0
MOST_ANSWER = 2048
LONGEST_ERROR = 300
LONGEST_WAIT = timedelta(hours=1)
# What the client raises where a library stands on it.
CLIENT_ERRORS = (httpx2.HTTPError, httpx2.InvalidURL)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a message fared: '' or what went wrong, and how long the receiver asked to be left alone."""

    error: str = ""
    wait: timedelta | None = None

    @property
    def delivered(self) -> bool:
        """Whether the receiver has taken it."""
        return not self.error


@dataclass(frozen=True, slots=True)
class Request:
    """What is sent; the address may be a secret."""

    url: str = field(repr=False)
    body: bytes = field(repr=False, default=b"")
    headers: Mapping[str, str] = field(repr=False, default_factory=dict)
    ca_file: str = ""


async def post(request: Request, *, now: datetime, seconds: float = SEND_SECONDS) -> Outcome:
    """Send it. Whatever happens is the outcome; nothing is raised but cancellation. `now` dates a date to wait for."""
    try:
        with anyio.fail_after(seconds):
            return await _post(request, now)
    except TimeoutError:
        return Outcome(f"no answer within {seconds:g} s")
    except httpx2.HTTPError as error:
        return Outcome(_problem(error))
    except Exception as error:  # noqa: BLE001 - whatever a receiver does must not end the service that tells it
        return Outcome(plain(f"{type(error).__name__}: {text_of(error)}", LONGEST_ERROR))


async def _post(request: Request, now: datetime) -> Outcome:
    headers = {"user-agent": f"matins/{VERSION}", "accept": "*/*", **request.headers}
    verify = ssl.create_default_context(cafile=request.ca_file) if request.ca_file else True
    # The deadline is the caller's: the client's own bound each part, of which a receiver that dribbles has many.
    async with (
        httpx2.AsyncClient(verify=verify, timeout=None, follow_redirects=False) as client,
        client.stream("POST", request.url, content=request.body, headers=headers) as answer,
    ):
        # Its first line decides; what else a receiver says is waited for only to tell why it refuses.
        if answer.is_success:
            return Outcome()
        if answer.is_redirect:
            return Outcome(f"answered {answer.status_code} and leads elsewhere, where it is not followed")
        said = plain((await _beginning(answer)).decode("utf-8", "replace"), LONGEST_ERROR).strip()
        told = f"answered {answer.status_code}" + (f": {said}" if said else "")
        return Outcome(told.replace("\n", " "), _wait(answer.headers.get("retry-after", ""), now))


async def _beginning(answer: httpx2.Response) -> bytes:
    found = b""
    with anyio.move_on_after(2):
        async for part in answer.aiter_raw():
            found += part
            if len(found) >= MOST_ANSWER:
                break
    return found[:MOST_ANSWER]


def _wait(asked: str, now: datetime) -> timedelta | None:
    """Read `Retry-After`: seconds or a date, at most an hour; what cannot be read says nothing."""
    if asked.isascii() and asked.isdigit():
        return min(timedelta(seconds=int(asked[:9])), LONGEST_WAIT)
    try:
        until = parsedate_to_datetime(asked)
    except (TypeError, ValueError):
        return None
    until = until if until.tzinfo else until.replace(tzinfo=UTC)
    return min(max(until - now, timedelta(0)), LONGEST_WAIT)


def _problem(error: httpx2.HTTPError) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if problem := handshake_problem(cause):
            return problem
        cause = cause.__cause__ or cause.__context__
    return plain(f"{type(error).__name__}: {text_of(error)}", LONGEST_ERROR)
