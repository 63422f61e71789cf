"""RabbitMQ, as the rest of the code sees it: parts that are made or looked at, a publisher, and a consumer.

This module and its `broker_*` siblings are the only ones that know the driver.
"""

from shared.broker_connection import BrokerUnavailable
from shared.broker_consumer import Consumer
from shared.broker_delivery import Delivery
from shared.broker_publisher import MessageTooLarge, Outgoing, Publisher, PublishFailed, QueueDepth
from shared.broker_topology import (
    Mismatch,
    TopologyError,
    TopologyMismatch,
    TopologyMissing,
    WrongEnvironment,
    check_topology,
    declare_topology,
)

__all__ = [
    "BrokerUnavailable",
    "Consumer",
    "Delivery",
    "MessageTooLarge",
    "Mismatch",
    "Outgoing",
    "PublishFailed",
    "Publisher",
    "QueueDepth",
    "TopologyError",
    "TopologyMismatch",
    "TopologyMissing",
    "WrongEnvironment",
    "check_topology",
    "declare_topology",
]
