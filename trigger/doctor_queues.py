"""What `doctor` says of old queues: those that migrate once made and that these settings and jobs no longer need."""

from collections.abc import AsyncIterator
from typing import Any

from shared.broker import BrokerUnavailable
from shared.broker_inspection import inspect_broker
from shared.settings import Settings
from shared.topology import Topology
from trigger.doctor_broker import LONGEST_LOOK
from trigger.doctor_finding import Finding, ok, warn


async def check_old_queues(
    settings: Settings, topology: Topology, recorded: dict[str, Any] | None
) -> AsyncIterator[Finding]:
    """Give a finding for each old queue; none when the broker cannot be asked, which its own check says."""
    old = sorted(set((recorded or {}).get("queues", {})) - set(topology.queue_names))
    seconds = min(settings.broker_timeout, LONGEST_LOOK).total_seconds()
    try:
        facts = await inspect_broker(settings.secret("broker_url"), old, timeout=seconds)
    except BrokerUnavailable:
        return
    for name in old:
        depth = facts.queues[name]
        if depth is not None and depth.messages:
            told = f"{name}: {depth.messages} messages still wait, {depth.consumers} consumers"
            yield warn("old queues", told, "keep workers that declare its jobs until it is empty, then `retire-queue`")
        else:
            yield ok("old queues", f"{name} is empty: once nobody counts on it, `retire-queue` takes it away")
