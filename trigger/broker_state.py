"""What only RabbitMQ's management interface tells: what workers hold, rates, and whether a node is short of anything.

It counts by the second, so its numbers are some seconds old; what waits in a queue, the broker itself says newer.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.error import HTTPError

from trigger.management import fetch

_REFUSED: Final = frozenset({401, 403})
_QUEUE: Final = ("name", "messages_ready", "messages_unacknowledged", "consumers", "state", "message_stats")
_NODE: Final = (
    "name",
    "running",
    "mem_alarm",
    "mem_used",
    "mem_limit",
    "disk_free_alarm",
    "disk_free",
    "disk_free_limit",
)
_RATES: Final = {"published": "publish", "delivered": "deliver_get", "acknowledged": "ack", "redelivered": "redeliver"}


@dataclass(frozen=True, slots=True)
class Managed:
    """What was told: the release, queues by name and nodes; None for nodes that this user may not look at.

    A queue's `unacknowledged` are in somebody's hands; its rates are messages a second, None where none are counted.
    """

    version: str
    queues: dict[str, dict[str, Any]]
    nodes: list[dict[str, Any]] | None

    @property
    def alarms(self) -> list[str]:
        """Say which node is short of what; then the broker blocks who publishes."""
        found = []
        for node in self.nodes or ():
            short = [
                what for what, is_so in (("memory", node["mem_alarm"]), ("disk", node["disk_free_alarm"])) if is_so
            ]
            if short:
                found.append(f"{node['name']} is short of {' and '.join(short)}")
            elif not node["running"]:
                found.append(f"{node['name']} does not run")
        return found


async def read_managed(management_url: str, virtual_host: str, prefix: str) -> Managed:
    """Ask for the queues under a prefix, and for the nodes.

    Raises urllib.error.HTTPError for a refusal, another OSError when nothing answers, ValueError for no JSON.
    """
    overview = await fetch(management_url, "overview", columns=("rabbitmq_version",))
    listed = await fetch(management_url, "queues", virtual_host, columns=_QUEUE)
    queues = {one["name"]: _queue(one) for one in listed if one["name"].startswith(f"{prefix}.")}
    return Managed(str(overview.get("rabbitmq_version", "")), queues, await _nodes(management_url))


async def _nodes(management_url: str) -> list[dict[str, Any]] | None:
    try:
        listed = await fetch(management_url, "nodes", columns=_NODE)
    except HTTPError as error:
        if error.code in _REFUSED:
            return None
        raise
    return [{name: one.get(name) for name in _NODE} for one in listed]


def _queue(told: Mapping[str, Any]) -> dict[str, Any]:
    counted = told.get("message_stats") or {}
    rates = {name: (counted.get(f"{stem}_details") or {}).get("rate") for name, stem in _RATES.items()}
    return {
        "ready": told.get("messages_ready"),
        "unacknowledged": told.get("messages_unacknowledged"),
        "consumers": told.get("consumers"),
        "state": told.get("state"),
        **rates,
    }
