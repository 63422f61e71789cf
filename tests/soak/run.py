"""The soak itself: segment after segment of events, each followed by a quiet point and the checker."""

import asyncio
import time
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from tests.soak import acts_operators, acts_processes, acts_servers, acts_wires
from tests.soak.check import judge
from tests.soak.crew import Crew
from tests.soak.place import Place, place
from tests.soak.plan import ORDINARY, WEIGHTS, Event, Segment, segments
from tests.soak.replay import Replayer
from tests.soak.rest import REST_SECONDS, Rest, come_to_rest
from tests.soak.stage import Journal, Stage
from tests.soak.tally import COUNTED, Tally, faulty_lines, of_logs, of_tables
from tests.support.checker import record_history

if TYPE_CHECKING:
    from datetime import datetime

Act = Callable[[Stage, Event], Awaitable[str]]
MODULES = (acts_operators, acts_processes, acts_servers, acts_wires)
ACTS: dict[str, Act] = {
    kind: next(getattr(module, kind) for module in MODULES if hasattr(module, kind)) for kind in WEIGHTS
}
FIRST_CALM_SECOND, LAST_CALM_SECOND = 5.0, 48.0
SUPERVISE_EVERY = 0.5
LINES_SHOWN = 8
# What an event may take beyond its own time: a server's start, a roll of the fleet.
EVENT_SECONDS = 150.0
SETTLE_SECONDS = 60.0
Tell = Callable[[str], None]


@dataclass(slots=True)
class Outcome:
    """What a soak has found; `rests` are the seconds that each quiet point took to come about."""

    seed: int
    folder: Path
    segments: int = 0
    rests: list[float] = field(default_factory=list)
    largest: float = 0.0
    violations: list[dict[str, Any]] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    summary: dict[str, Any] = field(default_factory=dict)


async def soak(seed: int, seconds: float, folder: Path, tell: Tell) -> Outcome:
    """Disturb for `seconds`, and give what was found; it ends at the first quiet point with a violation."""
    outcome = Outcome(seed, folder)
    _keep_complaints(folder)
    began = time.monotonic()
    tell("starting PostgreSQL, RabbitMQ and the fleet")
    async with place(folder) as made, anyio.create_task_group() as group:
        stage = await _set(made)
        tally = Tally()
        group.start_soon(stage.replayer.listen)
        group.start_soon(tally.watch, stage)
        group.start_soon(_supervise, stage)
        await _first_rest(stage, outcome)
        disturbed = time.monotonic()
        for segment in segments(seed):
            left = disturbed + seconds - time.monotonic()
            if outcome.violations or left <= 0:
                break
            shown = segment if segment.seconds <= left else segment.cut(left)
            await _play(stage, shown, lambda told: tell(f"{time.monotonic() - began:4.0f} s  {told}"))
            outcome.segments += 1
            await _judge(stage, outcome, segment.number)
        if not outcome.violations:
            await _end(stage, outcome)
        outcome.recent = list(stage.journal.recent)
        outcome.summary = await _summary(stage, outcome, tally, time.monotonic() - began)
        group.cancel_scope.cancel()
    return outcome


