"""Reading what alert rules need and telling it as metrics: by one trigger at a time, so that each job has one series.

Another goes on where the one that holds the right falls silent. A trigger whose metrics nobody takes does not take it.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from schemas.alert import KINDS
from shared import telemetry
from shared.fleet import take_lease
from shared.logs import logger
from shared.postgres import Database, Session
from shared.sql_files import statement
from shared.telemetry import metrics

OBSERVED_JOBS = statement("trigger", "observed_jobs")
OBSERVED_ALERTS = statement("trigger", "observed_alerts")
OLDEST_UNSTARTED = statement("trigger", "oldest_unstarted")

INTERVAL: Final = timedelta(seconds=30)
# What was read is told, and the right to read it held, for as long as three passes take.
STANDS: Final = 3 * INTERVAL
# Each job is two series. Jobs beyond are left out, the last by name.
MOST_JOBS: Final = 10_000
_RIGHT: Final = "observe"
_log = logger(__name__)


@dataclass(slots=True)
class Observer:
    """One trigger's part in it; `left_out` tells that there were more jobs than are told."""

    database: Database
    instance: str
    left_out: bool = False

    async def observe_pass(self, now: datetime | None = None) -> bool:
        """Read and tell once; False when it was another's turn, or nobody takes what is measured."""
        if not telemetry.measures():
            return False
        async with self.database.session() as session:
            if not await take_lease(session, _RIGHT, self.instance, STANDS, now=now):
                self._tell({}, {}, {}, {}, {})
                return False
            await self._read(session, now)
        return True

    async def _read(self, session: Session, now: datetime | None) -> None:
        found = await session.fetch(OBSERVED_JOBS, MOST_JOBS + 1)
        alerts = {row["kind"]: row["alerts"] for row in await session.fetch(OBSERVED_ALERTS)}
        oldest: Any = await session.fetchrow(OLDEST_UNSTARTED, now)
        waits = (oldest["now"] - oldest["due_at"]).total_seconds() if oldest["due_at"] else 0.0
        if len(found) > MOST_JOBS and not self.left_out:
            _log.warning("metrics leave jobs out: there are too many", told=MOST_JOBS)
        self.left_out = len(found) > MOST_JOBS
        jobs = found[:MOST_JOBS]
        self._tell(
            {row["name"]: row["last_success_at"].timestamp() for row in jobs if row["last_success_at"]},
            {row["name"]: row["next_due_at"].timestamp() for row in jobs if row["next_due_at"]},
            dict.fromkeys(KINDS, 0.0) | alerts,
            {"": waits},
            {"": oldest["now"].timestamp()},
        )

    @staticmethod
    def _tell(
        last_success: dict[str, float],
        next_due: dict[str, float],
        open_alerts: dict[str, float],
        oldest_unstarted: dict[str, float],
        observed: dict[str, float],
    ) -> None:
        seconds = STANDS.total_seconds()
        metrics.last_success.tell(last_success, seconds=seconds)
        metrics.next_due.tell(next_due, seconds=seconds)
        metrics.open_alerts.tell(open_alerts, seconds=seconds)
        metrics.oldest_unstarted.tell(oldest_unstarted, seconds=seconds)
        metrics.observed.tell(observed, seconds=seconds)
