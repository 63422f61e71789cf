"""An OpenID provider for tests, on a port of this machine: it signs in whoever comes, as who the test says."""

import base64
import json
import secrets
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CLIENT = "matins-console"


@dataclass
class OpenIdProvider:
    """A provider. `person` are the claims of who signs in; `changes` are what is wrong with its tokens.

    `asked` holds what came to its authorization endpoint, and `exchanged` what came to its token endpoint. `answers`
    replaces what it sends back with. With `up` false it answers nobody.
    """

    client_secret: str = ""
    person: dict[str, Any] = field(default_factory=dict)
    changes: dict[str, Any] = field(default_factory=dict)
    document: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, str | None] = field(default_factory=dict)
    token_answer: tuple[int, bytes] | None = None
    up: bool = True
    port: int = 0
    key: RSAKey = field(default_factory=lambda: RSAKey.generate_key(2048, {"kid": "first"}))
    signing: Any = None
    algorithm: str = "RS256"
    asked: list[dict[str, str]] = field(default_factory=list)
    exchanged: list[dict[str, str]] = field(default_factory=list)
    _codes: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """Who the provider says that it is."""
        return f"http://127.0.0.1:{self.port}"

    def describe(self) -> dict[str, Any]:
        """Give the discovery document."""
        named = {
            "issuer": self.url,
            "authorization_endpoint": f"{self.url}/authorize",
            "token_endpoint": f"{self.url}/token",
            "jwks_uri": f"{self.url}/keys",
            "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post"],
            "authorization_response_iss_parameter_supported": True,
        }
        return named | self.document

    def authorize(self, query: dict[str, str]) -> str:
        """Sign somebody in, and give where their browser goes."""
        self.asked.append(query)
        code = secrets.token_urlsafe(16)
        self._codes[code] = query
        back: dict[str, str | None] = {"code": code, "state": query["state"], "iss": self.url}
        given = {name: value for name, value in (back | self.answers).items() if value is not None}
        return f"{query['redirect_uri']}?{urlencode(given)}"

    def exchange(self, form: dict[str, str], authorization: str) -> tuple[int, bytes]:
        """Give the tokens for a code, once, to the client that has asked for it."""
        self.exchanged.append(form)
        if self.token_answer is not None:
            return self.token_answer
        begun = self._codes.pop(form.get("code", ""), None)
        challenge = base64.urlsafe_b64encode(sha256(form.get("code_verifier", "").encode()).digest()).decode()
        if begun is None or begun["code_challenge"] != challenge.rstrip("="):
            return 400, b'{"error": "invalid_grant", "error_description": "this code is not good (any more)"}'
        client = base64.b64encode(f"{CLIENT}:{self.client_secret}".encode()).decode()
        proven = authorization == f"Basic {client}" if self.client_secret else form.get("client_id") == CLIENT
        if not proven or begun["redirect_uri"] != form.get("redirect_uri"):
            return 401, b'{"error": "invalid_client"}'
        tokens = {"access_token": "unused", "token_type": "Bearer", "id_token": self.token(begun["nonce"])}
        return 200, json.dumps(tokens).encode()

    def token(self, nonce: str) -> str:
        """Issue an identity token."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": CLIENT, "iat": now, "exp": now + 300, "sub": "1234", "nonce": nonce}
        told = {name: value for name, value in (claims | self.person | self.changes).items() if value is not None}
        header = {"alg": self.algorithm, "kid": "first"}
        return jwt.encode(header, told, self.signing or self.key, algorithms=[self.algorithm])


@contextmanager
def running_provider(**person: Any) -> Iterator[OpenIdProvider]:
    """Have a provider meanwhile; `person` are the claims of who signs in."""
    provider = OpenIdProvider(person=person)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            if address.path == "/authorize":
                query = {name: values[0] for name, values in parse_qs(address.query).items()}
                self.send_response(302)
                self.send_header("Location", provider.authorize(query))
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            keys = {"keys": [provider.key.as_dict(private=False)]}
            self._answer(200, json.dumps(keys if address.path == "/keys" else provider.describe()).encode())

        def do_POST(self) -> None:
            sent = self.rfile.read(int(self.headers["Content-Length"])).decode()
            form = {name: values[0] for name, values in parse_qs(sent).items()}
            self._answer(*provider.exchange(form, self.headers.get("Authorization", "")))

        def _answer(self, status: int, body: bytes) -> None:
            self.send_response(status if provider.up else 503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    provider.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield provider
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
