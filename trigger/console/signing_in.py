"""Signing in at the provider, and out again.

A browser that begins to sign in is given a secret of its own. The database keeps the digest of that and of the state
that goes to the provider and back: so whoever brings a state back has begun it, in this browser, minutes ago, and once.
What PKCE and the nonce need follows from the browser's secret, which nobody else has.
"""

import base64
import hmac
import secrets
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import anyio
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from shared.console_access import Access, Oidc
from shared.logs import logger
from shared.masking import plain
from shared.postgres import is_transient
from shared.sql_files import statement
from trigger.console.admission import Admission, cookie_name, person_of, require_word
from trigger.console.answering import NO_STORE, Visit, give_cookie, page, problem
from trigger.console.forms import read_form
from trigger.console.person import CANNOT_TELL, MAY_NOT, Identified, NotAdmitted
from trigger.console.place import Place
from trigger.console.provider import Begun, Provider, ProviderAway, ProviderRefuses
from trigger.console.sessions import PATIENCE_SECONDS, TOKEN_BYTES, TOKEN_LENGTH, digest_of
from trigger.console.ways import BACK, BEGIN, SIGN_IN, local_path, sign_in_address
from trigger.identity_tokens import Unproven

INSERT_SIGN_IN = statement("trigger.console", "insert_sign_in")
TAKE_SIGN_IN = statement("trigger.console", "take_sign_in")
FORGET_SIGN_INS = statement("trigger.console", "forget_sign_ins")

KEPT_FOR: Final = timedelta(minutes=10)
MOST_BEGUN: Final = 10_000
LONGEST_CODE: Final = 4096
NOT_DONE: Final = "Nobody is signed in, or out"
_log = logger(__name__)


