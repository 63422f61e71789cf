"""How the channels of alerts fare: what waits, what was given up, and a test message through each."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import anyio

from schemas.occurrence import Identity, format_instant
from shared import clock
from shared.channel_send import send
from shared.channels import Channel
from shared.notice import trial_notice
from shared.postgres import Session
from shared.sql_files import statement

CHANNEL_STATES = statement("trigger", "channel_states")
UNDELIVERED = statement("trigger", "undelivered")

DAYS = 7
MOST_SHOWN = 100
# A message that is younger may just be on its way.
ON_ITS_WAY = timedelta(minutes=2)


async def channel_states(session: Session, days: int = DAYS, *, now: datetime | None = None) -> list[dict[str, Any]]:
    """Give how each known channel fares; `days` is how far back one looks for what was given up."""
    rows = [dict(row) for row in await session.fetch(CHANNEL_STATES, days, now)]
    return [row | {"late": row["since"] is not None and row["now"] - row["since"] > ON_ITS_WAY} for row in rows]


async def channel_problems(session: Session, days: int = DAYS, *, now: datetime | None = None) -> list[str]:
    """Say what is not well with the channels, a line for each."""
    problems = []
    for one in await channel_states(session, days, now=now):
        if one["late"]:
            why = one["error"] or "no process that declares the channel delivers"
            since = format_instant(one["since"].replace(microsecond=0))
            problems.append(f"channel {one['name']}: {one['waiting']} messages wait since {since}: {why}")
        if one["given_up"]:
            problems.append(f"channel {one['name']}: {one['given_up']} messages were given up: {one['given_up_error']}")
    return problems


async def undelivered(session: Session, days: int = DAYS, limit: int = MOST_SHOWN) -> list[dict[str, Any]]:
    """Give the messages that wait or were given up, the latest first."""
    found = []
    for row in await session.fetch(UNDELIVERED, days, limit):
        names = ("channel", "event", "state", "created_at", "attempts", "not_before", "ended_at", "error")
        about = {name: (row["body"] or {}).get(name) for name in ("kind", "subject")}
        if row["job"] is not None:
            about = {"kind": "run", "subject": str(Identity(row["job"], row["scheduled_at"], row["variant"]))}
        found.append({name: row[name] for name in names} | about)
    return found


async def try_channels(channels: Sequence[Channel], environment: str) -> dict[str, str]:
    """Send a test message through each channel at once; give '' or what went wrong, by channel."""
    at = clock.utc_now()
    notice = trial_notice(f"matins-{environment}-test-{at:%Y%m%dT%H%M%S%f}", environment, at)
    outcomes: dict[str, str] = {}

    async def attempt(channel: Channel) -> None:
        outcomes[channel.name] = (await send(channel, notice, at)).error

    async with anyio.create_task_group() as group:
        for channel in channels:
            group.start_soon(attempt, channel)
    return {channel.name: outcomes[channel.name] for channel in channels}
