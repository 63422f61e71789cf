"""What each job's last runs took, for judging its interval."""

from collections.abc import Sequence

from shared.postgres import Session
from shared.sql_files import statement
from trigger.lint import LastRuns

LAST_DURATIONS = statement("trigger", "last_durations")
RUNS = 20


async def read_last_runs(session: Session, jobs: Sequence[str]) -> dict[str, LastRuns]:
    """Give, for those of the jobs that have finished runs, how long the longest of the last twenty took."""
    rows = await session.fetch(LAST_DURATIONS, list(jobs), RUNS)
    return {row["job"]: LastRuns(row["runs"], row["longest"]) for row in rows}
