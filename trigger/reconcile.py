"""After a restore: what is known, what will run again, and which outside effects may happen twice; and the release."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from schemas.occurrence import Identity
from shared.broker import BrokerUnavailable
from shared.broker_inspection import inspect_broker
from shared.fleet import read_topology
from shared.postgres import Row, Session, database_now
from shared.restore import READ_HOLD, server_identity
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.operate import Order

RECONCILE_OCCURRENCES = statement("trigger", "reconcile_occurrences")
HOLD_BY_HAND = statement("trigger", "hold_by_hand")
RELEASE_HOLD = statement("trigger", "release_hold")


@dataclass(frozen=True, slots=True)
class Affected:
    """An occurrence that goes on, or is decided anew, once the hold is released.

    `open` accounts will be executed. With `outside` effects, those that happened after the restored state happen again
    with the same key; the provider knows it until `key_valid_until`, which may be over.
    """

    occurrence: str
    state: str
    then: str
    accounts_read: int
    open: int
    outside: bool
    key_valid_until: datetime | None
    key_forgotten: bool


@dataclass(frozen=True, slots=True)
class Reconciliation:
    """What is known. `held_since` is None when nothing is held; `queues` are the messages that wait, by queue.

    `unseen` says why the broker could not be asked.
    """

    held_since: datetime | None
    held_reason: str | None
    known_through: datetime | None
    occurrences: tuple[Affected, ...]
    queues: Mapping[str, int]
    unseen: str


async def reconcile(session: Session, broker_url: str, *, timeout: float) -> Reconciliation:
    """Read what a person must know before the release; changes nothing."""
    held: Any = await session.fetchrow(READ_HOLD)
    rows = await session.fetch(RECONCILE_OCCURRENCES)
    queues, unseen = await _queues(session, broker_url, timeout)
    return Reconciliation(
        held["held_since"],
        held["held_reason"],
        held["known_through"],
        tuple(_affected(row, held["known_through"]) for row in rows),
        queues,
        unseen,
    )


async def restored(session: Session, order: Order, known_through: datetime | None) -> None:
    """Hold everything by hand. Raises Refused when it is held already, and for what is still to come."""
    if known_through is not None and known_through > await database_now(session):
        raise Refused(f"--through: {known_through.astimezone(UTC):%Y-%m-%dT%H:%MZ} is still to come")
    at = await session.fetchval(HOLD_BY_HAND, order.reason, known_through, order.instance, order.actor)
    if at is None:
        held: Any = await session.fetchrow(READ_HOLD)
        raise Refused(f"everything is held already: {held['held_reason']}")


async def release(session: Session, order: Order) -> None:
    """End the hold; what is due is then decided as after any outage. Raises Refused when nothing is held."""
    identity = await server_identity(session)
    if await session.fetchval(RELEASE_HOLD, identity, order.instance, order.actor, order.reason) is None:
        raise Refused("nothing is held")


def _affected(row: Row, known_through: datetime | None) -> Affected:
    waits = row["state"] == "expected"
    if row["coordination"] == "elsewhere":
        then = "waits for a check-in" if waits else "waits for its end to be reported"
    elif waits:
        then = f"decided by its catch_up ({row['catch_up']})"
    elif row["ending"]:
        then = f"ends ({row['ending']})"
    else:
        then = "goes on where the database stands"
    # A key may have been used as soon as the occurrence was due, or, of one that ran before, since what is known.
    first_use = max(row["claimed_at"] or row["scheduled_at"], known_through or row["scheduled_at"])
    valid_until = first_use + row["key_valid_for"] if row["outside"] and row["key_valid_for"] else None
    return Affected(
        str(Identity(row["job"], row["scheduled_at"], row["variant"])),
        row["state"],
        then,
        row["accounts_read"],
        row["open"],
        bool(row["outside"]),
        valid_until,
        valid_until is not None and valid_until < row["now"],
    )


async def _queues(session: Session, url: str, timeout: float) -> tuple[dict[str, int], str]:
    if not url:
        return {}, "MATINS_BROKER_URL is not set"
    recorded = (await read_topology(session) or {}).get("queues", {})
    try:
        facts = await inspect_broker(url, recorded, timeout=timeout)
    except BrokerUnavailable as error:
        return {}, str(error)
    return {name: depth.messages for name, depth in facts.queues.items() if depth is not None and depth.messages}, ""
