"""Processes whose clock is not the database's: `clock_skew`.

Nothing is decided by a process's clock. But its log lines, its spans and what a job's code makes of the time are wrong.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from shared.limits import CLOCK_SKEW_SECONDS
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.watch import Detector, Finding

SKEWED_INSTANCES = statement("shared", "skewed_instances")


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Find the live processes that have measured a clock which is far off."""
    return [_finding(row) for row in await session.fetch(SKEWED_INSTANCES, CLOCK_SKEW_SECONDS, now)]


def _finding(row: Row) -> Finding:
    side = "ahead of" if row["skew"] > 0 else "behind"
    told = (
        f"the clock of {row['kind']} {row['id'][:8]} on {row['host']} is {abs(row['skew']):.1f} s {side} the "
        f"database's, and may be {CLOCK_SKEW_SECONDS:g} s off"
    )
    return Finding("clock_skew", row["id"], told, None, None, {"seconds": round(row["skew"], 3), "host": row["host"]})


CLOCKS: Final = Detector("clocks", frozenset({"clock_skew"}), look)
