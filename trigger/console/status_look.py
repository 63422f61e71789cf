"""What `status` tells, counted behind the pages: the accounts of what runs are many, and are counted for no page."""

from typing import Any

from trigger.console.broker_look import queues_kept
from trigger.console.keeping import Kept
from trigger.console.place import GLANCE_SECONDS, STALE_SECONDS, Place
from trigger.status import read_status


async def status_kept(place: Place) -> Kept:
    """Give the Status that was read last, and when; read anew behind it where it is not new. Raises Unseen."""

    async def read() -> Any:
        queues = queues_kept(place)
        async with place.database.session() as session:
            return await read_status(session, place.settings, look_at_queues=queues)

    return await place.keeping.get("status", read, fresh_for=GLANCE_SECONDS, stale_for=STALE_SECONDS)
