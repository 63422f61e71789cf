"""What is written to the broker in one turn of the event loop leaves in one piece."""

import asyncio

from shared.broker_transport import GatheringWriter


class Recording(asyncio.WriteTransport):
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.closing = False

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.pieces.append(bytes(data))

    def is_closing(self) -> bool:
        return self.closing

    def close(self) -> None:
        self.closing = True


def writer_to(transport: Recording) -> GatheringWriter:
    loop = asyncio.get_running_loop()
    reader = asyncio.StreamReader(loop=loop)
    return GatheringWriter(transport, asyncio.StreamReaderProtocol(reader, loop=loop), reader, loop)


async def test_the_writes_of_one_turn_are_gathered_in_their_order() -> None:
    transport = Recording()
    writer = writer_to(transport)
    writer.write(b"one ")
    writer.write(b"two")
    assert transport.pieces == []
    await asyncio.sleep(0)
    assert transport.pieces == [b"one two"]
    writer.write(b"three")
    await asyncio.sleep(0)
    assert transport.pieces == [b"one two", b"three"]
    writer.close()


async def test_a_drain_and_the_close_write_at_once() -> None:
    transport = Recording()
    writer = writer_to(transport)
    writer.write(b"drained")
    await writer.drain()
    assert transport.pieces == [b"drained"]
    writer.write(b"last words")
    writer.close()
    assert transport.pieces == [b"drained", b"last words"]
    assert transport.closing
    # The turn that was asked for before the close finds nothing to write.
    await asyncio.sleep(0)
    assert len(transport.pieces) == 2
