"""RabbitMQ, as the rest of the code sees it: parts that are made or looked at, a publisher, and a consumer.

This module and its `broker_*` siblings are the only ones that know the driver.
"""

from shared.broker_consumer import Consumer
from shared.broker_delivery import HANDED_ON, Delivery
from shared.broker_errors import BrokerRefuses, BrokerUnavailable
from shared.broker_outgoing import MessageTooLarge, Outgoing, PublishFailed, PublishRefused
from shared.broker_publisher import Publisher, QueueDepth
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
    "HANDED_ON",
    "BrokerRefuses",
    "BrokerUnavailable",
    "Consumer",
    "Delivery",
    "MessageTooLarge",
    "Mismatch",
    "Outgoing",
    "PublishFailed",
    "PublishRefused",
    "Publisher",
    "QueueDepth",
    "TopologyError",
    "TopologyMismatch",
    "TopologyMissing",
    "WrongEnvironment",
    "check_topology",
    "declare_topology",
]
