"""What a pass asks for is found by indexes, whatever the number of jobs and of past occurrences."""

from typing import Any

import pytest

from benchmarks.history import make_history
from shared.postgres import Database, Session
from shared.runs import RUNS_OF_JOBS
from shared.watch_alerts import OPEN_ALERTS, STANDING_ALERTS, TELL_ALERTS
from shared.watch_clocks import SKEWED_INSTANCES
from shared.watch_ends import OVERDUE_OCCURRENCES
from shared.watch_growth import FORECASTS_DUE, STANDING_FORECASTS
from shared.watch_pass import DETECTORS, TAKE_WATCH
from shared.watch_progress import NOTE_PROGRESS, STUCK_OCCURRENCES
from shared.watch_results import UNMENDED_OCCURRENCES
from shared.watch_schedules import DUE_COMPARISONS, JOBS_AT_ONCE, ROWLESS_ALERTS, ROWLESS_INSTANTS
from shared.watch_starts import LATE_OCCURRENCES
from shared.watch_vanished import VANISHED_JOBS
from shared.watch_workers import ABSENT_SINCE
from shared.zones import tzdata_version
from tests.integration.watch.support import DUE, HOUR, MINUTE, REPEAT, looked, open_alerts, watch_on

JOBS = 10_000
NOW = DUE + 30 * MINUTE
# A statement, its arguments, and the indexes of the occurrences' table that it is answered from.
CASES: list[tuple[str, tuple[Any, ...], tuple[str, ...]]] = [
    (LATE_OCCURRENCES, (20, NOW), ("occurrence_expected",)),
    (OVERDUE_OCCURRENCES, (NOW,), ("occurrence_active",)),
    (NOTE_PROGRESS, (NOW,), ("occurrence_active",)),
    (STUCK_OCCURRENCES, (NOW,), ("occurrence_active",)),
    (UNMENDED_OCCURRENCES, (30, NOW), ("occurrence_ended_badly", "occurrence_missed")),
    (ROWLESS_INSTANTS, (["job-1"], [DUE], "made"), ("occurrence_",)),
    (ABSENT_SINCE, (["job-1"], [DUE], [None], NOW), ("occurrence_",)),
    (DUE_COMPARISONS, (500, NOW), ()),
    (VANISHED_JOBS, (NOW,), ()),
    (SKEWED_INSTANCES, (5.0, NOW), ()),
    (ROWLESS_ALERTS, (), ()),
    (STANDING_ALERTS, (["failed"], NOW), ()),
    (RUNS_OF_JOBS, (["job-1"], 60, NOW), ("occurrence_",)),
    (FORECASTS_DUE, (25, NOW), ()),
    (STANDING_FORECASTS, (), ()),
    (TELL_ALERTS, (REPEAT, ["failed"], NOW), ()),
    (OPEN_ALERTS, ([], [], [], [], [], [], [], "watcher", HOUR, NOW), ()),
    (TAKE_WATCH, ("watcher", HOUR, NOW), ()),
]
LARGE = ("occurrence", "ledger", "audit", "attempt")


@pytest.mark.timeout(240)
async def test_a_look_at_many_jobs_with_a_long_past_reads_no_table_through(
    database: Database, session: Session
) -> None:
    await make_history(session, jobs=JOBS, hours_ago=12, hours_ahead=2, now=NOW, zones=tzdata_version())
    watch = watch_on(database)
    await looked(watch, NOW)
    assert 0 < await session.fetchval("select count(*) from matins.comparison") <= JOBS_AT_ONCE
    assert await open_alerts(session) == []
    await session.execute("analyze", timeout=100)
    await session.execute("set plan_cache_mode = force_generic_plan")
    for query, arguments, indexes in CASES:
        rows = await session.fetch("explain (costs off) " + query, *arguments)
        plan = "\n".join(row[0] for row in rows)
        for index in indexes:
            assert f" using {index}" in plan or f"on {index}" in plan, f"{query}\n{plan}"
        for table in LARGE:
            assert f"Seq Scan on {table}" not in plan, f"{query}\n{plan}"


def test_every_detector_is_one_of_the_watch() -> None:
    kinds = {kind for one in DETECTORS for kind in one.kinds}
    assert kinds >= {"not_claimed", "not_finished", "no_progress", "partial", "failed", "missed", "job_vanished"}
    assert kinds >= {"config_mismatch", "clock_skew"}
