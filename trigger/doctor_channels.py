"""What `doctor` sees of the channels through which alerts are told."""

from collections.abc import AsyncIterator

from schemas.occurrence import format_instant
from shared.postgres import Session
from trigger.doctor_finding import Finding, fail, ok, warn
from trigger.notifications import channel_states

TEST = "`python -m trigger notify` lists the messages; mend the channel, and try it with `notify --test`"


async def check_channels(session: Session) -> AsyncIterator[Finding]:
    """Give a finding for each channel that any process has declared."""
    states = await channel_states(session)
    for one in states:
        name, seen = one["name"], False
        if one["late"]:
            since, seen = format_instant(one["since"].replace(microsecond=0)), True
            why = one["error"] or "no process that declares it delivers"
            yield warn("channels", f"{name}: {one['waiting']} messages wait since {since}: {why}", TEST)
        if one["given_up"]:
            seen = True
            yield fail("channels", f"{name}: {one['given_up']} messages were given up: {one['given_up_error']}", TEST)
        if not seen:
            yield ok("channels", f"{name}: nothing waits")
    if not states:
        yield ok("channels", "none was used yet")
