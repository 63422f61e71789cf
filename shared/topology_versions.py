"""Versions of work queues, and which of the recorded ones are whose.

RabbitMQ changes no argument of a queue that exists. So a work queue that needs another argument has another name, and
another routing key: a version that is made beside the old one, which whoever still runs goes on with. Publishers use
their own, workers consume every version of their queues that is recorded, and a person retires what is empty.
"""

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any

# What a work queue of a plain name is made with, beside where its dead letters go. Never change it: such queues exist.
_PLAIN = {
    "x-queue-type": "quorum",
    "x-dead-letter-strategy": "at-least-once",
    "x-overflow": "reject-publish",
    "x-delivery-limit": 20,
}
_SIGN = "@"


def version_of(arguments: Mapping[str, str | int]) -> str:
    """Give what follows the key in the name of a work queue: '' for a plain one, else `@` and six digits."""
    own = {name: value for name, value in arguments.items() if name != "x-dead-letter-exchange"}
    if own == _PLAIN:
        return ""
    return _SIGN + hashlib.sha256(json.dumps(own, sort_keys=True).encode()).hexdigest()[:6]


def key_of(prefix: str, queue: str) -> str | None:
    """Give the key of a work queue in any version; None for any other name."""
    begins = f"{prefix}.work."
    return queue.removeprefix(begins).partition(_SIGN)[0] if queue.startswith(begins) else None


def recorded_versions(prefix: str, keys: Collection[str], recorded: Mapping[str, Any] | None) -> dict[str, str]:
    """Give the recorded work queues of some keys, in every version, each with its key."""
    found = {name: key_of(prefix, name) for name in (recorded or {}).get("queues", {})}
    return {name: key for name, key in found.items() if key in keys and key is not None}


def work_queues_of(prefix: str, keys: Iterable[str], recorded: Mapping[str, Any] | None) -> list[str]:
    """Give the recorded work queues of some keys, in every version; the plain name where none is recorded."""
    wanted = sorted(keys)
    known = recorded_versions(prefix, wanted, recorded)
    return [name for key in wanted for name in [one for one in known if known[one] == key] or [f"{prefix}.work.{key}"]]
