"""RabbitMQ's management API, as far as `doctor` and the console read it."""

import base64
import ssl
import urllib.parse
import urllib.request
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.error import HTTPError

import anyio.to_thread
import orjson

LONGEST_LOOK = 5.0


def virtual_host_of(broker_url: str) -> str:
    """Give the virtual host of an AMQP address."""
    return urllib.parse.unquote(urllib.parse.urlsplit(broker_url).path[1:]) or "/"


def user_of(broker_url: str) -> str:
    """Give the user of an AMQP address."""
    return urllib.parse.unquote(urllib.parse.urlsplit(broker_url).username or "guest")


async def fetch(management_url: str, *path: str, columns: Sequence[str] = ()) -> Any:
    """Read what the management interface says under a path of names, as decoded JSON; of each thing only `columns`.

    Raises urllib.error.HTTPError for a refusal, another OSError when nothing answers, ValueError for no JSON.
    """
    quoted = "/".join(urllib.parse.quote(name, safe="") for name in path)
    asked = f"?{urllib.parse.urlencode({'columns': ','.join(columns)})}" if columns else ""
    return await anyio.to_thread.run_sync(partial(_fetch, management_url, f"/api/{quoted}{asked}"))


def _fetch(management_url: str, path: str) -> Any:
    address = urllib.parse.urlsplit(management_url)
    port = f":{address.port}" if address.port else ""
    user = f"{urllib.parse.unquote(address.username or '')}:{urllib.parse.unquote(address.password or '')}"
    request = urllib.request.Request(  # noqa: S310 - the setting allows http and https only
        f"{address.scheme}://{address.hostname}{port}{path}",
        headers={"Authorization": f"Basic {base64.b64encode(user.encode()).decode()}"},
    )
    encrypted = _encryption(address.query) if address.scheme == "https" else None
    try:
        with urllib.request.urlopen(  # noqa: S310 - the same address
            request, timeout=LONGEST_LOOK, context=encrypted
        ) as answer:
            return orjson.loads(answer.read())
    except HTTPError as refusal:
        # It holds the connection for as long as somebody holds it.
        refusal.close()
        raise


def _encryption(query: str) -> ssl.SSLContext:
    """Verify the server by the files that the address names, else by the system's certificates."""
    files = dict(urllib.parse.parse_qsl(query))
    context = ssl.create_default_context(cafile=files.get("cafile"))
    if "certfile" in files:
        context.load_cert_chain(files["certfile"], files.get("keyfile"))
    return context
