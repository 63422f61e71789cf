"""The wire that drills maltreat does what they rely on."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest

from tests.support.proxy import Proxy


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    """A wire to a server that sends back what it gets."""

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()
        writer.close()

    async with await asyncio.start_server(echo, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        async with Proxy(f"amqp://user:secret@127.0.0.1:{port}/place") as made:
            yield made


@asynccontextmanager
async def client(proxy: Proxy) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2].partition("/")[0]))
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def silent(reader: asyncio.StreamReader) -> bool:
    with suppress(TimeoutError):
        async with asyncio.timeout(0.1):
            await reader.read(1)
            return False
    return True


async def test_what_is_sent_comes_whole_however_slow_the_wire(proxy: Proxy) -> None:
    assert proxy.url.startswith("amqp://user:secret@127.0.0.1:")
    assert proxy.url.endswith("/place")
    sent = bytes(range(256)) * 1000
    proxy.to_server.delay, proxy.to_client.delay, proxy.to_server.rate = 0.02, 0.01, 2_000_000
    async with client(proxy) as (reader, writer):
        writer.write(sent)
        assert await reader.readexactly(len(sent)) == sent
    assert proxy.to_server.passed == proxy.to_client.passed == len(sent)


async def test_a_held_way_keeps_the_connection_open_and_loses_nothing(proxy: Proxy) -> None:
    async with client(proxy) as (reader, writer):
        proxy.to_client.hold()
        writer.write(b"kept")
        assert await silent(reader)
        proxy.heal()
        assert await reader.readexactly(4) == b"kept"
    proxy.hold()
    async with client(proxy) as (reader, writer):
        writer.write(b"swallowed")
        assert await silent(reader)


async def test_a_reset_is_heard_as_one_and_the_next_connection_is_fine(proxy: Proxy) -> None:
    async with client(proxy) as (reader, writer):
        writer.write(b"x")
        await reader.readexactly(1)
        proxy.reset()
        with pytest.raises(ConnectionResetError):
            await reader.readexactly(1)
    async with client(proxy) as (reader, writer):
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"
    assert proxy.accepted == 2


async def test_a_cut_lets_just_so_many_bytes_pass_and_happens_once(proxy: Proxy) -> None:
    proxy.to_client.cut_after = 5
    async with client(proxy) as (reader, writer):
        writer.write(b"123")
        assert await reader.readexactly(3) == b"123"
        writer.write(b"4567")
        got = b""
        with suppress(ConnectionResetError):
            while data := await reader.read(10):
                got += data
        assert got in {b"", b"45"}, "a reset may overtake what was sent before it"
    assert proxy.to_client.passed == 5
    async with client(proxy) as (reader, writer):
        writer.write(b"123456789")
        assert await reader.readexactly(9) == b"123456789"


async def test_refused_connections_come_again_at_the_same_address(proxy: Proxy) -> None:
    proxy.refuse()
    with pytest.raises(ConnectionRefusedError):
        async with client(proxy):
            pass
    await proxy.accept()
    async with client(proxy) as (reader, writer):
        writer.write(b"x")
        assert await reader.readexactly(1) == b"x"


async def test_a_server_that_vanishes_is_not_heard_of(proxy: Proxy) -> None:
    async with client(proxy) as (reader, writer):
        writer.write(b"x")
        await reader.readexactly(1)
        proxy.vanish()
        writer.write(b"x")
        assert await silent(reader)
