"""Whether a server answers: the first bytes of its own protocol, since an open port alone says little."""

import base64
import json
import os
import socket
import struct
import urllib.error
import urllib.parse
import urllib.request

SECONDS = 2.0
POSTGRES_PROTOCOL = 196608
DOCKER_ADDRESS = "unix:///var/run/docker.sock"
AMQP_HEADER = b"AMQP\x00\x00\x09\x01"


def postgres_answers(host: str, port: int) -> bool:
    """Tell whether PostgreSQL asks for a password, which it does only once it accepts connections."""
    body = struct.pack("!I", POSTGRES_PROTOCOL) + b"user\x00postgres\x00database\x00postgres\x00\x00"
    return first_byte(host, port, struct.pack("!I", len(body) + 4) + body) == b"R"


def amqp_answers(host: str, port: int) -> bool:
    """Tell whether RabbitMQ begins a connection."""
    return first_byte(host, port, AMQP_HEADER) == b"\x01"


def docker_answers() -> bool:
    """Tell whether a Docker engine listens at DOCKER_HOST or at its usual place."""
    address = urllib.parse.urlsplit(os.environ.get("DOCKER_HOST") or DOCKER_ADDRESS)
    family = socket.AF_UNIX if address.scheme == "unix" else socket.AF_INET
    try:
        with socket.socket(family) as connection:
            connection.settimeout(SECONDS)
            connection.connect(address.path if address.scheme == "unix" else (address.hostname, address.port))
    except (OSError, TypeError):
        return False
    return True


def first_byte(host: str, port: int, greeting: bytes) -> bytes:
    """Send a greeting; give the first byte of the answer, none if there was no answer."""
    try:
        with socket.create_connection((host, port), timeout=SECONDS) as connection:
            connection.sendall(greeting)
            return connection.recv(1)
    except OSError:
        return b""


def management_answers(management_url: str) -> bool:
    """Tell whether the management interface describes its node."""
    try:
        management(management_url, "GET", "/api/overview")
    except (OSError, ValueError):
        return False
    return True


def management(management_url: str, method: str, path: str, body: object = None) -> object:
    """Call the management interface of RabbitMQ: give the decoded JSON of its answer, None for an empty one.

    Raises urllib.error.HTTPError for a refusal and another OSError when nothing answers.
    """
    address = urllib.parse.urlsplit(management_url)
    user = f"{urllib.parse.unquote(address.username or '')}:{urllib.parse.unquote(address.password or '')}"
    request = urllib.request.Request(  # noqa: S310 - the address is the project's own server
        f"{address.scheme}://{address.hostname}:{address.port}{path}",
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={
            "Authorization": f"Basic {base64.b64encode(user.encode()).decode()}",
            "Content-Type": "application/json",
        },
    )
    with urllib.request.urlopen(request, timeout=10 * SECONDS) as answer:  # noqa: S310 - the same address
        text = answer.read()
    return json.loads(text) if text else None
