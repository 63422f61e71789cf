"""What a dead man's switch outside is told, in the form of Healthchecks: a success, or a start and how it has ended.

The run's id is a UUID, as the form asks; it is made from the run's name, so that every attempt tells of the same run.
"""

import uuid
from typing import Final
from urllib.parse import urlencode, urlsplit

from shared.channel_http import Request
from shared.channels import Ping

_PATHS: Final = {"start": "/start", "success": "", "fail": "/fail", "log": "/log"}


def run_id(environment: str, run: str) -> str:
    """Give the id of a run, the same for the same name."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"matins/{environment}/{run}"))


def ping_request(target: Ping, event: str, identity: str, said: str) -> Request:
    """Give the request that tells a switch of an event: start, success, fail, or log, which changes nothing there.

    `said` is for who looks at it there.
    """
    parts = urlsplit(target.url)
    query = "&".join(filter(None, (parts.query, urlencode({"rid": identity}))))
    url = parts._replace(path=parts.path.rstrip("/") + _PATHS[event], query=query).geturl()
    return Request(url, said.encode(), {"content-type": "text/plain; charset=utf-8"}, target.ca_file)