@dataclass(slots=True)
class SigningIn:
    """The pages of signing in and out of one console."""

    place: Place
    admission: Admission
    provider: Provider

    async def show(self, request: Request) -> Response:
        """Answer `GET /sign-in`: the way in, or straight on for who is in."""
        to = local_path(request.query_params.get("to", ""))
        visit = Visit(self.place, request)
        try:
            await self.admission.admit(request)
        except NotAdmitted as error:
            if error.status == CANNOT_TELL:
                return problem(visit, error.status, str(error))
            oidc = self.admission.access.current().oidc
            begin = sign_in_address(to, BEGIN) if oidc else ""
            told = str(error) if error.status == MAY_NOT else ""
            told = "You are signed out." if "out" in request.query_params else told
            values = {"title": "Sign in", "begin": begin, "issuer": oidc.issuer if oidc else "", "told": told}
            return page(visit, "sign_in.html", values)
        return RedirectResponse(to, 303, NO_STORE)

    async def begin(self, request: Request) -> Response:
        """Answer `GET /sign-in/provider`: send somebody to the provider."""
        return await self._answered(request, self._begin)

    async def back(self, request: Request) -> Response:
        """Answer `GET /sign-in/back`: somebody comes back from the provider."""
        return await self._answered(request, self._back)

    async def out(self, request: Request) -> Response:
        """Answer `POST /sign-out`."""
        return await self._answered(request, self._out)

    async def _answered(self, request: Request, answer: Callable[[Visit, Access], Awaitable[Response]]) -> Response:
        """Answer, or say in a page why not."""
        visit = Visit(self.place, request)
        try:
            return await answer(visit, self.admission.access.current())
        except NotAdmitted as error:
            return problem(visit, error.status, str(error), title=NOT_DONE)
        except (ProviderAway, ProviderRefuses) as error:
            _log.warning("the provider signs nobody in", reason=str(error))
            status = 503 if isinstance(error, ProviderAway) else 502
            return problem(visit, status, str(error), title="The provider does not say who you are")
        except Exception as error:
            if not is_transient(error):
                raise
            return problem(visit, 503, str(self.admission.away(error)), title=NOT_DONE)

    async def _begin(self, visit: Visit, access: Access) -> Response:
        request = visit.request
        to = request.query_params.get("to", "")
        if request.headers.get("sec-fetch-site", "same-origin") == "cross-site":
            # Nobody is signed in who has not asked for it here.
            return RedirectResponse(sign_in_address(to), 303, NO_STORE)
        browser = request.cookies.get(_browser_cookie(access), "")
        browser = browser if len(browser) == TOKEN_LENGTH else secrets.token_urlsafe(TOKEN_BYTES)
        state = secrets.token_urlsafe(TOKEN_BYTES)
        url = await self.provider.address(_oidc(access), _begun(access, browser, state))
        await self._note(state, browser, local_path(to))
        answer = RedirectResponse(url, 303, NO_STORE)
        give_cookie(answer, _browser_cookie(access), browser, visit, seconds=int(KEPT_FOR.total_seconds()))
        return answer

    async def _back(self, visit: Visit, access: Access) -> Response:
        oidc = _oidc(access)
        to, who = await self._returned(visit.request, access, oidc)
        person = person_of(who, oidc.grants)
        former = visit.request.cookies.get(cookie_name(access), "")
        session = await self.admission.sessions.begin(who, person.role, former)
        _log.info("somebody signed in to the console", person=person.name, role=person.role, means=person.means)
        answer = RedirectResponse(to, 303, NO_STORE)
        give_cookie(answer, cookie_name(access), session.token, visit)
        give_cookie(answer, _browser_cookie(access), "", visit, seconds=0)
        return answer

    async def _out(self, visit: Visit, access: Access) -> Response:
        admitted = await self.admission.admit(visit.request)
        form = await read_form(visit.request)
        require_word(admitted, form.one("csrf"))
        if admitted.session is not None:
            with anyio.fail_after(PATIENCE_SECONDS):
                await self.admission.sessions.end(admitted.session.token)
        answer = RedirectResponse(f"{SIGN_IN}?out=1", 303, NO_STORE)
        give_cookie(answer, cookie_name(access), "", visit, seconds=0)
        return answer

    async def tidy(self) -> None:
        """Forget sign-ins that nobody has ended. Raises what the database raises."""
        async with self.place.database.session() as session:
            await session.execute(FORGET_SIGN_INS, KEPT_FOR)

    async def _returned(self, request: Request, access: Access, oidc: Oidc) -> tuple[str, Identified]:
        """Give where somebody wants to go, and who they are. Raises NotAdmitted, or what the provider raises."""
        given = request.query_params
        state, browser = given.get("state", ""), request.cookies.get(_browser_cookie(access), "")
        to = await self._taken(state, browser)
        if to is None or any(len(given.getlist(name)) > 1 for name in ("state", "code", "iss", "error")):
            told = "this sign-in was not begun here, or it was too long ago, or it is over: sign in again"
            raise self._refusal(request, told, "state", 400)
        if "error" in given:
            told = plain(f"{given['error']}: {given.get('error_description', '')}".strip(": "), 300)
            _log.info("the provider signs nobody in", reason=told)
            raise NotAdmitted(403, f"the provider says: {told}")
        code = given.get("code", "")
        if not 1 <= len(code) <= LONGEST_CODE:
            raise self._refusal(request, "the provider's answer has no code", "code", 400)
        try:
            begun = _begun(access, browser, state)
            return to, await self.provider.identified(oidc, begun, code, given.get("iss"))
        except Unproven as error:
            told = f"what the provider says does not prove who you are ({error})"
            raise self._refusal(request, told, f"provider {error}", 403) from None

    async def _note(self, state: str, browser: str, to: str) -> None:
        with anyio.fail_after(PATIENCE_SECONDS):
            async with self.place.database.session() as session:
                await session.execute(INSERT_SIGN_IN, digest_of(state), digest_of(browser), to, MOST_BEGUN)

    async def _taken(self, state: str, browser: str) -> str | None:
        if len(state) != TOKEN_LENGTH or len(browser) != TOKEN_LENGTH:
            return None
        with anyio.fail_after(PATIENCE_SECONDS):
            async with self.place.database.session() as session:
                found: str | None = await session.fetchval(TAKE_SIGN_IN, digest_of(state), digest_of(browser), KEPT_FOR)
        return found

    def _refusal(self, request: Request, told: str, why: str, status: int) -> NotAdmitted:
        return self.admission.refuse(told, why, request.client.host if request.client else "", status)


def _oidc(access: Access) -> Oidc:
    if access.oidc is None:
        raise NotAdmitted(404, "nobody signs in here at a provider")
    return access.oidc


def _begun(access: Access, browser: str, state: str) -> Begun:
    verifier, nonce = (_derived(browser, f"matins {purpose} {state}") for purpose in ("verifier", "nonce"))
    return Begun(state, verifier, nonce, access.origin + BACK)


def _derived(browser: str, purpose: str) -> str:
    return base64.urlsafe_b64encode(hmac.digest(browser.encode(), purpose.encode(), "sha256")).decode().rstrip("=")


def _browser_cookie(access: Access) -> str:
    return f"{cookie_name(access)}-sign-in"
