"""Outside schedulers for tests: callers with keys, an issuer of tokens with its own HTTP server, and their calls."""

import base64
import hmac
import http.client
import json
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from joserfc import jwt
from joserfc.jwk import ECKey, RSAKey

from shared.api_callers import Key, read_key
from shared.webhook_signing import HEADERS

AUDIENCE = "https://matins.example.com"
ADDRESS = "cron@example.com"
CALL_SECONDS = 30


def path_of(job: str) -> str:
    """Give the path of a job's occurrences."""
    return f"/v1/jobs/{job}/occurrences"


def new_key() -> str:
    """Make a key as the file of callers has it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(32)).decode()


def sign(key: Key, identity: str, timestamp: int, body: bytes) -> str:
    """Sign as a sender by the Standard Webhooks does."""
    content = f"{identity}.{timestamp}.".encode() + body
    return f"v1,{base64.b64encode(hmac.digest(key.secret, content, 'sha256')).decode()}"


def described(name: str, jobs: list[str], *keys: str, rate: int = 6000, may: str = "jobs") -> str:
    """Describe a caller with keys, as the file of callers has it; `may` is `jobs` or `check_ins`."""
    return f"[callers.{name}]\n{may} = {json.dumps(jobs)}\nkeys = {json.dumps(keys)}\nrate = {rate}\n"


@dataclass(frozen=True, slots=True)
class Answer:
    """What the endpoint said."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        """The body, read."""
        read: dict[str, Any] = json.loads(self.body)
        return read


@dataclass(frozen=True, slots=True)
class Signed:
    """A call as it is sent."""

    path: str
    headers: dict[str, str]
    body: bytes


def signed(
    key: str, job: str, body: bytes = b"", *, identity: str = "", at: int | None = None, path: str = ""
) -> Signed:
    """Sign a call with the present time, or another."""
    identity = identity or f"msg_{secrets.token_hex(12)}"
    timestamp = int(time.time()) if at is None else at
    values = (identity, str(timestamp), sign(read_key(key), identity, timestamp, body))
    headers = dict(zip(HEADERS, values, strict=True)) | {"content-type": "application/json"}
    return Signed(path or path_of(job), headers, body)


def post(port: int, call: Signed, *, method: str = "POST") -> Answer:
    """Send a call to a port of this machine, and give the answer."""
    with closing(http.client.HTTPConnection("127.0.0.1", port, timeout=CALL_SECONDS)) as connection:
        connection.request(method, call.path, call.body, call.headers)
        answer = connection.getresponse()
        return Answer(answer.status, {name.lower(): value for name, value in answer.getheaders()}, answer.read())


@dataclass
class Issuer:
    """An issuer of tokens: its public keys are on a port of this machine, as long as it is up."""

    keys: list[RSAKey | ECKey] = field(default_factory=lambda: [RSAKey.generate_key(2048, {"kid": "first"})])
    asked: int = 0
    up: bool = True
    answer: Callable[[BaseHTTPRequestHandler], None] | None = None
    port: int = 0

    @property
    def url(self) -> str:
        """Who the issuer says that it is."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def keys_url(self) -> str:
        """Where its public keys are."""
        return f"{self.url}/keys"

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Give the claims of a good token, changed as said; None leaves one out."""
        now = int(time.time())
        usual = {
            "iss": self.url,
            "aud": AUDIENCE,
            "iat": now,
            "exp": now + 3600,
            "sub": "1234",
            "email": ADDRESS,
            "email_verified": True,
        }
        return {name: value for name, value in (usual | changes).items() if value is not None}

    def token(self, *, algorithm: str = "RS256", key: Any = None, key_id: str = "", **claims: Any) -> str:
        """Issue a token, by default a good one."""
        signing = key or self.keys[-1]
        header = {"alg": algorithm, "kid": key_id or self.keys[-1].kid}
        return jwt.encode(header, self.claims(**claims), signing, algorithms=[algorithm])

    def described(self, name: str, jobs: list[str], **changes: Any) -> str:
        """Describe a caller with this issuer's tokens, as the file of callers has it."""
        rule = {"issuer": self.url, "audience": AUDIENCE, "keys_url": self.keys_url} | changes
        lines = [f"{key} = {json.dumps(value)}" for key, value in rule.items()]
        claims = f'claims = {{ email = "{ADDRESS}" }}'
        return "\n".join(
            [f"[callers.{name}]", f"jobs = {json.dumps(jobs)}", f"[callers.{name}.token]", *lines, claims, ""]
        )


def bearing(token: str, job: str, body: bytes = b"") -> Signed:
    """Make a call that bears a token."""
    return Signed(path_of(job), {"authorization": f"Bearer {token}", "content-type": "application/json"}, body)


@contextmanager
def running_issuer() -> Iterator[Issuer]:
    """Have an issuer meanwhile."""
    issuer = Issuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            issuer.asked += 1
            if issuer.answer is not None:
                issuer.answer(self)
                return
            body = json.dumps({"keys": [key.as_dict(private=False) for key in issuer.keys]}).encode()
            self.send_response(200 if issuer.up else 503)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    issuer.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield issuer
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
