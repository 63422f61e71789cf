"""The example's payment provider over HTTP: `python -m examples.billing.payments --port 0`.

The first line that it prints is its address; SIGTERM or SIGINT ends it. It keeps everything in memory.

- `POST /charges` with `Idempotency-Key` and `{"account": …, "occurrence": …}`: 201 and a receipt; 200 and the same
  receipt for a repeated call; 409 if the key came with another body.
- `GET /calls`: what was called and charged, in all and for each key.
- `POST /behaviour` with `{"account": … or "*", …}` and any field of `Behaviour`: how to treat the coming calls.
"""

import argparse
import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from examples.billing.provider import Answer, Behaviour, Provider

LARGEST_BODY = 64 * 1024
SILENT_SECONDS = 60.0


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], provider: Provider) -> None:
        super().__init__(address, _Conversation)
        self.provider = provider

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that went away."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Conversation(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = SILENT_SECONDS
    # One write per answer: headers and body in two would wait for the client's delayed acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True
    server: _Server

    def do_GET(self) -> None:
        """Answer GET /calls."""
        self._answer(
            Answer(200, self.server.provider.counts()) if self.path == "/calls" else _refusal(404, "no such path")
        )

    def do_POST(self) -> None:
        """Answer POST /charges and POST /behaviour."""
        body = self._body()
        if isinstance(body, Answer):
            self.close_connection = True
            self._answer(body)
        elif self.path == "/charges":
            self._answer(_charge(self.server.provider, self.headers.get("Idempotency-Key", ""), body))
        elif self.path == "/behaviour":
            self._answer(_behave(self.server.provider, body))
        else:
            self._answer(_refusal(404, "no such path"))

    def log_message(self, *_: object) -> None:
        """Keep no log: GET /calls tells."""

    def _body(self) -> dict[str, Any] | Answer:
        length = self.headers.get("Content-Length", "")
        if not length.isdecimal():
            return _refusal(411, "Content-Length is missing")
        if int(length) > LARGEST_BODY:
            return _refusal(413, f"the body is larger than {LARGEST_BODY} bytes")
        try:
            body = json.loads(self.rfile.read(int(length)))
        except (ValueError, RecursionError):
            return _refusal(400, "the body is not JSON")
        return body if isinstance(body, dict) else _refusal(400, "the body is not an object")

    def _answer(self, answer: Answer) -> None:
        body = json.dumps(answer.body).encode()
        self.send_response(answer.status)
        for name, value in {"Content-Type": "application/json", **answer.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()


def _charge(provider: Provider, key: str, body: dict[str, Any]) -> Answer:
    if not key:
        return _refusal(400, "Idempotency-Key is missing")
    if set(body) != {"account", "occurrence"} or not all(isinstance(value, str) for value in body.values()):
        return _refusal(422, "the body needs account and occurrence, both text")
    return provider.charge(key, body)


def _behave(provider: Provider, body: dict[str, Any]) -> Answer:
    account = body.pop("account", None)
    if not isinstance(account, str):
        return _refusal(422, "account is missing")
    try:
        provider.behave(account, Behaviour(**body))
    except (TypeError, ValueError) as error:
        return _refusal(422, str(error))
    return Answer(200, {"account": account})


def _refusal(status: int, reason: str) -> Answer:
    return Answer(status, {"error": reason})


@contextmanager
def running_payments(provider: Provider, host: str = "127.0.0.1", port: int = 0) -> Iterator[str]:
    """Serve a provider from a thread meanwhile, and give its address; port 0 takes a free one."""
    with _Server((host, port), provider) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,), name="payments", daemon=True)
        thread.start()
        try:
            yield f"http://{host}:{server.server_port}"
        finally:
            provider.close()
            server.shutdown()
            thread.join()


def main(arguments: list[str]) -> int:
    """Serve until SIGTERM or SIGINT; give the exit code."""
    parser = argparse.ArgumentParser(
        prog="python -m examples.billing.payments", description="A small payment provider."
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (%(default)s)")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one (%(default)s)")
    chosen = parser.parse_args(arguments)
    ending = {signal.SIGTERM, signal.SIGINT}
    # Blocked before any thread exists, so that every thread inherits it and only `sigwait` gets the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, ending)
    with running_payments(Provider(), chosen.host, chosen.port) as address:
        print(address, flush=True)
        signal.sigwait(ending)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
