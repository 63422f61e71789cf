"""Noticing that the database was put back, and holding everything until a person has read what may happen twice.

Every sign of life that a process commits is counted, in its row and in its memory. If the row counts less than the
process remembers, commits that were acknowledged are gone: after a restore, or a failover to a standby that lagged. The
process then holds everything and ends, since what else it remembers is not true either.

A process that has just started remembers nothing. It looks whether the database is on the server and timeline on which
somebody who remembered has last found it whole; if not, and nobody comes to vouch for it, it holds everything too.
After a failover that lost nothing, the processes that lived through it vouch with their next sign of life.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NoReturn

from shared import clock
from shared.errors import MatinsError
from shared.limits import CLOCK_SKEW_SECONDS
from shared.logs import logger
from shared.postgres import Database, InsufficientPrivilege, Session
from shared.sql_files import statement
from shared.stopping import Stopping

BEAT_INSTANCE = statement("shared", "beat_instance")
HOLD = statement("shared", "hold")
READ_BEATS = statement("shared", "read_beats")
READ_HOLD = statement("shared", "read_hold")
SERVER_IDENTITY = statement("shared", "server_identity")
VOUCH = statement("shared", "vouch")

# Longer than two signs of life are apart.
VOUCHED_WITHIN_SECONDS = 12.0
PAUSE_SECONDS = 1.0
_log = logger(__name__)


class DatabaseWentBack(MatinsError):
    """Commits of this process are gone from the database; everything is held, and this process must start anew."""


@dataclass(slots=True)
class Witness:
    """What a process remembers of its signs of life; `held` says why everything is held, as of the last one.

    `skew` is by how many seconds its clock was ahead of the database's then, and is told with the next.
    """

    instance: str
    started_at: datetime
    beats: int = 0
    held: str | None = None
    skew: float | None = None

    async def beat(self, session: Session) -> None:
        """Say that the process lives, and see that the database remembers what it was told. Raises DatabaseWentBack."""
        asked_at = clock.utc_now()
        row: Any = await session.fetchrow(BEAT_INSTANCE, self.instance, self.skew)
        answered_at = clock.utc_now()
        if row is None or row["beats"] <= self.beats:
            await self._lost(session, row, row and row["beats"] - 1)
        self.beats = row["beats"]
        self._measure(asked_at, row["now"], answered_at)
        if (here := await server_identity(session)) is not None:
            await session.execute(VOUCH, here)
        found: Any = await session.fetchrow(READ_HOLD)
        self.held = told(found)

    async def examine(self, session: Session) -> None:
        """See the same on a new connection, before anything is done on it: the old ones ended when it was put back.

        Raises DatabaseWentBack.
        """
        # A sign of life may be committed, and remembered here, after the row was read and before its answer came.
        remembered = self.beats
        row: Any = await session.fetchrow(READ_BEATS, self.instance)
        if row is None or row["beats"] < remembered:
            await self._lost(session, row, row and row["beats"])

    def _measure(self, asked_at: datetime, theirs: datetime, answered_at: datetime) -> None:
        """Compare the clocks; what a slow answer, or a clock that was set meanwhile, would tell, is not known."""
        took = (answered_at - asked_at).total_seconds()
        if 0 <= took < CLOCK_SKEW_SECONDS:
            self.skew = (asked_at - theirs).total_seconds() + took / 2

    async def _lost(self, session: Session, row: Any, remembered: int | None) -> NoReturn:
        told_of = "none" if remembered is None else f"{remembered}"
        reason = f"the database was put back: of {self.beats} signs of life of a process it remembers {told_of}"
        await hold(session, reason, row["seen_before"] if row else self.started_at, instance=self.instance)
        raise DatabaseWentBack(reason)


async def await_continuity(database: Database, instance: str, stopping: Stopping) -> None:
    """See that the database is where it was last found whole; else wait for somebody to vouch for it, or hold."""
    ends_at = clock.monotonic() + VOUCHED_WITHIN_SECONDS
    while not stopping.requested:
        async with database.session() as session:
            here = await server_identity(session)
            found: Any = await session.fetchrow(READ_HOLD)
            known = found and found["server"]
            if here is None or known in {None, here} or found["held_since"]:
                return
            if clock.monotonic() > ends_at:
                reason = (
                    f"the database is on server/timeline {here} and was last known on {known}; nobody can vouch for it"
                )
                await hold(session, reason, None, instance=instance)
                return
        _log.warning("waiting for somebody to vouch for the database", known=known, found=here)
        await clock.sleep(PAUSE_SECONDS)


async def hold(session: Session, reason: str, known_through: datetime | None, *, instance: str) -> None:
    """Hold everything, unless it is held already. What happened later than `known_through` is not in the database."""
    await session.execute(HOLD, reason, known_through, instance)
    _log.error("everything is held", reason=reason, known_through=known_through)


async def server_identity(session: Session) -> str | None:
    """Name the server and its timeline; None on a standby, and where the server doesn't tell this login."""
    try:
        identity: str | None = await session.fetchval(SERVER_IDENTITY)
    except InsufficientPrivilege:
        return None
    return identity


def told(row: Any) -> str | None:
    """Say in a few words that everything is held, and why; None when it isn't."""
    if row is None or row["held_since"] is None:
        return None
    return f"everything is held since {row['held_since']:%Y-%m-%d %H:%M} UTC: {row['held_reason']}; see `reconcile`"
