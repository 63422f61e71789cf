"""A provider of outside effects that honours idempotency keys, and can fail after it has done its work, or be slow."""

import asyncio
import json
from collections import Counter
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

LONGEST_HANG = 20.0


@dataclass(slots=True)
class Provider:
    """Takes a line of JSON for each charge; `effects` has one (occurrence, account) for each key that it has seen.

    As a context manager it listens meanwhile.
    """

    fails: bool = False
    hangs: bool = False
    effects: dict[str, tuple[str, str]] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    misuses: list[str] = field(default_factory=list)
    _server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        """Listen on a free port of this machine."""
        self._server = await asyncio.start_server(self._answer, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop listening."""
        assert self._server is not None
        self._server.close()

    @property
    def port(self) -> int:
        """Where it listens."""
        assert self._server is not None
        return int(self._server.sockets[0].getsockname()[1])

    @property
    def repeated(self) -> int:
        """How many calls carried a key that had been used before, and so had no effect."""
        return self.calls.total() - len(self.calls)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            line = await reader.readline()
            if line:
                self._charge(json.loads(line))
                for _ in range(round(LONGEST_HANG * 10)):
                    if not self.hangs:
                        break
                    await asyncio.sleep(0.1)
                writer.write(b"internal error\n" if self.fails else b"charged\n")
                await writer.drain()
        except (OSError, ValueError):
            return
        finally:
            writer.close()

    def _charge(self, asked: dict[str, str]) -> None:
        charged = (asked["occurrence"], asked["account"])
        self.calls[asked["key"]] += 1
        if self.effects.setdefault(asked["key"], charged) != charged:
            self.misuses.append(f"key {asked['key']} of {self.effects[asked['key']]} was used for {charged} too")
