"""What the last runs of jobs took, and how late they began."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shared.forecast import Point
from shared.postgres import Session
from shared.sql_files import statement

RUNS_OF_JOBS = statement("shared", "runs_of_jobs")


@dataclass(frozen=True, slots=True)
class Run:
    """One scheduled occurrence that was claimed.

    `seconds` is what its first generation took, None while it runs and where it did not go through; `lag_seconds` is
    from when it was due to its claim. `accounts` is None before it is closed.
    """

    scheduled_at: datetime
    state: str
    claimed_by: str
    accounts: int | None
    lag_seconds: float
    seconds: float | None


async def read_runs(
    session: Session, jobs: Sequence[str], most: int, *, now: datetime | None = None
) -> dict[str, list[Run]]:
    """Give the last `most` runs of each of the jobs that has any, the oldest first."""
    found: dict[str, list[Run]] = {}
    for row in await session.fetch(RUNS_OF_JOBS, list(jobs), most, now):
        run = Run(
            row["scheduled_at"], row["state"], row["claimed_by"], row["total"], row["lag_seconds"], row["seconds"]
        )
        found.setdefault(row["job"], []).insert(0, run)
    return found


def durations(runs: Sequence[Run]) -> list[Point]:
    """Give what the runs took, of those that went through."""
    return [Point(run.scheduled_at, run.seconds) for run in runs if run.seconds is not None]


def lags(runs: Sequence[Run]) -> list[Point]:
    """Give how long after they were due the runs began."""
    return [Point(run.scheduled_at, run.lag_seconds) for run in runs]
