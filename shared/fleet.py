"""What processes say of themselves, and the rights that one of them holds for a time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from schemas.message import MESSAGE_VERSION
from shared.logs import logger
from shared.postgres import SILENCE_SECONDS, Session
from shared.sql_files import statement

TAKE_LEASE = statement("shared", "take_lease")
RELEASE_LEASES = statement("shared", "release_leases")
REGISTER_INSTANCE = statement("shared", "register_instance")
STOP_INSTANCE = statement("shared", "stop_instance")
ADVANCE_QUEUE = statement("shared", "advance_queue")
END_SILENT_SESSIONS = statement("shared", "end_silent_sessions")
READ_TOPOLOGY = statement("shared", "read_topology")
READ_VERSIONS = statement("shared", "read_versions")
RUNNABLE_JOBS = statement("shared", "runnable_jobs")
SILENCE = timedelta(seconds=SILENCE_SECONDS)
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Instance:
    """One process: a random id made at its start, and what is recorded beside it."""

    id: str
    kind: str
    host: str
    version: str
    region: str
    tzdata_version: str


async def register_instance(
    session: Session,
    instance: Instance,
    jobs: Mapping[str, Any],
    queues: Sequence[str] = (),
    definitions: Mapping[str, str] | None = None,
) -> datetime:
    """Record a process, what it knows of each job, and the queues it counts on.

    `definitions` are the fingerprints of the jobs that it declares; None: those that were recorded stay. Gives the
    database's time of its start.
    """
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
        list(queues),
        None if definitions is None else dict(definitions),
    )
    return started


async def stop_instance(session: Session, instance: str) -> None:
    """Say that the process has ended."""
    await session.execute(STOP_INSTANCE, instance)


async def runnable_jobs(session: Session, *, but: str = "") -> frozenset[str]:
    """Give the jobs that a live worker can run, leaving out the worker `but`."""
    return frozenset(row["job"] for row in await session.fetch(RUNNABLE_JOBS, but))


async def release_leases(session: Session, holder: str) -> None:
    """Give back every right that a process holds."""
    await session.execute(RELEASE_LEASES, holder)


async def read_topology(session: Session) -> dict[str, Any] | None:
    """Give the record of what migrate has made on the broker; None before the first."""
    recorded: dict[str, Any] | None = await session.fetchval(READ_TOPOLOGY)
    return recorded


@dataclass(slots=True)
class Spoken:
    """Which versions of messages the live workers read, as of the last sign of life of this process.

    `oldest` is what may be published, so that each of them can read it; before the first look it is the first version.
    `newest` tells whether somebody else can read what this release cannot.
    """

    oldest: int = 1
    newest: int = MESSAGE_VERSION

    async def listen(self, session: Session) -> None:
        """Look which workers live."""
        row: Any = await session.fetchrow(READ_VERSIONS)
        read = [MESSAGE_VERSION] if row["oldest"] is None else [row["oldest"], row["newest"]]
        oldest = min(MESSAGE_VERSION, *read)
        if oldest != self.oldest:
            _log.info("message version", version=oldest, former=self.oldest)
        self.oldest, self.newest = oldest, max(read)


async def take_lease(
    session: Session, name: str, holder: str, duration: timedelta, *, now: datetime | None = None
) -> bool:
    """Take or renew the right `name` for `duration`; False while another holds it."""
    return await session.fetchval(TAKE_LEASE, name, holder, duration, now) is not None


async def advance_queues(session: Session, started: Mapping[str, datetime]) -> None:
    """Report, by queue, the latest publish time of the messages that were started."""
    if started:
        await session.execute(ADVANCE_QUEUE, list(started), list(started.values()))


async def end_silent_sessions(session: Session, silence: timedelta = SILENCE) -> None:
    """End sessions of our login that a frozen process has left in the middle of a message, with the locks they hold."""
    if ended := len(await session.fetch(END_SILENT_SESSIONS, silence)):
        _log.warning("sessions of a silent process ended", sessions=ended)
