"""The queues that migrate has made: which are current, which are old, and taking an old one away once it is empty.

An old one is a version that other arguments made, a delay that is no longer set, or the queue of a job that is gone.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shared import clock
from shared.broker_inspection import BrokerFacts, inspect_broker
from shared.broker_retire import delete_parts, rebind
from shared.fleet import read_topology
from shared.postgres import Session
from shared.sql_files import statement
from shared.terminal import NotDone, Refused
from shared.topology import Binding, Topology
from shared.topology_versions import key_of
from trigger.deploy import RECORD_TOPOLOGY, RECORDED_TOPOLOGY
from trigger.operate import Order
from trigger.status import LIVE_INSTANCES

AUDIT_QUEUE = statement("trigger", "audit_queue")

# Workers look at the record with each beat, every five seconds.
LET_GO_SECONDS = 30.0
PAUSE_SECONDS = 0.5

Record = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue: whether these settings and jobs need it, its arguments, which live processes count on it.

    `messages` that wait and `consumers` are None where the broker has no such queue.
    """

    queue: str
    current: bool
    arguments: dict[str, Any]
    used_by: tuple[str, ...]
    messages: int | None
    consumers: int | None


@dataclass(frozen=True, slots=True)
class Known:
    """What the database knows of queues: those that are recorded, and on which the live processes count."""

    recorded: Record
    users: Mapping[str, list[str] | None]


async def list_queues(session: Session, url: str, topology: Topology, *, timeout: float) -> list[QueueLine]:
    """Give every recorded queue, the old ones last. Raises BrokerUnavailable."""
    return await look_at_queues(await read_known(session), url, topology, timeout=timeout)


async def read_known(session: Session) -> Known:
    """Read what the database knows."""
    return Known((await read_topology(session) or {}).get("queues", {}), await _users(session))


async def look_at_queues(known: Known, url: str, topology: Topology, *, timeout: float) -> list[QueueLine]:
    """Give every recorded queue with what it holds, the old ones last. Raises BrokerUnavailable."""
    facts = await inspect_broker(url, known.recorded, timeout=timeout)
    needed = set(topology.queue_names)
    lines = []
    for name, arguments in known.recorded.items():
        depth = facts.queues[name]
        used_by = tuple(one for one, queues in known.users.items() if queues is None or name in queues)
        messages, consumers = (None, None) if depth is None else (depth.messages, depth.consumers)
        lines.append(QueueLine(name, name in needed, arguments, used_by, messages, consumers))
    return sorted(lines, key=lambda one: (not one.current, one.queue))


async def retire(session: Session, url: str, topology: Topology, name: str, order: Order, *, timeout: float) -> None:
    """Delete an old queue that is empty and that no live process counts on; its key leads to the current one instead.

    Raises Refused when it is current, unknown, used or not empty; NotDone when messages came back to it, or workers did
    not let go of it, in which case nothing is lost and it can be tried again; BrokerUnavailable.
    """
    async with session.transaction():
        recorded: dict[str, Any] = await session.fetchval(RECORDED_TOPOLOGY) or {}
        await _refuse(session, topology, recorded, name)
        if name not in recorded.get("queues", {}) and await _is_gone(url, name, timeout):
            raise Refused(f"{name} is neither recorded nor there; {_old_ones(topology, recorded)}")
        bindings = [one for one in recorded.get("bindings", []) if one[1] == name]
        led = (
            []
            if (key := key_of(topology.prefix, name)) not in topology.queues
            else [[exchange, topology.work_queue(key), routing_key] for exchange, _, routing_key in bindings]
        )
        # From here on nothing new comes in, whoever publishes: what still has the old key goes to the current queue.
        await rebind(
            url, add=[Binding(*one) for one in led], remove=[Binding(*one) for one in bindings], timeout=timeout
        )
        waiting = await _messages(url, name, timeout)
        kept = {**recorded, "bindings": [one for one in recorded.get("bindings", []) if one not in bindings] + led}
        if not waiting:
            kept = _without(kept, name)
            detail = {"queue": name, "arguments": recorded.get("queues", {}).get(name)}
            await session.execute(AUDIT_QUEUE, order.instance, order.actor, order.reason, detail)
        await session.execute(RECORD_TOPOLOGY, kept)
    if waiting:
        raise Refused(f"{name} still holds {waiting} messages; {_comes_empty(topology, name)}")
    await _wait_until_let_go(session, url, recorded, name, timeout)
    await delete_parts(url, queues=[name], exchanges=_own_exchange(recorded, name), timeout=timeout)


