"""Telling a switch outside that the watch looks, so that the end of everything is seen: who is dead cannot say so.

It is told only of a pass that was committed: what the database says of the last look is asked, not the process that
looked. One process tells it for all. Where it fails, the next turn tells it; a switch waits for longer than that.
"""

from datetime import datetime, timedelta
from typing import Any, Final

from shared.channel_http import Outcome, post
from shared.channels import Channel, Ping
from shared.ping import ping_request, run_id
from shared.postgres import Database
from shared.sql_files import statement

TAKE_PING = statement("shared", "take_ping")

# Beside a look that is made every 15 seconds, a switch hears twice a minute.
LOOKS_A_PING: Final = 2


async def ping_watch_pass(
    database: Database,
    channel: Channel,
    target: Ping,
    environment: str,
    interval: timedelta,
    *,
    now: datetime | None = None,
) -> Outcome | None:
    """Tell it, if somebody has looked since it was told and it is time; None otherwise.

    `interval` is how often the watch looks. `now` stands for the database's clock, in tests.
    """
    async with database.session() as session:
        turn: Any = await session.fetchrow(TAKE_PING, channel.name, LOOKS_A_PING * interval, now)
    if turn is None:
        return None
    looked_at = turn["looked_at"].isoformat()
    said = f"Matins, {environment}: the watch looked at {looked_at}\n"
    return await post(ping_request(target, "success", run_id(environment, f"watch/{looked_at}"), said), now=turn["now"])
