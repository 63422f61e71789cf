"""What is done to the servers, and to the provider of the outside effects."""

import subprocess
import urllib.parse
from collections.abc import Callable
from typing import Any

import anyio

from examples.servers.probe import management
from examples.servers.server import Server, ServerUnavailableError
from tests.soak.jobs import JOBS
from tests.soak.place import AWAY
from tests.soak.plan import Event
from tests.soak.stage import Stage, pick


async def in_thread(call: Callable[[], object]) -> None:
    """Do something slow to a server, to its end."""
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(call)


async def _away(server: Server, end: Callable[[], object], seconds: float) -> str:
    await in_thread(end)
    try:
        await anyio.sleep(seconds)
    finally:
        await in_thread(server.start)
    return f"away for {seconds} s and its start"


async def _frozen(server: Server, seconds: float) -> str:
    await in_thread(server.pause)
    try:
        await anyio.sleep(seconds)
    finally:
        await in_thread(server.resume)
    return f"frozen for {seconds} s"


async def broker_restart(stage: Stage, event: Event) -> str:
    async with stage.broker_lock:
        return await _away(stage.place.broker, stage.place.broker.stop, event.seconds)


async def broker_kill(stage: Stage, event: Event) -> str:
    async with stage.broker_lock:
        return await _away(stage.place.broker, stage.place.broker.kill, event.seconds)


async def broker_pause(stage: Stage, event: Event) -> str:
    async with stage.broker_lock:
        return await _frozen(stage.place.broker, event.seconds)


async def memory_alarm(stage: Stage, event: Event) -> str:
    """Have the broker take no more publishes."""
    async with stage.broker_lock:
        raised = await _limit_memory(stage, "1")
        await anyio.sleep(event.seconds if raised else 0)
        if not await _limit_memory(stage, "512MB"):
            await in_thread(stage.place.broker.restart)
            return "rabbitmqctl did not work, and the broker was restarted"
    return f"for {event.seconds} s"


async def _limit_memory(stage: Stage, limit: str) -> bool:
    """Set how much memory the broker may have before it takes no publishes; tell whether rabbitmqctl worked."""
    control = stage.place.broker.control
    try:
        await in_thread(lambda: control("set_vm_memory_high_watermark", "absolute", limit))
    except (ServerUnavailableError, subprocess.TimeoutExpired):
        return False
    return True


async def purge(stage: Stage, event: Event) -> str:
    """Empty a work queue, and once in a while all of them and those of the delays."""
    settings = stage.place.deployment.settings["delays"].split(",")
    queues = [f"soak.work.{pick(JOBS, event)}"]
    if event.detail % 3 == 0:
        queues = [f"soak.work.{job}" for job in JOBS] + [f"soak.delay.{delay}s" for delay in settings]
    for queue in queues:
        if await manage(stage, "DELETE", f"/api/queues/%2F/{queue}/contents") is None:
            return "the management did not answer"
    return f"{len(queues)} queues"


async def broker_wipe(stage: Stage, event: Event) -> str:
    """Lose everything, and make the queues again, as an operator does."""
    async with stage.broker_lock, stage.database_lock:
        stage.place.wiped = True
        await in_thread(stage.place.broker.wipe)
        await stage.place.migrate()
    return "and migrated"


async def drop_connections(stage: Stage, event: Event) -> str:
    """Close some of the connections from the broker's side."""
    known = await manage(stage, "GET", "/api/connections") or []
    names = sorted(str(one["name"]) for one in known)
    chosen = names[: 1 + event.detail % max(1, len(names))]
    for name in chosen:
        await manage(stage, "DELETE", f"/api/connections/{urllib.parse.quote(name, safe='')}")
    return f"{len(chosen)} connections"


async def manage(stage: Stage, method: str, path: str) -> list[dict[str, Any]] | None:
    """Call the management interface; None when it does not answer."""
    url = stage.place.broker.management_url
    try:
        found: Any = await anyio.to_thread.run_sync(management, url, method, path, abandon_on_cancel=True)
    except (OSError, ValueError, ServerUnavailableError):
        return None
    return found or []


async def database_restart(stage: Stage, event: Event) -> str:
    async with stage.database_lock:
        return await _away(stage.place.database, stage.place.database.stop, event.seconds)


async def database_kill(stage: Stage, event: Event) -> str:
    async with stage.database_lock:
        return await _away(stage.place.database, stage.place.database.kill, event.seconds)


async def database_pause(stage: Stage, event: Event) -> str:
    async with stage.database_lock:
        return await _frozen(stage.place.database, event.seconds)


async def end_sessions(stage: Stage, event: Event) -> str:
    """End every session on the database but this one."""
    try:
        async with stage.place.session() as session:
            ended = await session.fetchval(
                """select count(*) from pg_stat_activity
                    where backend_type = 'client backend' and pid <> pg_backend_pid() and pg_terminate_backend(pid)"""
            )
    except AWAY as error:
        return type(error).__name__
    return f"{ended} sessions"


async def provider_fails(stage: Stage, event: Event) -> str:
    """Have the provider answer with an error, after it has done what it was asked for."""
    stage.place.provider.fails = True
    try:
        await anyio.sleep(event.seconds)
    finally:
        stage.place.provider.fails = False
    return f"for {event.seconds} s"


async def provider_hangs(stage: Stage, event: Event) -> str:
    """Have the provider answer late, after it has done what it was asked for."""
    stage.place.provider.hangs = True
    try:
        await anyio.sleep(event.seconds)
    finally:
        stage.place.provider.hangs = False
    return f"for {event.seconds} s"
