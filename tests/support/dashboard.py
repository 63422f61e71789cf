"""The dashboard for Grafana as a file, and what it names that others send."""

import json
from typing import Any, Final

from tests.architecture.sources import ROOT

DASHBOARD: Final[dict[str, Any]] = json.loads(
    (ROOT / "deploy" / "observe" / "grafana" / "matins.json").read_text(encoding="utf-8")
)
# Of RabbitMQ's own plugin, https://www.rabbitmq.com/docs/prometheus; a test fetches each from a real broker.
RABBITMQ: Final[dict[str, frozenset[str]]] = {
    "rabbitmq_detailed_queue_messages_ready": frozenset({"vhost", "queue"}),
    "rabbitmq_detailed_queue_messages_unacked": frozenset({"vhost", "queue"}),
    "rabbitmq_detailed_queue_consumers": frozenset({"vhost", "queue"}),
    "rabbitmq_global_messages_redelivered_total": frozenset({"protocol", "queue_type"}),
    "rabbitmq_global_messages_dead_lettered_delivery_limit_total": frozenset({"queue_type", "dead_letter_strategy"}),
    "rabbitmq_global_messages_dead_lettered_rejected_total": frozenset({"queue_type", "dead_letter_strategy"}),
    "rabbitmq_alarms_memory_used_watermark": frozenset(),
    "rabbitmq_alarms_free_disk_space_watermark": frozenset(),
}
# Of Prometheus itself: whether a target answers, and which rules fire.
BESIDE: Final[dict[str, frozenset[str]]] = {
    "up": frozenset({"job", "instance"}),
    "ALERTS": frozenset({"alertname", "alertstate", "severity"}),
}


def panels() -> list[dict[str, Any]]:
    """Give every panel that shows something."""
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def expressions() -> list[str]:
    """Give every expression that Prometheus is asked, as it is written."""
    asked = [target["expr"] for panel in panels() for target in panel["targets"] if "expr" in target]
    return asked + [one["expr"] for one in DASHBOARD["annotations"]["list"]]


def filled_in(expression: str) -> str:
    """Give an expression as Grafana asks it, with all jobs chosen."""
    return expression.replace("$job", ".*").replace("$__rate_interval", "1m")
