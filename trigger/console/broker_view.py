"""The broker, as the page of the fleet shows it: looked at behind the page, which never waits for it.

Of what could not be seen again, what was seen last stays, with the time at which it was so.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeVar

import anyio

from shared.errors import MatinsError
from shared.masking import mask
from shared.settings import Settings
from shared.sql_files import statement
from shared.terminal import given
from shared.topology import Topology
from trigger.broker_state import Managed, read_managed
from trigger.console.broker_look import LOOK_SECONDS
from trigger.console.keeping import Unseen
from trigger.console.place import Place
from trigger.management import virtual_host_of
from trigger.queue_look import LONGEST_LOOK
from trigger.queues import QueueLine, look_at_queues, read_known

JOB_QUEUES = statement("trigger.console", "job_queues")

# A page that is the first to ask waits no longer than this for the broker; the next one has the answer.
FIRST_SECONDS: Final = 0.5
# By which name they are kept.
QUEUES: Final = "fleet queues"
_T = TypeVar("_T")


class Away(OSError):
    """The broker, or its management interface, does not answer; it is asked again."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of something, and when; `value` is None for nothing yet. `problem` says why it is not newer."""

    value: Any = None
    at: datetime | None = None
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Broker:
    """The queues as AMQP shows them, a list of QueueLine; and what the management interface tells, a Managed.

    Each is None where its address is not set. `parked` is the parked queue's name.
    """

    queues: Look | None
    managed: Look | None
    parked: str

    @property
    def managed_queues(self) -> dict[str, dict[str, Any]]:
        """What the management interface tells of each queue."""
        told: Managed | None = self.managed.value if self.managed else None
        return told.queues if told else {}

    @property
    def parked_count(self) -> int | None:
        """How many messages are parked, as far as was seen."""
        found = [one.messages for one in self.lines if one.queue == self.parked]
        return found[0] if found else None

    @property
    def lines(self) -> list[QueueLine]:
        """The queues as they were seen last."""
        return (self.queues.value if self.queues else None) or []


async def view_broker(place: Place) -> Broker:
    """Give what is known of the broker now."""
    settings = place.settings
    parked = f"{settings.prefix}.dead.parked"
    if not given(settings, "broker_url"):
        return Broker(None, None, parked)
    queues = await _look(place, QUEUES, lambda: read_queues(place))
    managed = None
    if given(settings, "management_url"):
        managed = await _look(place, "fleet management", lambda: _read_managed(settings))
    return Broker(queues, managed, parked)


async def _look(place: Place, name: str, read: Callable[[], Awaitable[_T]]) -> Look:
    """Give what was seen last, and have it looked at again behind the page."""
    with anyio.move_on_after(FIRST_SECONDS):
        try:
            kept = await place.keeping.get(name, read, fresh_for=LOOK_SECONDS, stale_for=float("inf"))
        except Unseen as error:
            return Look(problem=str(error))
        return Look(kept.value, kept.read_at, kept.problem)
    return Look(problem="it has not answered yet")


async def read_queues(place: Place) -> list[QueueLine]:
    """Look at every recorded queue, as `queues` does; without a connection to the database meanwhile. Raises Away."""
    settings = place.settings
    async with place.database.session() as session:
        known = await read_known(session)
        keys = [row["queue"] for row in await session.fetch(JOB_QUEUES)]
    seconds = min(settings.broker_timeout, LONGEST_LOOK).total_seconds()
    try:
        topology = Topology(
            settings.prefix, settings.environment, frozenset(keys), settings.delays, settings.delivery_limit
        )
        return await look_at_queues(known, settings.secret("broker_url"), topology, timeout=seconds)
    except MatinsError as error:
        raise Away(mask(str(error))) from error


async def _read_managed(settings: Settings) -> Managed:
    virtual_host = virtual_host_of(settings.secret("broker_url"))
    try:
        return await read_managed(settings.secret("management_url"), virtual_host, settings.prefix)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # What answers there need not be RabbitMQ.
        raise Away(mask(f"{type(error).__name__}: {error}")) from error
