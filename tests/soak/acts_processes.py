"""What is done to the processes: ended, frozen, replaced, held at an arrow and ended there."""

import anyio

from tests.soak.acts_operators import fall
from tests.soak.arrows import ARROWS, FIRST_KEY
from tests.soak.crew import Member
from tests.soak.jobs import NIGHT_JOBS
from tests.soak.place import AWAY
from tests.soak.plan import Event
from tests.soak.stage import Stage, pick

NOBODY = "nobody was there"
HOLD_SECONDS = 8.0
ROLL_SECONDS = 15.0
# What has just become due is not claimed before the next tick.
SOONEST = 0.4


async def kill_worker(stage: Stage, event: Event) -> str:
    return await _kill(stage, "worker", event)


async def kill_trigger(stage: Stage, event: Event) -> str:
    return await _kill(stage, "trigger", event)


async def _busy(stage: Stage, event: Event) -> None:
    """Give the fleet something to do, and wait until it is in the middle of it."""
    await fall(stage, pick(NIGHT_JOBS, event))
    await anyio.sleep(SOONEST + event.whom)


async def _kill(stage: Stage, kind: str, event: Event) -> str:
    await _busy(stage, event)
    member = stage.crew.choose(kind, event.whom)
    if member is None:
        return NOBODY
    await stage.crew.kill(member)
    return member.service.log.name


async def kill_everybody(stage: Stage, event: Event) -> str:
    """The machine that they all ran on is gone."""
    await _busy(stage, event)
    members = [one for one in stage.crew.members if one.service.alive]
    for one in members:
        one.spared = "killed"
        one.service.kill()
    return f"{len(members)} processes"


async def stop_worker(stage: Stage, event: Event) -> str:
    return _stop(stage, "worker", event)


async def stop_trigger(stage: Stage, event: Event) -> str:
    return _stop(stage, "trigger", event)


def _stop(stage: Stage, kind: str, event: Event) -> str:
    member = stage.crew.choose(kind, event.whom)
    if member is None:
        return NOBODY
    stage.crew.stop(member)
    return member.service.log.name


async def freeze_worker(stage: Stage, event: Event) -> str:
    return await _freeze(stage, "worker", event)


async def freeze_trigger(stage: Stage, event: Event) -> str:
    return await _freeze(stage, "trigger", event)


async def _freeze(stage: Stage, kind: str, event: Event) -> str:
    await _busy(stage, event)
    member = stage.crew.choose(kind, event.whom)
    if member is None:
        return NOBODY
    stage.crew.freeze(member)
    try:
        await anyio.sleep(event.seconds)
    finally:
        stage.crew.go_on(member)
    return member.service.log.name


async def scale_workers(stage: Stage, event: Event) -> str:
    stage.crew.wanted["worker"] = (1, 2, 3, 4)[event.detail % 4]
    return f"{stage.crew.wanted['worker']} workers"


async def scale_triggers(stage: Stage, event: Event) -> str:
    stage.crew.wanted["trigger"] = (1, 2, 3)[event.detail % 3]
    return f"{stage.crew.wanted['trigger']} triggers"


async def rolling_restart(stage: Stage, event: Event) -> str:
    return f"{await _roll(stage)} processes, one after the other"


async def redeploy(stage: Stage, event: Event) -> str:
    """Deploy another version of the jobs: first its gate, then process by process, so that both live for a while."""
    stage.place.declare(event.detail)
    async with stage.broker_lock, stage.database_lock:
        await stage.place.migrate()
    return f"version {event.detail}: {await _roll(stage)} processes"


async def _roll(stage: Stage) -> int:
    """Replace each process by a new one, which is started first."""
    old = [one for kind in ("trigger", "worker") for one in stage.crew.alive(kind)]
    for one in old:
        fresh = stage.crew.start(one.kind)
        with anyio.move_on_after(ROLL_SECONDS):
            await _at_work(fresh)
        if one.service.alive:
            stage.crew.stop(one)
    return len(old)


async def _at_work(member: Member) -> None:
    while True:
        if not member.service.alive or member.service.lines("working"):
            return
        await anyio.sleep(0.3)


async def crash(stage: Stage, event: Event) -> str:
    """Hold whoever comes to an arrow, let a job be due that leads there, and end the one that waits."""
    place = event.detail % len(ARROWS)
    arrow, key = ARROWS[place], FIRST_KEY + place
    try:
        async with stage.place.session() as session:
            await session.execute("select pg_advisory_lock($1)", key)
            await fall(stage, arrow.job or pick(NIGHT_JOBS, event))
            ends_at = anyio.current_time() + HOLD_SECONDS
            while anyio.current_time() < ends_at:
                waiting = await session.fetch(
                    """select a.pid, a.application_name as name from pg_locks l join pg_stat_activity a on a.pid = l.pid
                        where l.locktype = 'advisory' and not l.granted and l.objid = $1 order by a.query_start""",
                    key,
                )
                for row in waiting:
                    if member := _member_of(stage, row["name"]):
                        member.spared = "killed"
                        member.service.kill()
                        stage.crew.crashes[f"held: {arrow.name}"] += 1
                        await session.execute(
                            "select pg_terminate_backend(pid, 3000) from pg_stat_activity where application_name = $1",
                            row["name"],
                        )
                        return f"{arrow.name}: {member.service.log.name}"
                await anyio.sleep(0.1)
    except AWAY as error:
        return f"{arrow.name}: {type(error).__name__}"
    return f"{arrow.name}: {NOBODY}"


def _member_of(stage: Stage, name: str) -> Member | None:
    for one in stage.crew.members:
        starting = one.service.lines("starting")
        if one.service.alive and not one.frozen and starting and name.endswith(str(starting[0]["instance"])[:8]):
            return one
    return None
