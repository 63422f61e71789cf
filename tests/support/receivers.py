"""Receivers of alerts for tests: an HTTP server that answers as it is told to, and a mail server."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

from tests.support.certificates import Certificate

Answer = Callable[[BaseHTTPRequestHandler], None]


@dataclass(frozen=True, slots=True)
class Received:
    """A request as it came."""

    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Its body, read."""
        return json.loads(self.body)


@dataclass
class Receiver:
    """An HTTP server; `answer` is what it does with a request, which is kept before."""

    port: int = 0
    scheme: str = "http"
    requests: list[Received] = field(default_factory=list)
    answer: Answer | None = None
    arrived: threading.Condition = field(default_factory=threading.Condition)

    def url(self, path: str = "/") -> str:
        """Give the address of a path."""
        return f"{self.scheme}://localhost:{self.port}{path}"

    def keep(self, request: Received) -> None:
        """Keep a request, and tell who waits."""
        with self.arrived:
            self.requests.append(request)
            self.arrived.notify_all()

    def wait_for(self, count: int, seconds: float = 30.0) -> list[Received]:
        """Wait for so many requests; for a thread beside the test's loop."""
        with self.arrived:
            assert self.arrived.wait_for(lambda: len(self.requests) >= count, seconds), self.requests
            return list(self.requests)

    def silent_for(self, seconds: float) -> int:
        """Wait until nothing has come for so long, and give how many requests there were."""
        with self.arrived:
            while self.arrived.wait(seconds):
                pass
            return len(self.requests)


def answering(status: int, headers: dict[str, str] | None = None, body: bytes = b"ok") -> Answer:
    """Answer always the same."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        for name, value in (headers or {}).items():
            handler.send_header(name, value)
        handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        with suppress(OSError):
            handler.wfile.write(body)

    return answer


@contextmanager
def http_receiver(certificate: Certificate | None = None) -> Iterator[Receiver]:
    """Have a receiver meanwhile; over TLS with a certificate."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            received = Received(
                self.path, {name.lower(): value for name, value in self.headers.items()}, self.rfile.read(length)
            )
            receiver.keep(received)
            (receiver.answer or answering(200))(self)

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Say nothing of clients that hang up."""

    server = Server(("127.0.0.1", 0), Handler)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        server.socket = context.wrap_socket(server.socket, server_side=True)
        receiver.scheme = "https"
    receiver.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class Mailbox:
    """What a mail server has taken; `refusal` is what it answers instead of taking it."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    encrypted: list[bool] = field(default_factory=list)
    logins: list[tuple[str, str]] = field(default_factory=list)
    refusal: str = ""

    async def handle_DATA(self, _server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - as aiosmtpd calls it
        """Take a mail."""
        if self.refusal:
            return self.refusal
        content = envelope.content
        assert isinstance(content, bytes)
        self.mails.append(message_from_bytes(content, policy=default))
        self.recipients.append(list(envelope.rcpt_tos))
        self.encrypted.append(session.ssl is not None)
        return "250 taken"

    def authenticate(self, _server: Any, _session: Any, _envelope: Any, _mechanism: str, given: Any) -> AuthResult:
        """Let everybody in who gives a password."""
        self.logins.append((given.login.decode(), given.password.decode()))
        return AuthResult(success=True)


class _OnFreePort(Controller):
    """A mail server on a port that the system gives, which is known only once it listens."""

    def _trigger_server(self) -> None:
        server: Any = self.server
        self.port = server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call] # as the server's library has it


@contextmanager
def mail_server(certificate: Certificate | None = None) -> Iterator[Mailbox]:
    """Have a mail server meanwhile; with a certificate it takes nothing without STARTTLS, and asks who it is."""
    mailbox = Mailbox()
    options: dict[str, Any] = {}
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate.certificate, certificate.key)
        options = {
            "tls_context": context,
            "require_starttls": True,
            "auth_required": True,
            "authenticator": mailbox.authenticate,
        }
    controller = _OnFreePort(mailbox, hostname="127.0.0.1", port=0, data_size_limit=10**6, **options)
    controller.start()
    mailbox.port = controller.port
    try:
        yield mailbox
    finally:
        controller.stop(no_assert=True)
