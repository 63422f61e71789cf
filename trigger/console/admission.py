"""Letting in: who asks, by what they bear, and which role the setting gives them now.

One of three counts, the first that there is: the word of a trusted proxy, a token in the `Authorization` header, the
session of the cookie. What is there and wrong lets nobody in by another way.
"""

import hmac
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from starlette.requests import Request

from shared import clock
from shared.console_access import Access, Grants, Proxy, Token
from shared.logs import FailureLog, logger
from shared.masking import plain, text_of
from shared.postgres import is_transient
from shared.rereading import Rereading
from trigger.api_limits import Rate
from trigger.api_request import BEARER, DatabaseClock
from trigger.console.forgery import SAFE_METHODS, form_word, is_form_word
from trigger.console.person import CANNOT_TELL, MAY_NOT, PROGRAM_PREFIX, Identified, NotAdmitted, Person
from trigger.console.proxied import proxied
from trigger.console.sessions import Sessions, SignedIn, digest_of
from trigger.console.ways import is_beneath

REFUSED_A_MINUTE: Final = 120
# Sessions of one person behind a proxy: each is written down, and a client that keeps no cookie asks for ever more.
BEGUN_A_MINUTE: Final = 30
SHORTEST_TOKEN: Final = 32
AWAY: Final = "the database does not answer, so nobody can be let in now"
_MINUTE = 60.0
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Admitted:
    """Somebody who is let in. `session` is None for a program; a `fresh` one is not yet known to the browser."""

    person: Person
    session: SignedIn | None = None
    fresh: bool = False

    @property
    def form_word(self) -> str:
        """A word for a form on a page of theirs; '' where there is no session."""
        return form_word(self.session.token) if self.session else ""


@dataclass(slots=True)
class Admission:
    """Lets people and programs in; for the event loop of one thread."""

    access: Rereading[Access]
    sessions: Sessions
    database_clock: DatabaseClock
    monotonic: Callable[[], float] = clock.monotonic
    _rate: Rate = field(init=False)
    _begun: Rate = field(init=False)
    _failures: FailureLog = field(default_factory=lambda: FailureLog(_log))

    def __post_init__(self) -> None:
        """Begin to count."""
        self._rate = Rate(REFUSED_A_MINUTE, _MINUTE, self.monotonic)
        self._begun = Rate(BEGUN_A_MINUTE, _MINUTE, self.monotonic)

    async def admit(self, request: Request) -> Admitted:
        """Give who asks. Raises NotAdmitted."""
        access = self.access.current()
        try:
            peer = request.client.host if request.client else ""
            who = proxied(access.proxy, peer, request.headers.raw) if access.proxy else None
            if who is not None and access.proxy is not None:
                return await self._brought(request, access, access.proxy, who)
            bearing = request.headers.getlist("authorization")
            if bearing:
                return Admitted(await self._bearer(access, bearing, peer))
            return await self._signed_in(request, access)
        except Exception as error:
            if not is_transient(error):
                raise
            raise self.away(error) from error

    async def admit_operator(self, request: Request, word: str) -> Admitted:
        """Give who asks to have something done, which `word` of their form proves. Raises NotAdmitted."""
        admitted = await self.admit(request)
        require_operator(admitted)
        require_word(admitted, word)
        return admitted

    def refuse(self, told: str, why: str, peer: str, status: int = 401) -> NotAdmitted:
        """Count and log a refusal, and say so; too many of them are told to come less often."""
        self._failures.failure("somebody was not let in to the console", error_class=why, address=peer)
        wait = self._rate.wait("")
        return NotAdmitted(429, "too many were refused: come again in a minute") if wait else NotAdmitted(status, told)

    def away(self, error: Exception) -> NotAdmitted:
        """Log that the database does not answer, and say so."""
        reason = plain(text_of(error), 300)
        self._failures.failure("the console cannot tell who asks", error_class=type(error).__name__, reason=reason)
        return NotAdmitted(CANNOT_TELL, AWAY)

    async def tidy(self) -> None:
        """Delete what is over, and report how many refusals were not shown. Raises what the database raises."""
        self._failures.report()
        await self.sessions.forget(self.access.current())

    async def _brought(self, request: Request, access: Access, proxy: Proxy, who: Identified) -> Admitted:
        person = person_of(who, proxy.grants)
        looks, moves = is_look(request), is_move(request)
        cookie = request.cookies.get(cookie_name(access), "")
        try:
            session = await self.sessions.find(cookie, access, moves=moves, looks=looks)
            if session is not None and (session.who.means, session.who.name) == (who.means, who.name):
                return Admitted(person, session)
            if not (looks and moves and person.may_operate) or self._begun.wait(person.name):
                return Admitted(person)
            # What its forms are told by is bound to who the proxy says it is.
            return Admitted(person, await self.sessions.begin(who, person.role, cookie), fresh=True)
        except Exception as error:
            if not looks or not is_transient(error):
                raise
            return Admitted(person)

    async def _signed_in(self, request: Request, access: Access) -> Admitted:
        cookie = request.cookies.get(cookie_name(access), "")
        session = await self.sessions.find(cookie, access, moves=is_move(request), looks=is_look(request))
        known = session is not None and access.oidc is not None and session.who.issuer == access.oidc.issuer
        if session is None or access.oidc is None or not known or session.who.means != "oidc":
            raise NotAdmitted(401, "nobody is signed in here, or it was too long ago")
        return Admitted(person_of(session.who, access.oidc.grants), session)

    async def _bearer(self, access: Access, bearing: list[str], peer: str) -> Person:
        scheme, given = bearing[0][: len(BEARER)].lower(), bearing[0][len(BEARER) :].strip()
        found = _token_of(access, given) if len(bearing) == 1 and scheme == BEARER else None
        if found is None:
            raise self.refuse("no token that counts", "token", peer)
        if found.not_after is not None and await self.database_clock.now() >= found.not_after.timestamp():
            raise self.refuse("no token that counts", "expired", peer)
        return Person(f"{PROGRAM_PREFIX}{found.name}", found.role, "token")


