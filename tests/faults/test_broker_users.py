"""Least privilege on the broker: each user tries each verb, and a night is run with nobody having more than needed."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import aio_pika
import aiormq
import anyio
import pytest
from aiormq.abc import AbstractChannel
from aiormq.exceptions import ChannelAccessRefused, PublishError

from examples.servers.find import Broker
from shared.broker import declare_topology
from shared.topology import Exchange, Queue, Topology
from tests.support.broker import TIMEOUT, administrator, topology_of
from tests.support.broker_users import broker_users, named, user_of
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import assert_night, count
from tests.support.processes import deployment
from trigger.broker_rights import WHO

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

Verb = tuple[str, ...]
Ask = Callable[[AbstractChannel], Awaitable[object]]


def exchanges(topology: Topology) -> list[str]:
    return [part.name for part in topology.parts() if isinstance(part, Exchange)]


def queues(topology: Topology) -> list[str]:
    return [part.name for part in topology.parts() if isinstance(part, Queue)]


def verbs(topology: Topology) -> Iterator[tuple[Verb, Ask]]:
    """Give everything that can be asked of the broker, as it would be done in earnest; deleting comes last."""
    new = f"{topology.prefix}.work.new"
    for part in topology.parts():
        if isinstance(part, Exchange):
            made = ask("exchange_declare", part.name, exchange_type=part.kind, durable=True, arguments=part.arguments)
            yield ("make", "exchange", part.name), made
        elif isinstance(part, Queue):
            yield ("make", "queue", part.name), ask("queue_declare", part.name, durable=True, arguments=part.arguments)
    yield ("make", "queue", new), ask("queue_declare", new, durable=True)
    yield ("make", "queue", "other"), ask("queue_declare", "other", durable=True)
    yield ("make", "queue", ""), ask("queue_declare", "", exclusive=True)
    yield ("make", "exchange", "other"), ask("exchange_declare", "other")
    for exchange in [*exchanges(topology), "", "amq.direct", "amq.fanout", "amq.topic"]:
        # Mandatory, so that the broker's word is waited for; that no queue takes it is an answer too.
        yield ("publish", exchange), ask("basic_publish", b"{}", exchange=exchange, routing_key="x", mandatory=True)
    yield from verbs_of_queues(topology)
    for target in exchanges(topology):
        for source in {*exchanges(topology), "amq.fanout"} - {target}:
            yield ("bind exchange", target, source), ask("exchange_bind", destination=target, source=source)
    for queue in queues(topology):
        yield ("delete", "queue", queue), ask("queue_delete", queue)
    for exchange in exchanges(topology):
        yield ("delete", "exchange", exchange), ask("exchange_delete", exchange)


def verbs_of_queues(topology: Topology) -> Iterator[tuple[Verb, Ask]]:
    """Give what can be asked of the queues that are there."""
    for queue in queues(topology):
        yield ("consume", queue), ask("basic_consume", queue, take_nothing)
        yield ("get", queue), ask("basic_get", queue)
        yield ("purge", queue), ask("queue_purge", queue)
        for exchange in [*exchanges(topology), "amq.fanout"]:
            yield ("bind", queue, exchange), ask("queue_bind", queue, exchange, "x")
            yield ("unbind", queue, exchange), ask("queue_unbind", queue, exchange, "x")


def ask(method: str, *arguments: Any, **named: Any) -> Ask:
    """Give the call of a method of a channel."""
    return lambda channel: getattr(channel, method)(*arguments, **named)


async def take_nothing(_: object) -> None:
    """Take a message that isn't there."""


async def granted(url: str, topology: Topology) -> set[Verb]:
    """Try every verb, each on a channel of its own; give those that weren't refused."""
    found = set()
    connection = await aiormq.connect(url)
    async with connection:
        for verb, call in verbs(topology):
            channel = await connection.channel()
            try:
                with anyio.fail_after(TIMEOUT):
                    await call(channel)
            except ChannelAccessRefused:
                continue
            except PublishError:
                assert verb[0] == "publish", "returned, since no queue takes it"
            found.add(verb)
            await channel.close()
    return found


def marks(topology: Topology) -> set[Verb]:
    """Publishing to the environment's mark, which reaches nobody, comes with the right to look at it."""
    return {("publish", topology.environment_exchange), ("publish", topology.environment_mark)}


def taking(*names: str) -> set[Verb]:
    """RabbitMQ has one right for all three."""
    return {(verb, name) for name in names for verb in ("consume", "get", "purge")}