def _keep_complaints(folder: Path) -> None:
    """Write down elsewhere what the loop complains of: the wires' connections end in every possible way."""

    def note(_loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        with (folder / "loop.txt").open("a") as file:
            file.write(f"{context.get('message')}: {context.get('exception')!r}\n")

    asyncio.get_running_loop().set_exception_handler(note)


async def _set(made: Place) -> Stage:
    async with made.session() as session:
        await record_history(session)
    stage = Stage(
        made, Crew(made), Journal(made.folder / "journal.jsonl"), Replayer(made.broker.url, made.deployment.prefix)
    )
    stage.crew.supervise()
    return stage


async def _supervise(stage: Stage) -> None:
    while True:
        stage.crew.supervise()
        await anyio.sleep(SUPERVISE_EVERY)


async def _first_rest(stage: Stage, outcome: Outcome) -> None:
    """See that all is well before anything is done."""
    rest = await come_to_rest(stage)
    if rest.restless:
        outcome.violations.append({"rule": "the fleet starts", "seen": rest.restless})


async def _play(stage: Stage, segment: Segment, tell: Tell) -> None:
    """Do the events of a segment at their times, side by side, and wait for all of them."""
    for event in segment.events:
        stage.journal.write(planned=event.as_record(segment.number))
    begun = anyio.current_time()
    async with anyio.create_task_group() as group:
        for event in segment.events:
            await anyio.sleep(max(0.0, begun + event.at - anyio.current_time()))
            done = sum(stage.injected.values())
            tell(f"segment {segment.number + 1}, {done} events: {event.kind}")
            group.start_soon(_act, stage, segment.number, event)
        await anyio.sleep(max(0.0, begun + segment.seconds - anyio.current_time()))


async def _act(stage: Stage, segment: int, event: Event) -> None:
    told = "it took too long"
    try:
        with anyio.move_on_after(EVENT_SECONDS):
            told = await ACTS[event.kind](stage, event)
    except Exception:  # noqa: BLE001 - an act that does not work is told of, with what was found until then
        told = f"failed: {traceback.format_exc()}"
        stage.crew.unexpected.append(f"{event.kind} {told}")
    stage.injected[event.kind] += 1
    stage.journal.write(segment=segment, at=event.at, kind=event.kind, did=told)


async def _judge(stage: Stage, outcome: Outcome, segment: int) -> None:
    """Wait for rest and check everything."""
    for kind, wanted in {"trigger": 2, "worker": 3}.items():
        stage.crew.wanted[kind] = max(wanted, stage.crew.wanted[kind])
    rest = await _calm(stage)
    outcome.rests.append(round(rest.seconds, 1))
    outcome.largest = max(outcome.largest, stage.crew.memory())
    found: list[dict[str, Any]] = []
    if rest.restless:
        found.append({"rule": f"everything is at rest within {REST_SECONDS:g} s", "seen": rest.restless})
    async with stage.place.session() as session:
        found += await judge(stage.place, session)
    outcome.violations += [*found, *await _misbehaviour(stage)]
    stage.journal.write(segment=segment, rest=round(rest.seconds, 1), violations=outcome.violations)


async def _calm(stage: Stage) -> Rest:
    """Come to rest, and not about a full minute.

    What falls due then is half done while the effects, the tables and the broker are read one after the other, or while
    the processes end, and would be judged as such.
    """
    rest = await come_to_rest(stage)
    while not rest.restless:
        async with stage.place.session() as session:
            second: float = await session.fetchval("select extract(second from clock_timestamp())::float8")
        if FIRST_CALM_SECOND <= second <= LAST_CALM_SECOND:
            break
        await anyio.sleep((FIRST_CALM_SECOND - second) % 60)
        again = await come_to_rest(stage)
        rest = Rest(again.restless, rest.seconds + again.seconds)
    return rest


async def _end(stage: Stage, outcome: Outcome) -> None:
    """End every process in order, and judge what they leave."""
    await _calm(stage)
    async with stage.place.session() as session:
        ended_at: datetime = await session.fetchval("select clock_timestamp()")
        still = await stage.crew.end()
        outcome.violations += [{"rule": "every process ends in order", "seen": name} for name in still]
        if not still:
            outcome.violations += await judge(stage.place, session, ended_at=ended_at)
    outcome.violations += await _misbehaviour(stage)


async def _misbehaviour(stage: Stage) -> list[dict[str, Any]]:
    """Give what processes and commands did or said that no fault excuses."""
    lines = await anyio.to_thread.run_sync(faulty_lines, stage)
    return [
        {"rule": "no process, part or command fails by itself", "seen": one}
        for one in [*lines, *stage.crew.unexpected][:LINES_SHOWN]
    ]


async def _summary(stage: Stage, outcome: Outcome, tally: Tally, seconds: float) -> dict[str, Any]:
    crew = stage.crew
    summary: dict[str, Any] = {
        "seed": outcome.seed,
        "seconds": round(seconds),
        "segments": outcome.segments,
        "faults": sum(count for kind, count in stage.injected.items() if kind not in ORDINARY),
        "events": dict(sorted(stage.injected.items())),
        "rest_seconds": {"longest": max(outcome.rests, default=0.0), "each": outcome.rests},
        "redeliveries": tally.redeliveries,
        "replayed": stage.replayer.published,
        "charges": stage.place.provider.calls.total(),
        "repeated_charges": stage.place.provider.repeated,
        "processes": crew.started,
        "exits": dict(sorted(crew.exits.items())),
        "crashes": dict(crew.crashes.most_common()),
        "largest_process_megabytes": round(outcome.largest),
        "violations": outcome.violations,
        "counted": COUNTED,
    }
    with suppress(Exception):  # the counts of a database that is gone are not what went wrong
        async with stage.place.session() as session:
            summary |= await of_tables(session)
    return summary | await anyio.to_thread.run_sync(of_logs, stage)
