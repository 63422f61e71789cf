"""Parked messages: what the broker gave up on, kept for people to read, each compared with what the tables say of it.

To look takes each message from the queue and puts it back in its place, which counts as a delivery. So looking is a
person's act: pages that refresh themselves ask for the number alone.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from schemas.message import NewerMessage, UnreadableMessage, WorkMessage, decode
from schemas.occurrence import Identity
from shared.broker import Delivery
from shared.broker_parked import parking
from shared.masking import plain
from shared.postgres import Session, UnfitData
from shared.sql_files import statement
from shared.topology import Topology
from shared.topology_versions import key_of

PARKED_MESSAGE = statement("trigger", "parked_message")

LONGEST_ID = 255
SHOWN_ACCOUNTS = 5


@dataclass(frozen=True, slots=True)
class Parked:
    """One parked message; `message` is its id, '' without one.

    `died_of`, `died_in` (a queue) and `died_at` are the broker's word, `accounts` the first SHOWN_ACCOUNTS of `count`.
    `waiting` of them would still be run by it. `problem` says why it cannot be published again, and is '' if it can.
    """

    message: str
    died_of: str
    died_in: str
    died_at: datetime | None
    job: str | None = None
    occurrence: str | None = None
    generation: int | None = None
    count: int = 0
    accounts: tuple[str, ...] = ()
    waiting: int = 0
    problem: str = ""

    @property
    def would(self) -> str:
        """What it would do if it were published again."""
        if self.problem:
            return f"no: {self.problem}"
        if not self.waiting:
            return "it would do nothing: none of its accounts waits; `rerun` runs those that did not succeed"
        return f"{self.waiting} of its {self.count} accounts would be run"


@dataclass(frozen=True, slots=True)
class Bound:
    """Where a parked message belongs: what it says, its occurrence, and the routing key to its job's queue."""

    message: WorkMessage
    identity: Identity
    routing_key: str


async def list_parked(
    session: Session, url: str, topology: Topology, recorded: Mapping[str, Any], limit: int, *, timeout: float
) -> tuple[list[Parked], int]:
    """Give the first `limit` parked messages and how many there are, and leave them there. Raises BrokerUnavailable."""
    found: list[Parked] = []
    async with parking(url, topology.parked_queue, timeout=timeout) as queue:
        while len(found) < limit and (delivery := await queue.take()) is not None:
            found.append((await judge(session, delivery, topology, recorded))[0])
        return found, max(queue.waiting, len(found))


async def judge(
    session: Session, delivery: Delivery, topology: Topology, recorded: Mapping[str, Any]
) -> tuple[Parked, Bound | None]:
    """Say what a message is, and where it belongs; None where nobody can say."""
    death = delivery.death
    known = (id_of(delivery), plain(death.reason, LONGEST_ID), plain(death.queue, LONGEST_ID), death.at)
    try:
        message = decode(delivery.body)
    except (UnreadableMessage, NewerMessage) as error:
        return Parked(*known, problem=f"it cannot be read: {plain(str(error), 200)}"), None
    key = (message.occurrence_id, message.job, message.scheduled_at, message.generation, list(message.accounts))
    try:
        row: Any = await session.fetchrow(PARKED_MESSAGE, *key)
    except UnfitData as error:
        return Parked(*known, problem=f"it names nothing that can be a row: {plain(str(error), 200)}"), None
    told = (message.generation, len(message.accounts), message.accounts[:SHOWN_ACCOUNTS])
    if row is None:
        job = plain(message.job, LONGEST_ID)
        return Parked(*known, job, None, *told, problem="its occurrence is not in this database"), None
    identity = Identity(message.job, message.scheduled_at, row["variant"])
    parked = Parked(*known, message.job, str(identity), *told, row["waiting"])
    routing_key = _routing_key(delivery.routing_key, row["key"], topology, recorded)
    if routing_key is None:
        return replace(parked, problem="migrate has made no queue for its job"), None
    return parked, Bound(message, identity, routing_key)


def id_of(delivery: Delivery) -> str:
    """Give a message's id as it is listed and named; '' without one."""
    return plain(delivery.message_id or "", LONGEST_ID)


def _routing_key(own: str, key: str | None, topology: Topology, recorded: Mapping[str, Any]) -> str | None:
    """Give a key that leads to a queue of the job's: the message's own if it does, since workers consume them all."""
    leading = [
        routing_key
        for exchange, queue, routing_key in recorded.get("bindings", [])
        if exchange == topology.work_exchange and key is not None and key_of(topology.prefix, queue) == key
    ]
    return own if own in leading else leading[-1] if leading else None
