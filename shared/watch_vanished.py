"""What the database knows and the fleet declares no longer: `job_vanished`.

It was removed or renamed, or it fails to be imported or to be parsed, which is the same to whoever waits for its run.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Detector, Finding, written

VANISHED_JOBS = statement("shared", "vanished_jobs")


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Find the jobs that no live process declares though it should."""
    return [_finding(row) for row in await session.fetch(VANISHED_JOBS, now)]


def _finding(row: Row) -> Finding:
    last = "nobody remembers who did"
    if row["last_id"] is not None:
        seen = written(row["last_seen_at"])
        last = f"the last was {row['last_id'][:8]} of version {row['last_version']}, seen at {seen}"
    told = (
        f"{row['job']} is known and not retired, and none of {row['live']} live {row['kind']}s declares it; {last}: it "
        f"was removed or renamed, or its declaration fails"
    )
    detail = {"kind": row["kind"], "live": row["live"], "last_instance": row["last_id"]}
    return Finding("job_vanished", row["job"], told, row["job"], None, detail)


VANISHED: Final = Detector("vanished", frozenset({"job_vanished"}), look)