async def test_each_user_is_refused_every_verb_that_it_does_not_use(
    broker: Broker, broker_url: str, prefix: str
) -> None:
    topology = topology_of(prefix)
    work = ("publish", topology.work_exchange)
    delays = {("publish", topology.delay_exchange(seconds)) for seconds in topology.delays}
    with broker_users(broker, broker_url, prefix) as addresses:
        await declare_topology(addresses["owner"], topology, timeout=TIMEOUT)
        assert await granted(addresses["trigger"], topology) == {work, *marks(topology)}
        assert await granted(addresses["worker"], topology) == {
            work,
            *delays,
            *marks(topology),
            *taking(topology.work_queue("default"), topology.accounted_queue),
        }
        assert await granted(addresses["operator"], topology) == {
            work,
            *marks(topology),
            *taking(topology.parked_queue),
        }
        await assert_unharmed(broker_url, topology)


async def test_the_owner_keeps_to_its_names_and_takes_no_dead_letter(
    broker: Broker, broker_url: str, prefix: str
) -> None:
    topology = topology_of(prefix)
    with broker_users(broker, broker_url, prefix) as addresses:
        await declare_topology(addresses["owner"], topology, timeout=TIMEOUT)
        held = await granted(addresses["owner"], topology)
    everything = {verb for verb, _ in verbs(topology)}
    refused = everything - held
    assert taking(topology.parked_queue, topology.accounted_queue) <= refused
    assert {verb for verb in everything if not all(own(name, prefix) for name in verb[1:])} <= refused
    assert {verb for verb in everything if verb[0] in {"make", "delete"} and own(verb[2], prefix)} <= held


def own(name: str, prefix: str) -> bool:
    """Tell a name of the topology, or a word of a verb, from what is not ours."""
    return name.startswith(f"{prefix}.") or name in {"queue", "exchange"}


async def assert_unharmed(url: str, topology: Topology) -> None:
    """See that every part still is what migrate made."""
    await declare_topology(url, topology, timeout=TIMEOUT)
    async with administrator(url) as channel:
        for name in (topology.work_queue("default"), topology.parked_queue, topology.accounted_queue):
            assert (await channel.declare_queue(name, passive=True)).declaration_result.message_count == 0


JOBS = """
async def stumbling(call):
    if call.account == "a000000" and call.attempt == 1:
        raise RetryLater(after=seconds(1))
    if call.account == "a000001":
        raise GiveUp("no tax id")
    await effect(call)

jobs = [nightly("night", PerAccount(stumbling))]
"""
ACCOUNTS = 40


async def test_a_night_with_users_that_may_do_just_what_they_need(
    tmp_path: Path, database_url: str, broker: Broker, broker_url: str, prefix: str
) -> None:
    with broker_users(broker, broker_url, prefix) as addresses:
        async with (
            deployment(tmp_path, database_url, addresses["owner"], prefix, delays="1,5") as deployed,
            session_on(database_url) as session,
        ):
            deployed.declare(JOBS)
            await deployed.deploy(ACCOUNTS)
            await deployed.command("migrate")
            worker = deployed.start("worker", broker_url=addresses["worker"])
            await worker.working()
            # An undecodable message takes the way of the dead, and the worker reads it off.
            async with administrator(broker_url) as channel:
                exchange = await channel.get_exchange(f"{prefix}.work", ensure=False)
                await exchange.publish(aio_pika.Message(b"{"), "night")
            trigger = deployed.start("trigger", broker_url=addresses["trigger"])
            row = await assert_night(session, deployed, "night", ACCOUNTS, state="partial")
            assert (row["succeeded"], row["failed"]) == (ACCOUNTS - 1, 1)
            assert await count(session, "select count(*) from matins.ledger where attempts = 2") == 1
            await until(lambda: parked(broker_url, prefix))
            doctor = deployed.start(
                "trigger",
                "doctor",
                broker_url=addresses["operator"],
                broker_users=named(addresses),
                management_url=broker.management_url or "",
            )
            assert await doctor.ended() == 1, "it warns of the parked message"
            said = doctor.log.read_text()
            for who in WHO:
                assert f"ok    broker rights: user {user_of(addresses[who])!r} may do what" in said, said
            assert trigger.alive
            assert worker.alive
            assert not [line for one in (trigger, worker) for line in one.lines() if "refused" in str(line).lower()]


async def parked(url: str, prefix: str) -> bool:
    async with administrator(url) as channel:
        found = await channel.declare_queue(f"{prefix}.dead.parked", passive=True)
        return bool(found.declaration_result.message_count)
