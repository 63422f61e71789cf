"""What a job's last runs took, how late they began, who attempted them, and what was changed meanwhile."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from shared.growth import Lag, detail_of_duration, detail_of_lag, lag_of, start_within_of, told_duration, told_lag
from shared.interval import Forecast, forecast
from shared.postgres import Session
from shared.runs import Run, durations, lags, read_runs
from shared.schedule_definition import schedule_of
from shared.schedule_protocol import Schedule
from shared.sql_files import statement
from trigger.reach import require_job

STATS_JOB = statement("trigger", "stats_job")
STATS_ATTEMPTS = statement("trigger", "stats_attempts")
STATS_CHANGES = statement("trigger", "stats_changes")

# So many runs are judged at least, however few are shown.
JUDGED: Final = 60
MOST_CHANGES: Final = 200


@dataclass(frozen=True, slots=True)
class Change:
    """A version of a system, or a definition of the job, that began to run; `actor` is None where a service said so."""

    at: datetime
    system: str
    version: str
    actor: str | None
    reason: str | None


@dataclass(frozen=True, slots=True)
class Tally:
    """Who attempted one scheduled instant, and who won it."""

    attempts: int = 0
    wins: int = 0


@dataclass(frozen=True, slots=True)
class Stats:
    """All of it; `runs` and `changes` are the oldest first, `tallies` by scheduled instant."""

    job: str
    schedule: Schedule
    standing: str
    runs: Sequence[Run]
    tallies: Mapping[datetime, Tally]
    changes: Sequence[Change]
    duration: Forecast
    lag: Lag

    @property
    def attempts(self) -> int:
        """How often the runs were attempted, by all triggers."""
        return sum(self.tally(run).attempts for run in self.runs)

    @property
    def wins(self) -> int:
        """How often one of those was won."""
        return sum(self.tally(run).wins for run in self.runs)

    def tally(self, run: Run) -> Tally:
        """Give the attempts on one run; they are pruned with the ledger's months."""
        return self.tallies.get(run.scheduled_at, Tally())

    def as_json(self) -> dict[str, Any]:
        """Give it as JSON-able values: seconds, and instants."""
        return {
            "job": self.job,
            "schedule": self.schedule.description,
            "standing": self.standing,
            "duration": {"told": told_duration(self.duration), **detail_of_duration(self.duration)},
            "lag": {"told": told_lag(self.lag), **detail_of_lag(self.lag)},
            "attempts": self.attempts,
            "wins": self.wins,
            "runs": [self._run(run) for run in self.runs],
            "changes": [
                {name: getattr(one, name) for name in ("at", "system", "version", "actor", "reason")}
                for one in self.changes
            ],
        }

    def _run(self, run: Run) -> dict[str, Any]:
        trend, tally = self.duration.trend, self.tally(run)
        fitted = trend.at(run.scheduled_at) if trend and run.scheduled_at >= trend.since else None
        told = ("scheduled_at", "state", "accounts", "seconds", "lag_seconds", "claimed_by")
        return {
            **{name: getattr(run, name) for name in told},
            "fitted_seconds": None if fitted is None else round(fitted, 3),
            "attempts": tally.attempts,
            "wins": tally.wins,
        }


async def read_stats(session: Session, job: str, last: int, *, now: datetime | None = None) -> Stats:
    """Give the last `last` runs of a job with all that is known of them. Raises Refused when there is no such job.

    Trend and forecast are of the last 60 runs, or of more where more are shown.
    """
    await require_job(session, job)
    row: Any = await session.fetchrow(STATS_JOB, job, now)
    judged = (await read_runs(session, [job], max(last, JUDGED), now=now)).get(job, [])
    runs, schedule = judged[-last:], schedule_of(row["definition"]["schedule"])
    tallies, changes = {}, []
    if runs:
        since = runs[0].scheduled_at
        found = await session.fetch(STATS_ATTEMPTS, job, since)
        tallies = {one["scheduled_at"]: Tally(one["attempts"], one["wins"]) for one in found}
        changes = [Change(*one) for one in await session.fetch(STATS_CHANGES, job, since, MOST_CHANGES)]
    return Stats(
        job,
        schedule,
        "retired" if row["retired_at"] else "paused" if row["paused_at"] else "",
        runs,
        tallies,
        changes,
        forecast(durations(judged), schedule, row["now"], all_of_it=True),
        lag_of(lags(judged), start_within_of(row["definition"]), all_of_it=True),
    )
