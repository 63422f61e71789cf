"""Sending the audit trail's head outside: to each webhook channel that asks for it with `audit = true`.

The newest head stands for all before it, so nothing is queued: a receiver that was away gets the newest one once it is
back, and one trigger at a time tells. What is sent is signed as alerts are; a head that is sent again has the same id.
"""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

import orjson

from shared.channel_http import SEND_SECONDS, Request, post
from shared.channels import Channel, Webhook
from shared.fleet import take_lease
from shared.logs import FailureLog, logger
from shared.notify import KnownChannels
from shared.postgres import Database, database_now
from shared.start import Prepared
from shared.webhook_signing import signed_headers
from trigger.seal_audit import CHAIN_HEAD

LEASE_NAME = "tell audit heads"
_log = logger(__name__)


@dataclass(slots=True)
class Heads:
    """What a trigger tells of the chain: `told` is the position that each channel has taken from this process."""

    prepared: Prepared
    database: Database
    told: dict[str, int] = field(default_factory=dict)
    channels: KnownChannels = field(init=False)
    failures: FailureLog = field(init=False)

    def __post_init__(self) -> None:
        """Read the channels. Raises FaultySettings."""
        self.channels = KnownChannels(lambda: self.prepared.settings.secret("channels"))
        self.failures = FailureLog(_log)

    async def tell_pass(self) -> int:
        """Send the newest head to each channel that has not taken it; give to how many."""
        self.failures.report()
        known = [self.channels.current(name) for name in self.channels.names]
        wanting = [one for one in known if one is not None and isinstance(one.target, Webhook) and one.target.audit]
        if not wanting:
            return 0
        lease = timedelta(seconds=2 * SEND_SECONDS * len(wanting))
        async with self.database.session() as session:
            if not await take_lease(session, LEASE_NAME, self.prepared.instance.id, lease):
                return 0
            head: Any = await session.fetchrow(CHAIN_HEAD)
            now = await database_now(session)
        waiting = [one for one in wanting if self.told.get(one.name, 0) < head["position"]]
        return sum([await self._send(one, head, now) for one in waiting])

    async def _send(self, channel: Channel, head: Any, now: Any) -> bool:
        target = channel.target
        if not isinstance(target, Webhook):
            return False
        environment, position, hashed = self.prepared.settings.environment, head["position"], head["hash"].hex()
        data = {"environment": environment, "position": position, "hash": hashed, "anchor": f"{hashed}@{position}"}
        body = orjson.dumps({"type": "audit.sealed", "timestamp": now, "data": data})
        identity = f"matins-{environment}-audit-{position}-{hashed[:16]}"
        signed = signed_headers(target.keys, identity, int(now.timestamp()), body)
        headers = {"content-type": "application/json", **signed}
        outcome = await post(Request(target.url, body, headers, target.ca_file), now=now)
        if outcome.delivered:
            self.told[channel.name] = position
        else:
            told = {"channel": channel.name, "position": position, "reason": outcome.error}
            self.failures.failure("an audit head was not delivered", error_class=channel.name, **told)
        return outcome.delivered
