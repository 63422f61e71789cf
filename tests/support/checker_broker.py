"""The checker's look into the broker: what waits where, and whether every message that was left names a row."""

from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import aio_pika
from aio_pika.exceptions import ChannelClosed

from schemas.message import NewerMessage, UnreadableMessage, WorkMessage, decode
from shared.postgres import Session
from tests.support.checker_rules import Violation

# So many messages of a queue that should be empty are read, to say what they are.
LEFT_SHOWN = 3
KNOWN = """
select occurrence_id, account from unnest($1::bigint[], $2::text[]) as asked (occurrence_id, account)
 where exists (select from matins.ledger l where l.occurrence_id = asked.occurrence_id and l.account = asked.account)
"""
DEAD = "select occurrence_id, account from matins.ledger where state = 'dead'"


@dataclass(frozen=True, slots=True)
class Found:
    """A message that was found in a queue, and left there; `message` is None when nobody can read it."""

    queue: str
    body: bytes
    message: WorkMessage | None

    def __str__(self) -> str:
        return self.body[:200].decode(errors="replace")


async def judge_broker(
    session: Session, broker_url: str, topology: Mapping[str, Any] | None, *, at_rest: bool, strangers: int
) -> list[Violation]:
    """Look into the queues that migrate has made. At rest none but the parked one holds anything.

    Every parked message names rows, except `strangers` of them that the test has sent itself; every dead row has one.
    """
    queues = list((topology or {}).get("queues", {}))
    parked: list[Found] = []
    left: list[Violation] = []
    async with await aio_pika.connect(broker_url) as connection:
        for queue in queues:
            if queue.endswith(".dead.parked"):
                parked += [found async for found in peek(connection, queue, None)]
            elif at_rest:
                found = [str(one) async for one in peek(connection, queue, LEFT_SHOWN)]
                left += [Violation("message left", queue, " | ".join(found))] if found else []
    return [*left, *await _judge_parked(session, parked, strangers)]


async def peek(connection: Any, queue: str, most: int | None) -> AsyncIterator[Found]:
    """Give the messages that wait in a queue, and put them back; nothing for a queue that there is not."""
    kept: list[Any] = []
    async with connection.channel() as channel:
        with suppress(ChannelClosed):
            waiting = await channel.get_queue(queue, ensure=False)
            while (most is None or len(kept) < most) and (message := await waiting.get(fail=False)) is not None:
                kept.append(message)
                yield Found(queue, message.body, _read(message.body))
            for message in kept:
                await message.reject(requeue=True)


def _read(body: bytes) -> WorkMessage | None:
    try:
        return decode(body)
    except (UnreadableMessage, NewerMessage):
        return None


async def _judge_parked(session: Session, parked: list[Found], strangers: int) -> list[Violation]:
    pairs = {
        (found.message.occurrence_id, account)
        for found in parked
        if found.message
        for account in found.message.accounts
    }
    ids, accounts = [one for one, _ in pairs], [account for _, account in pairs]
    known = {(row["occurrence_id"], row["account"]) for row in await session.fetch(KNOWN, ids, accounts)}
    strange = [
        found
        for found in parked
        if found.message is None
        or any((found.message.occurrence_id, one) not in known for one in found.message.accounts)
    ]
    violations = []
    if len(strange) > strangers:
        seen = " | ".join(str(one) for one in strange[:LEFT_SHOWN])
        violations.append(Violation("message without its row", strange[0].queue, f"{len(strange)} parked: {seen}"))
    alone = {
        (found.message.occurrence_id, found.message.accounts[0])
        for found in parked
        if found.message and len(found.message.accounts) == 1
    }
    for row in await session.fetch(DEAD):
        if (row["occurrence_id"], row["account"]) not in alone:
            told = f"occurrence {row['occurrence_id']} {row['account']!r}"
            violations.append(Violation("dead without its parked message", told, f"{len(parked)} messages are parked"))
    return violations