def require_operator(admitted: Admitted) -> None:
    """See that somebody may act. Raises NotAdmitted."""
    if not admitted.person.may_operate:
        raise NotAdmitted(403, f"{admitted.person.name} may look here, and not act")


def require_word(admitted: Admitted, word: str) -> None:
    """See that a request is meant: by the word of a form of the same session, or by a token. Raises NotAdmitted."""
    if admitted.person.means == "token":
        return
    if admitted.session is None or not is_form_word(admitted.session.token, word):
        raise NotAdmitted(403, "the form is not one of this session: load the page again, and send it from there")


def require_session(admitted: Admitted) -> SignedIn:
    """Give the session of who sends a form. Raises NotAdmitted for a program."""
    if admitted.session is None:
        raise NotAdmitted(MAY_NOT, "forms are for people: a program with a token has the JSON")
    return admitted.session


def cookie_name(access: Access) -> str:
    """Give the name of the session's cookie: of one that only this host can set, and that only TLS carries."""
    return "__Host-matins" if access.encrypted else "matins"


def is_look(request: Request) -> bool:
    """Tell whether a request changes nothing."""
    return request.method in SAFE_METHODS


def is_move(request: Request) -> bool:
    """Tell whether somebody went to a page, rather than that a page refreshes itself or a program asks."""
    return not is_beneath(request.url.path) and request.headers.get("sec-fetch-mode", "navigate") == "navigate"


def person_of(who: Identified, grants: Grants) -> Person:
    """Give somebody with the role that their claims have now. Raises NotAdmitted for none."""
    role = grants.role_of(who.claims)
    if role is None:
        raise NotAdmitted(403, f"{who.name} is known, and has no role here: neither read nor operate is given to them")
    return Person(who.name, role, who.means)


def _token_of(access: Access, given: str) -> Token | None:
    """Find a token; each is compared, and as long as any other."""
    digest, found = digest_of(given), None
    for token in access.tokens:
        if hmac.compare_digest(token.digest, digest) and len(given) >= SHORTEST_TOKEN:
            found = token
    return found
