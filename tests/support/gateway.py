"""The gateway of compose.yaml as a process of its own, the names that it looks up, and what is behind it."""

import re
import shutil
import signal
import socket
import socketserver
import struct
import subprocess
import threading
import urllib.request
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Self

from examples.servers.installer import find_nginx
from examples.servers.ports import LOOPBACK, free_ports
from examples.servers.process import Process, as_ordinary_user, give_away, private_folder
from examples.servers.server import wait_until
from tests.architecture.sources import ROOT

TEMPLATE = ROOT / "deploy" / "gateway" / "gateway.conf.template"
PERSON, PASSWORD = "operator", "the password of this test"
START_SECONDS = 10.0
STOP_SECONDS = 5.0
# What surrounds the template in the image, without its paths.
SURROUNDINGS = """daemon off;
worker_processes 1;
pid {folder}/pid;
error_log stderr info;
events {{ worker_connections 64; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    include {folder}/gateway.conf;
}}
"""


def rendered(template: str, values: Mapping[str, str]) -> str:
    """Fill in a template as the image does: `${NAME}` of the names that are given, and nothing else."""
    return re.sub(r"\$\{(\w+)\}", lambda found: values.get(found[1], found[0]), template)


@dataclass(frozen=True)
class Seen:
    """A request as it came to a server behind the gateway."""

    method: str
    path: str
    headers: Message
    body: bytes


@dataclass
class Behind:
    """A server on one address; with `breaks` it hangs up on whatever it has read."""

    address: str
    port: int = 0
    breaks: bool = False
    seen: list[Seen] = field(default_factory=list)

    def __enter__(self) -> Self:
        self._server = ThreadingHTTPServer((self.address, self.port), _handler_for(self))
        self._server.daemon_threads = True
        self.port = self._server.server_port
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _handler_for(behind: Behind) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._take()

        def do_POST(self) -> None:
            self._take()

        def do_PUT(self) -> None:
            self._take()

        def _take(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            behind.seen.append(Seen(self.command, self.path, self.headers, body))
            if behind.breaks:
                self.close_connection = True
                return
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"{behind.address}:{behind.port}".encode())

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002, ARG002 - as the base class has it
            return

    return Handler


class Names:
    """A name server that answers every question with `addresses`, and says that this holds for ten minutes."""

    def __init__(self, *addresses: str) -> None:
        self.addresses: Iterable[str] = addresses
        self.asked = 0
        names = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                question, answers_to = self.request
                answers_to.sendto(names.answer(question), self.client_address)

        self._server = socketserver.ThreadingUDPServer((LOOPBACK, 0), Handler)
        self.port = int(self._server.server_address[1])

    def answer(self, question: bytes) -> bytes:
        """Give the packet that answers a packet with one question."""
        self.asked += 1
        end = question.index(b"\0", 12) + 5
        addresses = list(self.addresses)
        head = question[:2] + struct.pack("!HHHHH", 0x8180, 1, len(addresses), 0, 0)
        record = struct.pack("!HHHIH", 0xC00C, 1, 1, 600, 4)
        return head + question[12:end] + b"".join(record + socket.inet_aton(one) for one in addresses)

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class Gateway:
    """nginx with the template, filled in for ports of this machine. As a context manager it runs."""

    def __init__(self, names: int, console: int, endpoint: int) -> None:
        program = find_nginx()
        assert program is not None, "this needs nginx: apt-get install nginx-light"
        self.port = free_ports(1)[0]
        self._folder = private_folder("gateway")
        values = {
            "GATEWAY_PORT": f"{LOOPBACK}:{self.port}",
            "GATEWAY_RESOLVER": f"{LOOPBACK}:{names}",
            "GATEWAY_TRIGGERS": "trigger.test",
            "GATEWAY_CONSOLE_PORT": str(console),
            "GATEWAY_ENDPOINT_PORT": str(endpoint),
            "GATEWAY_PEOPLE": str(self._write("people", f"{PERSON}:{{PLAIN}}{PASSWORD}\n")),
        }
        self._write("gateway.conf", rendered(TEMPLATE.read_text(encoding="utf-8"), values))
        self._write("nginx.conf", SURROUNDINGS.format(folder=self._folder))
        self._command = [str(program), "-p", str(self._folder), "-e", "stderr", "-c", str(self._folder / "nginx.conf")]

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{LOOPBACK}:{self.port}"

    def judged(self) -> str:
        """Give what the program itself says of its configuration."""
        command = as_ordinary_user([*self._command, "-t"])
        return subprocess.run(command, capture_output=True, text=True, check=False).stderr

    def log(self) -> str:
        """Give what it has logged."""
        return self._process.log.read_text(encoding="utf-8")

    def __enter__(self) -> Self:
        self._process = Process(self._command, environment={}, log=self._folder / "log")
        wait_until(self._answers, START_SECONDS, self._process.last_lines)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end(signal.SIGQUIT, STOP_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        self._process.check()
        try:
            urllib.request.urlopen(f"{self.url}/-/healthy", timeout=1).close()  # noqa: S310 - the process of this test
        except OSError:
            return False
        return True

    def _write(self, name: str, text: str) -> Path:
        path = self._folder / name
        path.write_text(text, encoding="utf-8")
        give_away(path)
        return path
