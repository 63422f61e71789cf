"""The fleet: which processes live and which vanished, what the queues hold, what is parked, and how the servers are."""

from dataclasses import dataclass
from typing import Any, Final

from schemas.occurrence import Identity
from shared.sql_files import statement
from shared.topology_versions import key_of
from trigger.console.broker_view import Broker, view_broker
from trigger.console.place import GLANCE_SECONDS, STALE_SECONDS, Asked, Page, Values
from trigger.fleet_state import read_fleet
from trigger.queues import QueueLine

DEAD_LATELY = statement("trigger.console", "dead_lately")

MOST_VANISHED: Final = 30
MOST_DEAD: Final = 10


@dataclass(frozen=True, slots=True)
class QueueRow:
    """One queue: what it is for, what `queues` says of it, and what the management interface adds, or nothing.

    `attention` says what is wrong with it, or is ''.
    """

    line: QueueLine
    told: dict[str, Any]
    attention: str


async def read(asked: Asked) -> Values:
    """Read the page."""
    async with (
        asked.place.database.session() as session,
        session.transaction(isolation="repeatable_read", readonly=True),
    ):
        fleet = await read_fleet(session)
        dead = await session.fetch(DEAD_LATELY, MOST_DEAD)
    broker = await view_broker(asked.place)
    prefix = asked.place.settings.prefix
    return {
        "title": "Fleet",
        "fleet": fleet,
        "vanished": fleet.vanished[:MOST_VANISHED],
        "broker": broker,
        "managed": broker.managed.value if broker.managed else None,
        "queues": [_row(line, broker, prefix) for line in broker.lines],
        "dead": [
            {"occurrence": str(Identity(one["job"], one["scheduled_at"], one["variant"])), **dict(one)} for one in dead
        ],
    }


def _row(line: QueueLine, broker: Broker, prefix: str) -> QueueRow:
    told = broker.managed_queues.get(line.queue, {})
    return QueueRow(line, told, _attention(line, is_work=key_of(prefix, line.queue) is not None))


def _attention(line: QueueLine, *, is_work: bool) -> str:
    """Say what is wrong with a queue, if anything."""
    if line.messages is None:
        return "missing: run migrate"
    if line.messages and not line.current:
        return "old, and not empty"
    if line.messages and is_work and not line.consumers:
        return "nobody consumes it"
    return ""


PAGE: Final = Page("/fleet", "fleet.html", read, "fleet", frozenset(), GLANCE_SECONDS, STALE_SECONDS)
