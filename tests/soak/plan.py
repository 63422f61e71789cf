"""What is done to the fleet, when and to whom: drawn from the seed alone, whatever the machine makes of it.

The soak goes in segments: some ten or twenty events each, then a quiet point, at which everything must come to rest
and is checked. Kinds are drawn from a bag that holds each as often as it weighs, and is filled again when it is empty:
every kind comes up early, and none is missed for long.
"""

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

SHORTEST_SEGMENT, LONGEST_SEGMENT = 35.0, 60.0
SECONDS_BETWEEN = (1.0, 3.4)

# How often each kind is in the bag.
WEIGHTS = {
    # Occurrences beside those of the minute, and operators.
    "night": 20,
    "poisoned_night": 1,
    "night_by_hand": 2,
    "fire": 2,
    "rerun": 5,
    "cancel": 3,
    "look": 2,
    "mend": 2,
    # Processes.
    "kill_worker": 6,
    "kill_trigger": 4,
    "crash": 14,
    "stop_worker": 2,
    "stop_trigger": 2,
    "freeze_worker": 3,
    "freeze_trigger": 3,
    "kill_everybody": 1,
    "scale_workers": 2,
    "scale_triggers": 2,
    "rolling_restart": 1,
    "redeploy": 3,
    # Between them.
    "wire_reset": 2,
    "wire_cut_short": 2,
    "wire_to_server_held": 1,
    "wire_to_client_held": 1,
    "wire_half_open": 1,
    "wire_slow": 1,
    "wire_narrow": 1,
    "replay": 3,
    # The broker.
    "broker_restart": 1,
    "broker_kill": 1,
    "broker_pause": 1,
    "memory_alarm": 1,
    "purge": 2,
    "broker_wipe": 1,
    "drop_connections": 2,
    # The database.
    "database_restart": 1,
    "database_kill": 1,
    "database_pause": 1,
    "end_sessions": 2,
    # The provider of the outside effects.
    "provider_fails": 2,
    "provider_hangs": 1,
}
# Occurrences and operators are what is disturbed, and no faults.
ORDINARY = frozenset({"night", "poisoned_night", "night_by_hand", "fire", "rerun", "cancel", "look", "mend"})
# How long a state lasts that ends again by itself, in seconds.
LASTS = {
    "freeze_worker": (2.0, 12.0),
    "freeze_trigger": (2.0, 8.0),
    "wire_cut_short": (1.0, 3.0),
    "wire_to_server_held": (2.0, 8.0),
    "wire_to_client_held": (2.0, 8.0),
    "wire_half_open": (2.0, 8.0),
    "wire_slow": (3.0, 10.0),
    "wire_narrow": (3.0, 8.0),
    "broker_pause": (2.0, 9.0),
    "memory_alarm": (3.0, 8.0),
    "broker_restart": (0.0, 4.0),
    "broker_kill": (0.0, 4.0),
    "database_restart": (0.0, 4.0),
    "database_kill": (0.0, 4.0),
    "database_pause": (1.0, 8.0),
    "provider_fails": (2.0, 8.0),
    "provider_hangs": (2.0, 8.0),
}


@dataclass(frozen=True, slots=True)
class Event:
    """One event: `at` seconds after its segment began; `whom` (0 to 1) chooses among those who are there by then."""

    at: float
    kind: str
    whom: float
    seconds: float
    detail: int

    def as_record(self, segment: int) -> dict[str, Any]:
        """Give it as a JSON object."""
        return {"segment": segment} | asdict(self)


@dataclass(frozen=True, slots=True)
class Segment:
    """A stretch of events, in order, before a quiet point."""

    number: int
    seconds: float
    events: tuple[Event, ...]

    def cut(self, seconds: float) -> "Segment":
        """Give what of it begins within `seconds`."""
        return Segment(self.number, seconds, tuple(event for event in self.events if event.at < seconds))


def segments(seed: int) -> Iterator[Segment]:
    """Give the endless schedule of a seed."""
    chance = random.Random(f"matins soak {seed}")
    bag: list[str] = []
    number = 0
    while True:
        length = round(chance.uniform(SHORTEST_SEGMENT, LONGEST_SEGMENT), 1)
        events, at = [], 0.0
        while (at := at + chance.uniform(*SECONDS_BETWEEN)) < length:
            if not bag:
                bag = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)]
                chance.shuffle(bag)
            kind = bag.pop()
            lasts = chance.uniform(*LASTS.get(kind, (0.0, 0.0)))
            whom, detail = chance.random(), chance.randrange(1_000_000)
            events.append(Event(round(at, 1), kind, round(whom, 3), round(lasts, 1), detail))
        yield Segment(number, length, tuple(events))
        number += 1