async def _refuse(session: Session, topology: Topology, recorded: Record, name: str) -> None:
    known = name in recorded.get("queues", {})
    if name in topology.queue_names:
        raise Refused(f"{name} is current: these settings and jobs need it")
    if not known and not name.startswith((f"{topology.prefix}.work.", f"{topology.prefix}.delay.")):
        raise Refused(f"{name} is no queue of ours; {_old_ones(topology, recorded)}")
    for instance, queues in (await _users(session)).items():
        if queues is None:
            raise Refused(f"{instance} is of a release that doesn't say which queues it counts on: replace it first")
        if name in queues:
            raise Refused(f"{instance} still counts on {name}: replace it first")


def _old_ones(topology: Topology, recorded: Record) -> str:
    old = sorted(set(recorded.get("queues", {})) - set(topology.queue_names))
    return f"old ones: {', '.join(old) or 'none'}"


async def _users(session: Session) -> dict[str, list[str] | None]:
    rows = await session.fetch(LIVE_INSTANCES)
    return {f"{row['kind']} {row['id'][:8]} on {row['host']}": row["queues"] for row in rows}


async def _messages(url: str, name: str, timeout: float) -> int:
    depth = (await inspect_broker(url, [name], timeout=timeout)).queues[name]
    return depth.messages if depth else 0


async def _is_gone(url: str, name: str, timeout: float) -> bool:
    return (await inspect_broker(url, [name], timeout=timeout)).queues[name] is None


def _without(recorded: Record, name: str) -> dict[str, Any]:
    gone = _own_exchange(recorded, name)
    return {
        **recorded,
        "queues": {one: arguments for one, arguments in recorded.get("queues", {}).items() if one != name},
        "exchanges": {one: kind for one, kind in recorded.get("exchanges", {}).items() if one not in gone},
    }


def _own_exchange(recorded: Record, name: str) -> Sequence[str]:
    """Give the exchange of a delay queue, which has its name and leads nowhere else."""
    return [name] if name in recorded.get("exchanges", {}) else []


def _comes_empty(topology: Topology, name: str) -> str:
    if key_of(topology.prefix, name) is None:
        return "each leaves by itself when its delay is over"
    return "workers that declare its jobs consume it; nothing new goes there any more"


async def _wait_until_let_go(session: Session, url: str, recorded: Record, name: str, timeout: float) -> None:
    """Wait until no worker consumes it; one that lets go may have handed messages back: then it is recorded again."""
    ends_at = clock.monotonic() + LET_GO_SECONDS
    while True:
        facts: BrokerFacts = await inspect_broker(url, [name], timeout=timeout)
        depth = facts.queues[name]
        if depth is None or (not depth.consumers and not depth.messages):
            return
        if depth.messages or clock.monotonic() > ends_at:
            break
        await clock.sleep(PAUSE_SECONDS)
    async with session.transaction():
        present: dict[str, Any] = await session.fetchval(RECORDED_TOPOLOGY) or {}
        queues = {**present.get("queues", {}), name: recorded.get("queues", {}).get(name, {})}
        await session.execute(RECORD_TOPOLOGY, {**present, "queues": queues})
    raise NotDone(f"{name}: {depth.messages} messages came back, {depth.consumers} consumers are left; try again")
