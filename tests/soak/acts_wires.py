"""What is done to the wires between some of the processes and a server, and to the messages themselves."""

from collections.abc import Callable

import aio_pika
import anyio

from tests.soak.plan import Event
from tests.soak.stage import Stage
from tests.support.proxy import Proxy

SLOW_SECONDS = 0.3
NARROW_BYTES = 30_000.0


def _wire(stage: Stage, event: Event) -> tuple[Proxy, str]:
    if event.detail % 2:
        return stage.place.broker_wire, "to the broker"
    return stage.place.database_wire, "to the database"


async def _for_a_while(stage: Stage, event: Event, spoil: Callable[[Proxy], None]) -> str:
    wire, name = _wire(stage, event)
    spoil(wire)
    try:
        await anyio.sleep(event.seconds)
    finally:
        wire.heal()
    return f"{name}, {wire.connections} connections"


async def wire_reset(stage: Stage, event: Event) -> str:
    """Break every connection on a wire, once."""
    wire, name = _wire(stage, event)
    broken = wire.connections
    wire.reset()
    return f"{name}, {broken} connections"


async def wire_cut_short(stage: Stage, event: Event) -> str:
    """Break the connection on which the next so many bytes go, in the middle of whatever it was."""
    size = 1 + event.detail % 4000

    def spoil(wire: Proxy) -> None:
        (wire.to_server if event.whom < 0.5 else wire.to_client).cut_after = size

    return await _for_a_while(stage, event, spoil)


async def wire_to_server_held(stage: Stage, event: Event) -> str:
    return await _for_a_while(stage, event, lambda wire: wire.to_server.hold())


async def wire_to_client_held(stage: Stage, event: Event) -> str:
    return await _for_a_while(stage, event, lambda wire: wire.to_client.hold())


async def wire_half_open(stage: Stage, event: Event) -> str:
    """Break the connections on the server's side; the client hears nothing until it is over."""
    return await _for_a_while(stage, event, lambda wire: wire.vanish())


async def wire_slow(stage: Stage, event: Event) -> str:
    def spoil(wire: Proxy) -> None:
        wire.to_server.delay = wire.to_client.delay = SLOW_SECONDS

    return await _for_a_while(stage, event, spoil)


async def wire_narrow(stage: Stage, event: Event) -> str:
    def spoil(wire: Proxy) -> None:
        wire.to_server.rate = wire.to_client.rate = NARROW_BYTES

    return await _for_a_while(stage, event, spoil)


async def replay(stage: Stage, event: Event) -> str:
    """Publish messages again that were published before: copies, late, out of order."""
    before = stage.replayer.published
    try:
        await stage.replayer.replay(event.detail)
    except (aio_pika.exceptions.AMQPError, OSError, TimeoutError) as error:
        return f"{stage.replayer.published - before} messages, then {type(error).__name__}"
    return f"{stage.replayer.published - before} messages"
