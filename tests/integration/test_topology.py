"""The parts on a real broker: made once, refused when they differ, never made in another environment's place."""

import secrets
import urllib.parse
from dataclasses import replace

import pytest

from examples.servers.find import Broker
from shared.broker import (
    BrokerUnavailable,
    Mismatch,
    TopologyMismatch,
    TopologyMissing,
    WrongEnvironment,
    check_topology,
    declare_topology,
)
from shared.topology import Topology
from tests.support.broker import (
    BODY,
    QUEUE,
    TIMEOUT,
    administrator,
    consuming,
    manage,
    outgoing,
    publishing,
    send,
    topology_of,
    virtual_host_of,
)

PASSWORD = "correct-horse"


async def declare(url: str, topology: Topology) -> None:
    await declare_topology(url, topology, timeout=TIMEOUT)


async def check(url: str, topology: Topology) -> None:
    await check_topology(url, topology, timeout=TIMEOUT)


async def test_making_the_parts_twice_is_fine(broker_url: str, prefix: str) -> None:
    topology = topology_of(prefix)
    await declare(broker_url, topology)
    await declare(broker_url, topology)
    await check(broker_url, topology)


async def test_what_another_release_needs_beyond_is_left_alone(broker_url: str, prefix: str) -> None:
    await declare(broker_url, topology_of(prefix, queues=frozenset({QUEUE, "reports"}), delays=(1, 5, 30)))
    await declare(broker_url, topology_of(prefix))
    await check(broker_url, topology_of(prefix))


async def test_every_difference_is_named_with_both_values_and_nothing_is_deleted(broker_url: str, prefix: str) -> None:
    wanted = topology_of(prefix, queues=frozenset({QUEUE, "classic", "new"}))
    limited_queue = wanted.work_queue(QUEUE)
    await declare(broker_url, topology_of(prefix, queues=frozenset({"new"})))
    async with administrator(broker_url) as channel:
        await channel.declare_queue(f"{prefix}.work.classic", durable=True)
        arguments = {**wanted.as_record()["queues"][limited_queue], "x-delivery-limit": 10}
        await channel.declare_queue(limited_queue, durable=True, arguments=arguments)
    with pytest.raises(TopologyMismatch) as raised:
        await declare(broker_url, wanted)
    classic, limited = raised.value.mismatches
    assert classic.part == f"queue {prefix}.work.classic"
    assert limited == Mismatch(f"queue {prefix}.work.{QUEUE}", "x-delivery-limit", "20", "10")
    assert f"queue {prefix}.work.{QUEUE}: x-delivery-limit is 10 on the broker, 20 is wanted" in str(raised.value)
    await check(broker_url, wanted)


async def test_an_exchange_of_another_type_is_named(broker_url: str, prefix: str) -> None:
    topology = topology_of(prefix)
    async with administrator(broker_url) as channel:
        await channel.declare_exchange(topology.work_exchange, "topic", durable=True)
    with pytest.raises(TopologyMismatch) as raised:
        await declare(broker_url, topology)
    assert raised.value.mismatches == (Mismatch(f"exchange {prefix}.work", "type", "direct", "topic"),)


async def test_another_environment_is_named_and_makes_nothing(broker_url: str, prefix: str) -> None:
    await declare(broker_url, topology_of(prefix, environment="production"))
    mine = topology_of(prefix, environment="laptop", queues=frozenset({"mine"}))
    with pytest.raises(WrongEnvironment, match="belongs to environment 'production', not to 'laptop'"):
        await declare(broker_url, mine)
    with pytest.raises(WrongEnvironment, match="not to 'laptop'"):
        await check(broker_url, mine)
    async with administrator(broker_url) as channel:
        await channel.get_exchange(f"{prefix}.environment.production")
    with pytest.raises(TopologyMissing) as raised:
        await check(broker_url, topology_of(prefix, environment="production", queues=frozenset({"mine"})))
    assert raised.value.parts == (f"queue {prefix}.work.mine",)


async def test_everything_that_is_missing_is_named_at_once(broker_url: str, prefix: str) -> None:
    topology = topology_of(prefix)
    await declare(broker_url, topology)
    async with administrator(broker_url) as channel:
        await channel.queue_delete(topology.parked_queue)
        await channel.exchange_delete(topology.delay_exchange(5))
    with pytest.raises(TopologyMissing, match="run migrate") as raised:
        await check(broker_url, topology)
    assert raised.value.parts == (f"queue {prefix}.dead.parked", f"exchange {prefix}.delay.5s")


async def test_an_empty_broker_lacks_parts_and_is_no_other_environment(broker_url: str, prefix: str) -> None:
    with pytest.raises(TopologyMissing):
        await check(broker_url, topology_of(prefix))


async def test_the_definitions_can_be_imported_and_are_the_same_parts(
    broker: Broker, broker_url: str, prefix: str
) -> None:
    topology, virtual_host = topology_of(prefix), virtual_host_of(broker_url)
    manage(broker, "POST", f"/api/definitions/{virtual_host}", topology.definitions(virtual_host))
    await check(broker_url, topology)
    await declare(broker_url, topology)
    bindings = manage(broker, "GET", f"/api/bindings/{virtual_host}")
    assert len([binding for binding in bindings if binding["source"]]) == 5


