"""Somebody with a browser, as far as a test needs one: it keeps cookies by their rules, and says where it stands."""

import re
from dataclasses import dataclass, field
from http.cookies import Morsel, SimpleCookie
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2

from tests.console.serving import Answer, Served
from tests.support.openid import CLIENT, OpenIdProvider

ORIGIN: Final = "https://console.example.com"
CSRF: Final = re.compile(r'name="csrf" value="([\w-]+)"')


def access_by(provider: OpenIdProvider, *, secret: str = "", more: str = "") -> str:
    """Describe who may do what: people of a provider, by their groups; `more` stands at the end of its table."""
    given = f'client_secret = "{secret}"\n' if secret else ""
    provider.client_secret = secret
    return (
        f'url = "{ORIGIN}"\n[oidc]\nissuer = "{provider.url}"\nclient_id = "{CLIENT}"\n{given}'
        f'read = ["watchers"]\noperate = ["operators"]\n{more}'
    )


@dataclass(slots=True)
class Visitor:
    """A browser that knows the console by its address over TLS, which ends before it; `headers` are added to each."""

    served: Served
    headers: dict[str, str] = field(default_factory=dict)
    cookies: dict[str, Morsel[str]] = field(default_factory=dict)

    async def get(self, path: str, **headers: str | None) -> Answer:
        """Go to a page; a redirection is not followed."""
        return await self._ask("GET", path, _named(headers))

    async def post(self, path: str, form: dict[str, Any] | bytes | None = None, **headers: str | None) -> Answer:
        """Send a form, or a body as it is, from a page of the console; a header that is None is left out."""
        own: dict[str, str | None] = {"Origin": ORIGIN, "Sec-Fetch-Site": "same-origin"}
        return await self._ask("POST", path, own | _named(headers), form or {})

    async def follow(self, path: str, **headers: str | None) -> Answer:
        """Go to a page of the console, and on to where each redirection within it leads."""
        answer = await self.get(path, **headers)
        while answer.status == 303 and answer.headers["location"].startswith("/"):
            answer = await self.get(answer.headers["location"])
        return answer

    async def to_provider(self, to: str = "/") -> str:
        """Begin to sign in; give where the provider sends the browser back to, as a path of the console."""
        begun = await self.get(f"/sign-in/provider?to={to}")
        assert begun.status == 303, begun.text
        async with httpx2.AsyncClient() as client:
            sent = await client.get(begun.headers["location"])
        return sent.headers["location"].removeprefix(ORIGIN)

    async def sign_in(self, to: str = "/") -> Answer:
        """Sign in at the provider, and give what coming back is answered with."""
        return await self.get(await self.to_provider(to), Sec_Fetch_Site="cross-site")

    async def word(self, path: str = "/") -> str:
        """Read the word that a page's forms carry."""
        found = CSRF.search((await self.get(path)).text)
        assert found is not None
        return found[1]

    async def _ask(self, method: str, path: str, headers: dict[str, str | None], form: Any = None) -> Answer:
        named = {"Host": urlsplit(ORIGIN).netloc, **self.headers, **headers}
        if self.cookies:
            named["Cookie"] = "; ".join(f"{name}={one.value}" for name, one in self.cookies.items())
        given = {name.encode(): value.encode() for name, value in named.items() if value is not None}
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{self.served.console.port}", timeout=30) as client:
            raw = await client.request(method, path, headers=given, **_body(form))
        self._keep(raw.headers.get_list("set-cookie"))
        return Answer(raw.status_code, raw.text, {name.lower(): one for name, one in raw.headers.items()})

    def _keep(self, given: list[str]) -> None:
        for text in given:
            for name, morsel in SimpleCookie(text).items():
                # What a browser demands of such a name.
                assert name.startswith("__Host-")
                assert (morsel["secure"], morsel["path"], morsel["domain"]) == (True, "/", "")
                assert (morsel["httponly"], morsel["samesite"].lower()) == (True, "lax")
                self.cookies.pop(name, None)
                if morsel["max-age"] != "0":
                    self.cookies[name] = morsel


def state_of(path: str) -> str:
    """Give the state in where a provider sends a browser back to."""
    return parse_qs(urlsplit(path).query)["state"][0]


def _named(headers: dict[str, str | None]) -> dict[str, str | None]:
    return {name.replace("_", "-"): value for name, value in headers.items()}


def _body(form: Any) -> dict[str, Any]:
    return {"content": form} if isinstance(form, bytes) else {"data": form}
