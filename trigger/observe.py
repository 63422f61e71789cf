"""Reading what rules and dashboards need and telling it as metrics: by one trigger at a time, so none is told twice.

Another goes on where the one that holds the right falls silent. A trigger whose metrics nobody takes does not take it.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from schemas.alert import KINDS
from shared import telemetry
from shared.fleet import take_lease
from shared.logs import logger
from shared.postgres import Database, Row, Session
from shared.sql_files import statement
from shared.telemetry import metrics
from shared.telemetry_gauges import Gauge, Values

OBSERVED_JOBS = statement("trigger", "observed_jobs")
OBSERVED_RUNS = statement("trigger", "observed_runs")
OBSERVED_ALERTS = statement("trigger", "observed_alerts")
OBSERVED_DEPLOYS = statement("trigger", "observed_deploys")
OLDEST_UNSTARTED = statement("trigger", "oldest_unstarted")

INTERVAL: Final = timedelta(seconds=30)
# What was read is told, and the right to read it held, for as long as three passes take.
STANDS: Final = 3 * INTERVAL
# Each job is eight series or so. Jobs beyond are left out, the last by name.
MOST_JOBS: Final = 10_000
# Of so many deploy markers the last of each system is told.
MARKERS: Final = 200
OUTCOMES: Final = ("succeeded", "failed", "dead", "cancelled")
_RIGHT: Final = "observe"
_log = logger(__name__)

_Told = Mapping[Gauge, Values]


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
                _tell({})
                return False
            jobs = await self._jobs(session)
            runs = await session.fetch(OBSERVED_RUNS, [row["name"] for row in jobs], now)
            _tell(_of_jobs(jobs) | _of_runs(runs) | await _of_the_rest(session, now))
        return True

    async def _jobs(self, session: Session) -> Sequence[Row]:
        found = await session.fetch(OBSERVED_JOBS, MOST_JOBS + 1)
        if len(found) > MOST_JOBS and not self.left_out:
            _log.warning("metrics leave jobs out: there are too many", told=MOST_JOBS)
        self.left_out = len(found) > MOST_JOBS
        return found[:MOST_JOBS]


def _of_jobs(jobs: Iterable[Row]) -> dict[Gauge, Values]:
    columns = {metrics.last_success: "last_success_at", metrics.next_due: "next_due_at"}
    return {
        gauge: {(row["name"],): row[column].timestamp() for row in jobs if row[column]}
        for gauge, column in columns.items()
    }


def _of_runs(runs: Iterable[Row]) -> dict[Gauge, Values]:
    columns = {
        metrics.interval: "interval_seconds",
        metrics.run_duration: "seconds",
        metrics.run_lag: "lag_seconds",
        metrics.run_attempts: "attempts",
        metrics.run_wins: "wins",
    }
    told: dict[Gauge, Values] = {
        gauge: {(row["job"],): row[column] for row in runs if row[column] is not None}
        for gauge, column in columns.items()
    }
    # An outcome that no account had is told of the first one alone: most runs have one.
    accounts: Values = {
        (row["job"], outcome): row[outcome]
        for row in runs
        for outcome in OUTCOMES
        if row[outcome] or (row[outcome] == 0 and outcome == OUTCOMES[0])
    }
    return told | {metrics.run_accounts: accounts}


async def _of_the_rest(session: Session, now: datetime | None) -> dict[Gauge, Values]:
    alerts = dict.fromkeys(KINDS, 0) | {row["kind"]: row["alerts"] for row in await session.fetch(OBSERVED_ALERTS)}
    deploys = await session.fetch(OBSERVED_DEPLOYS, MARKERS)
    oldest: Any = await session.fetchrow(OLDEST_UNSTARTED, now)
    waits = (oldest["now"] - oldest["due_at"]).total_seconds() if oldest["due_at"] else 0.0
    return {
        metrics.open_alerts: {(kind,): count for kind, count in alerts.items()},
        metrics.deployed: {(row["system"], row["version"]): row["at"].timestamp() for row in deploys},
        metrics.oldest_unstarted: {(): waits},
        metrics.observed: {(): oldest["now"].timestamp()},
    }


def _tell(told: _Told) -> None:
    for gauge in metrics.gauges():
        gauge.tell(told.get(gauge, {}), seconds=STANDS.total_seconds())
