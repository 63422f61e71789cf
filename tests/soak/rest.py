"""A quiet point: nothing is disturbed any more, and within a stated time nothing is open, due or left in a queue."""

import urllib.request
from dataclasses import dataclass, field
from typing import Any

import anyio

from tests.soak.acts_servers import manage
from tests.soak.place import AWAY
from tests.soak.stage import Stage

# The longest of what is waited for: a worker that hangs in a transaction, 5 s of timeout and 5 s of margin; an outside
# lease of 3 s; a lost message, 5 s and 5 s of margin; eight tries with delays of up to 5 s; and an account that ends
# five workers in turn, each of which takes some seconds to start on a busy machine.
REST_SECONDS = 120.0
LOOK_EVERY = 0.6
QUIET_LOOKS = 3
ACTIVE = """
select (select count(*) from matins.occurrence where state in ('claimed', 'running')) as running,
       (select count(*) from matins.occurrence where state = 'expected' and scheduled_at <= clock_timestamp()) as due,
       (select count(*) from matins.ledger where finished_at is null) as open
"""


@dataclass(slots=True)
class Rest:
    """What a look found that is not at rest, by part; empty when everything is."""

    restless: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0


async def come_to_rest(stage: Stage, seconds: float = REST_SECONDS) -> Rest:
    """Wait for rest, and tell how long it took; what was still restless after `seconds` is in it."""
    began = anyio.current_time()
    quiet = 0
    while True:
        stage.crew.supervise()
        restless = await look(stage)
        took = anyio.current_time() - began
        # The management counts messages once a second.
        quiet = 0 if restless else quiet + 1
        if quiet == QUIET_LOOKS or took > seconds:
            return Rest(restless, took)
        await anyio.sleep(LOOK_EVERY)


async def look(stage: Stage) -> dict[str, Any]:
    """Look once."""
    try:
        async with stage.place.session() as session:
            [counts] = await session.fetch(ACTIVE)
            found = {name: count for name, count in counts.items() if count}
    except AWAY as error:
        return {"database": f"{type(error).__name__}: {error}"}
    if found:
        return found
    depths = await manage(stage, "GET", "/api/queues/%2F?columns=name,messages")
    if depths is None:
        return {"management": "no answer"}
    left = {
        str(one["name"]): one["messages"]
        for one in depths
        if one.get("messages") and not str(one["name"]).endswith("dead.parked") and str(one["name"]).startswith("soak.")
    }
    return left or await _unready(stage)


async def _unready(stage: Stage) -> dict[str, str]:
    """Ask every process whether it is ready for work."""
    found = {}
    for member in [*stage.crew.alive("trigger"), *stage.crew.alive("worker")]:
        lines = member.service.lines("health endpoint open")
        if not lines:
            found[member.service.log.name] = "starting"
            continue
        address = f"http://{lines[0]['host']}:{lines[0]['port']}/readyz"
        answer = await anyio.to_thread.run_sync(_get, address)
        if answer:
            found[member.service.log.name] = answer
    return found


def _get(address: str) -> str:
    """Give '' for a good answer, else what was wrong."""
    try:
        with urllib.request.urlopen(address, timeout=3):  # noqa: S310 - the process's own address
            return ""
    except OSError as error:
        read = getattr(error, "read", None)
        return f"{error}: {read().decode(errors='replace')[:300]}" if read else str(error)
