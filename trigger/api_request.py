"""Reading a call: its body within bounds of size and time, who has proven to send it, and what it asks for."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, TypeVar

import anyio
import msgspec
from starlette.requests import ClientDisconnect, Request

from shared import clock
from shared.api_callers import Caller, read_callers
from shared.errors import MatinsError
from shared.postgres import Database, database_now
from shared.rereading import Rereading
from shared.webhook_signing import HEADERS
from trigger.check_in_rules import RUN, Event
from trigger.identity_tokens import Unproven, proven_by, read_claimed
from trigger.issuer_keys import IssuerKeys, KeysUnavailable
from trigger.outside_call import TOLERANCE, Delivery
from trigger.signatures import Unsigned, read_signature, signed_by

MOST_BODY = 64 * 1024
READ_SECONDS = 10.0
CLOCK_SECONDS = 30.0
BEARER = "bearer "
_Body = TypeVar("_Body", "Asked", "AskedCheckIn")


class NotTaken(MatinsError):
    """The request is not taken; `outcome` is the word for the log, the metric and the status."""

    def __init__(self, outcome: str, detail: str = "", again: float | None = None) -> None:
        """Take the outcome, and what the caller may be told."""
        super().__init__(outcome)
        self.outcome = outcome
        self.detail = detail
        self.again = again


class Asked(msgspec.Struct, forbid_unknown_fields=True):
    """The body: which instant, if not the latest that is due; the job too, if the sender wants to have it signed."""

    scheduled_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    job: str | None = None


class AskedCheckIn(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a check-in: what is reported, of which instant and run; `message` says why it failed."""

    event: Event
    scheduled_at: Annotated[datetime, msgspec.Meta(tz=True)] | None = None
    run: Annotated[str, msgspec.Meta(pattern=RUN)] | None = None
    message: str = ""
    job: str | None = None


@dataclass(frozen=True, slots=True)
class Proven:
    """Who calls, how they proved it, and for a signed call what tells its deliveries from others."""

    caller: Caller
    proof: str
    delivery: Delivery | None = None


async def read_body(request: Request) -> bytes:
    """Read at most 64 KiB within ten seconds. Raises NotTaken."""
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced[:20]) > MOST_BODY:
        raise NotTaken("large")
    body = bytearray()
    try:
        with anyio.fail_after(READ_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MOST_BODY:
                    raise NotTaken("large")
    except TimeoutError:
        raise NotTaken("slow") from None
    except ClientDisconnect:
        raise NotTaken("malformed") from None
    return bytes(body)


def read_asked(body: bytes, media_type: str) -> Asked:
    """Read what is asked for; nothing in an empty body. Raises NotTaken."""
    if not body:
        return Asked()
    return _read(body, media_type, Asked, 'the body is empty, or JSON as {"scheduled_at": "2026-08-25T02:00:00Z"}')


def read_check_in(body: bytes, media_type: str) -> AskedCheckIn:
    """Read what is reported. Raises NotTaken."""
    form = (
        'the body is JSON as {"event": "start"}: start, success or fail, and if need be "scheduled_at", "run" (1 to '
        '100 letters, digits and . _ : / + @ -), "job", and with fail a "message"'
    )
    asked = _read(body, media_type, AskedCheckIn, form)
    if asked.message and asked.event != "fail":
        raise NotTaken("malformed", form)
    return asked


def _read(body: bytes, media_type: str, kind: type[_Body], form: str) -> _Body:
    if media_type.partition(";")[0].strip().lower() != "application/json":
        raise NotTaken("media_type")
    try:
        asked = msgspec.json.decode(body, type=kind)
        if asked.scheduled_at is not None:
            asked.scheduled_at = asked.scheduled_at.astimezone(UTC)
    except (msgspec.DecodeError, RecursionError, OverflowError, ValueError):
        raise NotTaken("malformed", form) from None
    return asked


def known_callers(
    read: Callable[[], str], monotonic: Callable[[], float] = clock.monotonic
) -> Rereading[tuple[Caller, ...]]:
    """Know the callers as their setting has them. Raises FaultySettings or ValueError if it is faulty now."""
    return Rereading("the callers", read, read_callers, monotonic)


class DatabaseClock:
    """The database's clock, asked now and then and counted on from there: what is long over costs it no question."""

    def __init__(self, database: Database, monotonic: Callable[[], float] = clock.monotonic) -> None:
        self._database = database
        self._monotonic = monotonic
        self._ahead = 0.0
        self._asked_at = float("-inf")

    async def now(self) -> float:
        """Give the database's time in seconds since 1970. Raises what the database raises."""
        if self._monotonic() - self._asked_at > CLOCK_SECONDS:
            async with self._database.session() as session:
                before = self._monotonic()
                theirs: datetime = await database_now(session)
            self._ahead, self._asked_at = theirs.timestamp() - before, before
        return self._monotonic() + self._ahead


@dataclass(slots=True)
class Gate:
    """Finds out who calls."""

    callers: Rereading[tuple[Caller, ...]]
    keys: IssuerKeys
    clock: DatabaseClock

    async def proven(self, headers: Mapping[str, Sequence[str]], body: bytes, job: str) -> Proven:
        """Give who calls. Raises Unsigned, Unproven or KeysUnavailable, or what the database raises.

        A call that is signed and bears a token is neither: which of the two would count?
        """
        bearing = headers.get("authorization", ())
        if not bearing:
            return await self._signed(headers, body, job)
        if len(bearing) > 1 or any(name in headers for name in HEADERS):
            raise Unproven("headers")
        if not bearing[0].lower().startswith(BEARER):
            raise Unproven("headers")
        return await self._borne(bearing[0][len(BEARER) :].strip(), job)

    async def _signed(self, headers: Mapping[str, Sequence[str]], body: bytes, job: str) -> Proven:
        signature = read_signature(headers)
        found = signed_by(self.callers.current(), signature, body)
        if found is None:
            raise Unsigned("signature")
        # Whether it is in time the database decides, when it remembers the call. This spares it the old ones.
        if abs(await self.clock.now() - signature.timestamp) > TOLERANCE.total_seconds():
            raise Unsigned("timestamp")
        caller, key = found
        delivery = Delivery.of(signature.id, signature.timestamp, job, body)
        return Proven(caller, f"key {key.fingerprint}, webhook {signature.id}", delivery)

    async def _borne(self, token: str, job: str) -> Proven:
        claimed = read_claimed(token)
        trusting = [one for one in self.callers.current() if one.token and one.token.issuer == claimed.issuer]
        if not trusting:
            raise Unproven("issuer")
        # A token may be that of several callers, each with its own jobs: whoever comes first in the file is not meant.
        trusting.sort(key=lambda one: job not in one.jobs | one.check_ins)
        now = int(await self.clock.now())
        problem: Unproven | KeysUnavailable = Unproven("issuer")
        for address in dict.fromkeys(one.token.keys_url for one in trusting if one.token):
            theirs = [one for one in trusting if one.token and one.token.keys_url == address]
            try:
                key = await self.keys.key(address, claimed.key_id)
                caller = proven_by(theirs, token, key, now)
            except (Unproven, KeysUnavailable) as error:
                problem = error
            else:
                return Proven(caller, f"token of {claimed.issuer}")
        raise problem