async def test_a_user_who_may_not_configure_can_do_everything_but_make_parts(
    broker: Broker, broker_url: str, prefix: str
) -> None:
    topology = topology_of(prefix)
    await declare(broker_url, topology)
    url = restricted_user(broker, broker_url, prefix)
    await check(url, topology)
    names = (topology.work_queue(QUEUE), topology.accounted_queue)
    async with publishing(url) as publisher, consuming(url, *names) as (consumer, inbox):
        await send(publisher, outgoing(topology))
        assert await (await inbox.take()).reject(requeue=False)
        dead = await inbox.take()
        assert dead.queue == topology.accounted_queue
        assert await dead.ack()
        await send(publisher, outgoing(topology, exchange=topology.delay_exchange(1)))
        assert await (await inbox.take()).ack()
        assert await publisher.queue_depth(topology.work_queue(QUEUE)) is not None
        assert consumer.ready
    with pytest.raises(BrokerUnavailable, match="cannot make exchange"):
        await declare(url, topology_of(f"{prefix}x"))


def restricted_user(broker: Broker, url: str, prefix: str) -> str:
    """Make the user whom the services are meant to be; give its address."""
    virtual_host = virtual_host_of(url)
    name = f"{prefix}-{secrets.token_hex(2)}"
    manage(broker, "PUT", f"/api/users/{name}", {"password": PASSWORD, "tags": ""})
    rights = {"configure": "^$", "write": rf"^{prefix}\.(work|delay\..*)$", "read": rf"^{prefix}\."}
    manage(broker, "PUT", f"/api/permissions/{virtual_host}/{name}", rights)
    return as_user(url, name, PASSWORD)


def as_user(url: str, name: str, password: str) -> str:
    address = urllib.parse.urlsplit(url)
    return address._replace(netloc=f"{name}:{password}@{address.hostname}:{address.port}").geturl()


async def test_a_refused_password_is_said_without_saying_it(broker_url: str, prefix: str) -> None:
    with pytest.raises(BrokerUnavailable, match="refuses user 'nobody' or its password") as raised:
        await check(as_user(broker_url, "nobody", PASSWORD), topology_of(prefix))
    assert PASSWORD not in f"{raised.value!r}{raised.value.__cause__!r}"


async def test_a_virtual_host_that_is_not_there_is_named(broker_url: str, prefix: str) -> None:
    url = urllib.parse.urlsplit(broker_url)._replace(path="/elsewhere").geturl()
    with pytest.raises(BrokerUnavailable, match=r"virtual host 'elsewhere' does not exist, or user .* has no access"):
        await check(url, topology_of(prefix))


async def test_a_refused_connection_is_named(prefix: str) -> None:
    with pytest.raises(BrokerUnavailable, match=r"cannot connect to broker 127\.0\.0\.1:1: Connection refused"):
        await check(f"amqp://someone:{PASSWORD}@127.0.0.1:1", topology_of(prefix))


@pytest.mark.parametrize("url", [f"amqp://a:{PASSWORD}@host:port", f"http://a:{PASSWORD}@host", PASSWORD, ""])
async def test_an_address_that_is_none_is_refused_without_repeating_it(url: str, prefix: str) -> None:
    with pytest.raises(BrokerUnavailable, match="the broker's address") as raised:
        await check(url, topology_of(prefix))
    assert PASSWORD not in f"{raised.value!r}{raised.value.__cause__!r}"


async def test_a_dead_letter_is_parked_and_accounted_for_with_its_headers(broker_url: str, prefix: str) -> None:
    topology = topology_of(prefix)
    await declare(broker_url, topology)
    message = replace(outgoing(topology), headers={"traceparent": "00-1-2-01"})
    names = (topology.work_queue(QUEUE), topology.accounted_queue, topology.parked_queue)
    async with publishing(broker_url) as publisher, consuming(broker_url, *names) as (_, inbox):
        await send(publisher, message)
        assert await (await inbox.take()).reject(requeue=False)
        dead = [await inbox.take(), await inbox.take()]
        assert {delivery.queue for delivery in dead} == {topology.accounted_queue, topology.parked_queue}
        for delivery in dead:
            assert delivery.body == BODY
            assert delivery.message_id == message.message_id
            assert delivery.correlation_id == message.correlation_id
            assert delivery.kind == message.kind
            assert delivery.headers["traceparent"] == "00-1-2-01"
            assert delivery.headers["x-first-death-reason"] == "rejected"
            assert delivery.headers["x-first-death-queue"] == topology.work_queue(QUEUE)
            assert await delivery.ack()


async def test_a_message_that_is_given_back_too_often_is_dead(broker_url: str, prefix: str) -> None:
    topology = topology_of(prefix, delivery_limit=2)
    await declare(broker_url, topology)
    names = (topology.work_queue(QUEUE), topology.accounted_queue)
    async with publishing(broker_url) as publisher, consuming(broker_url, *names) as (_, inbox):
        await send(publisher, outgoing(topology))
        seen = []
        while (delivery := await inbox.take()).queue != topology.accounted_queue:
            seen.append((delivery.redelivered, delivery.delivery_count))
            assert await delivery.reject(requeue=True)
        assert seen == [(False, 0), (True, 1), (True, 2)]
        assert delivery.headers["x-first-death-reason"] == "delivery_limit"
        assert await delivery.ack()


async def test_a_delayed_message_comes_back_to_the_queue_of_its_key(broker_url: str, prefix: str) -> None:
    topology = topology_of(prefix, queues=frozenset({QUEUE, "other"}), delays=(1,))
    await declare(broker_url, topology)
    names = (topology.work_queue(QUEUE), topology.work_queue("other"))
    async with publishing(broker_url) as publisher, consuming(broker_url, *names) as (_, inbox):
        for key in ("other", QUEUE):
            await send(publisher, outgoing(topology, key=key, exchange=topology.delay_exchange(1)))
        back = [await inbox.take(), await inbox.take()]
        assert {(delivery.queue, delivery.routing_key) for delivery in back} == {
            (topology.work_queue("other"), "other"),
            (topology.work_queue(QUEUE), QUEUE),
        }
        for delivery in back:
            assert not delivery.redelivered
            assert await delivery.ack()
