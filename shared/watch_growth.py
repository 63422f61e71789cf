"""Runs that take longer and longer, or begin later and later: `duration_near_interval` and `lag_growing`.

Each job is judged again some time after its last judgement, a bounded number of jobs in a pass, and what was found is
kept until then: a pass of a fleet with thousands of jobs reads the runs of a few.
"""

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from shared.errors import MatinsError
from shared.growth import detail_of_duration, detail_of_lag, lag_of, start_within_of, told_duration, told_lag
from shared.interval import forecast
from shared.logs import logger
from shared.postgres import Row, Session, database_now
from shared.runs import Run, durations, lags, read_runs
from shared.schedule_definition import schedule_of
from shared.sql_files import statement
from shared.watch import Detector, Finding

FORECASTS_DUE = statement("shared", "forecasts_due")
WRITE_FORECASTS = statement("shared", "write_forecasts")
STANDING_FORECASTS = statement("shared", "standing_forecasts")

DURATION: Final = "duration_near_interval"
LAG: Final = "lag_growing"
# What is judged in a pass, and by how many of a job's last runs.
JOBS_AT_ONCE: Final = 25
RUNS: Final = 60
# A judgement stands as long as it takes to the next run, within these.
SOONEST: Final = timedelta(minutes=1)
LATEST: Final = timedelta(hours=1)
_log = logger(__name__)


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Judge those jobs whose turn it is, and give what stands of all."""
    due = await session.fetch(FORECASTS_DUE, JOBS_AT_ONCE, now)
    if due:
        instant = now or await database_now(session)
        runs = await read_runs(session, [row["name"] for row in due], RUNS, now=now)
        judged = [_judged(row, runs.get(row["name"], []), instant) for row in due]
        await session.execute(WRITE_FORECASTS, judged, now)
    return list(_findings(await session.fetch(STANDING_FORECASTS)))


def _judged(row: Row, runs: Sequence[Run], now: datetime) -> dict[str, Any]:
    """Judge one job; one whose definition this release cannot read is left to those that can."""
    name, definition = row["name"], row["definition"]
    try:
        found = forecast(durations(runs), schedule_of(definition["schedule"]), now)
        lag = lag_of(lags(runs), start_within_of(definition))
    except (MatinsError, KeyError, TypeError) as error:
        _log.warning("a job's runs cannot be judged", job=name, reason=str(error))
        return {"job": name, "judge_at": now + LATEST}
    told_of = found.soon or (found.overlaps and definition["decisions"]["overlap"] != "allow")
    return {
        "job": name,
        "judge_at": now + min(max(found.interval or LATEST, SOONEST), LATEST),
        "duration": _kept(told_duration(found), detail_of_duration(found)) if told_of else None,
        "lag": _kept(told_lag(lag), detail_of_lag(lag)) if lag.grows else None,
    }


def _kept(told: str, detail: dict[str, Any]) -> dict[str, Any]:
    return {"told": told, "detail": detail}


def _findings(rows: Iterable[Row]) -> Iterator[Finding]:
    for row in rows:
        for kind, kept in ((DURATION, row["duration"]), (LAG, row["lag"])):
            if kept is not None:
                job = row["job"]
                yield Finding(kind, job, f"{job}: {kept['told']}", job=job, detail=kept["detail"])


GROWTH: Final = Detector("growth", frozenset({DURATION, LAG}), look)
