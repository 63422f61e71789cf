"""What every act works with, and the log of what was planned and what was done."""

import asyncio
from collections import Counter, deque
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from tests.soak.crew import Crew
from tests.soak.place import Place
from tests.soak.plan import Event
from tests.soak.replay import Replayer

RECENT = 40
FIRST_NIGHT = datetime(2020, 1, 1, 2, tzinfo=UTC)


@dataclass(slots=True)
class Journal:
    """JSON lines of what was planned and what came of it; the last are kept for whoever asks what had happened."""

    path: Path
    recent: deque[str] = field(default_factory=lambda: deque(maxlen=RECENT))

    def write(self, **values: Any) -> None:
        """Add a line."""
        line = orjson.dumps({"time": datetime.now(UTC).isoformat(timespec="milliseconds")} | values)
        with self.path.open("ab") as file:
            file.write(line + b"\n")
        self.recent.append(line.decode())


@dataclass(slots=True)
class Stage:
    """The place, who is on it, and what was done so far."""

    place: Place
    crew: Crew
    journal: Journal
    replayer: Replayer
    injected: Counter[str] = field(default_factory=Counter)
    nights: dict[str, int] = field(default_factory=dict)
    # One who stops a server must not meet another who freezes it.
    broker_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    database_lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def next_night(self, job: str) -> datetime:
        """Give the next night of a job, a day after the one before."""
        self.nights[job] = self.nights.get(job, -1) + 1
        return FIRST_NIGHT + timedelta(days=self.nights[job])


def pick(among: tuple[str, ...], event: Event) -> str:
    """Give the one that an event's detail falls on."""
    return among[event.detail % len(among)]
