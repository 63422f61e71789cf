"""What processes say of themselves, and the rights that one of them holds for a time."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from schemas.message import MESSAGE_VERSION
from shared.postgres import Session
from shared.sql_files import statement

TAKE_LEASE = statement("shared", "take_lease")
RELEASE_LEASES = statement("shared", "release_leases")
REGISTER_INSTANCE = statement("shared", "register_instance")
BEAT_INSTANCE = statement("shared", "beat_instance")
STOP_INSTANCE = statement("shared", "stop_instance")
ADVANCE_QUEUE = statement("shared", "advance_queue")


@dataclass(frozen=True, slots=True)
class Instance:
    """One process: a random id made at its start, and what is recorded beside it."""

    id: str
    kind: str
    host: str
    version: str
    region: str
    tzdata_version: str


async def register_instance(session: Session, instance: Instance, jobs: Mapping[str, Any]) -> datetime:
    """Record a process and what it knows of each job; give the database's time of its start."""
    started: datetime = await session.fetchval(
        REGISTER_INSTANCE,
        instance.id,
        instance.kind,
        instance.host,
        instance.version,
        instance.region,
        MESSAGE_VERSION,
        instance.tzdata_version,
        dict(jobs),
    )
    return started


async def beat_instance(session: Session, instance: str) -> None:
    """Say that the process lives."""
    await session.execute(BEAT_INSTANCE, instance)


async def stop_instance(session: Session, instance: str) -> None:
    """Say that the process has ended, and give back its rights."""
    await session.execute(RELEASE_LEASES, instance)
    await session.execute(STOP_INSTANCE, instance)


async def take_lease(
    session: Session, name: str, holder: str, duration: timedelta, *, now: datetime | None = None
) -> bool:
    """Take or renew the right `name` for `duration`; False while another holds it."""
    return await session.fetchval(TAKE_LEASE, name, holder, duration, now) is not None


async def advance_queues(session: Session, started: Mapping[str, datetime]) -> None:
    """Report, by queue, the latest publish time of the messages that were started."""
    if started:
        await session.execute(ADVANCE_QUEUE, list(started), list(started.values()))
