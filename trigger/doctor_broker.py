"""What `doctor` asks the broker: whether it can be reached, has our parts, and whether somebody works off the queues.

With the management interface it also compares arguments, which a look over AMQP cannot show.
"""

import re
from collections.abc import AsyncIterator
from datetime import timedelta

from shared.broker import BrokerUnavailable, TopologyError, WrongEnvironment, check_topology
from shared.broker_inspection import BrokerFacts, inspect_broker
from shared.settings import Settings
from shared.terminal import given
from shared.topology import Topology
from trigger.doctor_finding import Finding, fail, ok, warn
from trigger.doctor_rights import check_listed_rights, check_own_rights
from trigger.management import fetch, virtual_host_of

OLDEST_RABBIT = (3, 10)
LONGEST_LOOK = timedelta(seconds=5)
MIGRATE = "run `python -m trigger migrate`"
_VERSION = re.compile(r"(\d+)\.(\d+)")


async def check_broker(settings: Settings, topology: Topology | None, *, live_workers: bool) -> AsyncIterator[Finding]:
    """Give the findings; without a topology only what the broker says of itself."""
    url, seconds = settings.secret("broker_url"), min(settings.broker_timeout, LONGEST_LOOK).total_seconds()
    works = [topology.work_queue(key) for key in sorted(topology.queues)] if topology else []
    dead = [topology.accounted_queue, topology.parked_queue] if topology else []
    try:
        facts = await inspect_broker(url, [*works, *dead], timeout=seconds)
        yield _version(facts, encrypted=url.startswith("amqps:"))
        if topology is not None:
            looked = await _topology(url, topology, seconds)
            yield looked
            if looked.level == "ok":
                # Of a part that is missing, the question would be whether it can be made.
                yield await check_own_rights(settings, url, topology, seconds)
            for name in (*works, topology.accounted_queue):
                yield _consumers(facts, name, live_workers=live_workers)
            yield _parked(facts, topology.parked_queue)
    except BrokerUnavailable as error:
        yield fail("broker", str(error), "start it, or correct MATINS_BROKER_URL")
        return
    if management := given(settings, "management_url"):
        async for finding in _managed(settings, management, url, topology):
            yield finding


def _version(facts: BrokerFacts, *, encrypted: bool) -> Finding:
    told = f"{facts.product} {facts.version}, {'over TLS' if encrypted else 'not encrypted'}"
    match = _VERSION.match(facts.version)
    if facts.product != "RabbitMQ" or match is None or (int(match[1]), int(match[2])) < OLDEST_RABBIT:
        return fail("broker", told, "use RabbitMQ 3.10 or later, or 4.x")
    return ok("broker", told)


async def _topology(url: str, topology: Topology, seconds: float) -> Finding:
    try:
        unseen = await check_topology(url, topology, timeout=seconds)
    except WrongEnvironment as error:
        return fail("topology", str(error), "correct MATINS_ENVIRONMENT, MATINS_PREFIX or the address")
    except TopologyError as error:
        return fail("topology", str(error), MIGRATE)
    if unseen:
        return ok("topology", f"all that this user may look at is there; {len(unseen)} parts it may not look at")
    return ok("topology", "every exchange and queue is there")


def _consumers(facts: BrokerFacts, name: str, *, live_workers: bool) -> Finding:
    depth = facts.queues.get(name)
    if depth is None:
        return fail("consumers", f"queue {name} does not exist", MIGRATE)
    told = f"queue {name}: {depth.consumers} consumers, {depth.messages} messages wait"
    if depth.consumers:
        return ok("consumers", told)
    advice = "see why the workers don't consume it: their readiness says" if live_workers else "start a worker"
    return fail("consumers", told, advice) if depth.messages else warn("consumers", told, advice)


def _parked(facts: BrokerFacts, name: str) -> Finding:
    depth = facts.queues.get(name)
    if depth is None:
        return fail("dead letters", f"queue {name} does not exist", MIGRATE)
    told = f"{depth.messages} messages are parked in {name}"
    if depth.messages:
        advice = "`redrive --dry-run` lists them: publish them again with `redrive`, or purge the queue"
        return warn("dead letters", told, advice)
    return ok("dead letters", told)


async def _managed(settings: Settings, management: str, url: str, topology: Topology | None) -> AsyncIterator[Finding]:
    """Give what only the management interface tells; that it tells nothing is no fault of the deployment."""
    try:
        yield await _arguments(management, url, topology)
        if topology is not None:
            yield await _parts(management, url, topology)
            async for finding in check_listed_rights(settings, management, url, topology):
                yield finding
    except (OSError, ValueError) as error:
        yield warn("management", f"{type(error).__name__}: no answer", "correct MATINS_MANAGEMENT_URL, or leave it out")


async def _parts(management: str, url: str, topology: Topology) -> Finding:
    """See that every part is there, those too that the user of the broker's address may not look at."""
    found = {
        one["name"] for kind in ("exchanges", "queues") for one in await fetch(management, kind, virtual_host_of(url))
    }
    record = topology.as_record()
    missing = sorted({*record["exchanges"], *record["queues"]} - found)
    if missing:
        return fail("parts", f"missing on the broker: {', '.join(missing)}", MIGRATE)
    return ok("parts", "every exchange and queue is listed")


async def _arguments(management: str, url: str, topology: Topology | None) -> Finding:
    """Compare the queues' arguments with what is needed, as the management interface tells them."""
    queues = await fetch(management, "queues", virtual_host_of(url))
    found = {one["name"]: one.get("arguments", {}) for one in queues}
    needed = topology.as_record()["queues"] if topology else {}
    wrong = [
        f"queue {name}: {argument} is {found[name].get(argument)!r}, {value!r} is needed"
        for name, arguments in needed.items()
        if name in found
        for argument, value in arguments.items()
        if found[name].get(argument) != value
    ]
    if wrong:
        return fail(
            "arguments", "; ".join(wrong), "go back to these arguments, or drain and delete the queue and migrate"
        )
    return ok("arguments", f"{len(found.keys() & needed.keys())} queues have the arguments that are needed")
