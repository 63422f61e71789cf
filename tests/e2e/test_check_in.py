"""The command line for a job that runs elsewhere: it checks in, and every other command works or says why not."""

import json
import os
import subprocess
import sys
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple

import pytest

from schemas.occurrence import format_instant
from shared.job import Cron, RunsElsewhere, hours, minutes
from shared.postgres import Session
from tests.architecture.sources import ROOT
from tests.support.ledger import session_on
from trigger.plan import plan_ahead
from trigger.register import register

JOBS = """
from shared.job import Cron, RunsElsewhere, hours, minutes

jobs = [
    RunsElsewhere(
        "report", Cron("0 * * * *"), start_within=minutes(10), finish_within=hours(1), heard_within=hours(20)
    ),
]
"""
FOREIGN = RunsElsewhere(
    "report", Cron("0 * * * *"), start_within=minutes(10), finish_within=hours(1), heard_within=hours(20)
)
SECONDS = 50.0
WHY = ("--reason", "because")
# Each command is a process of its own, and a busy machine takes its time to start one.
pytestmark = pytest.mark.timeout(400)


class Ended(NamedTuple):
    """How a command ended, and what it said."""

    code: int
    said: str


class Place(NamedTuple):
    """A database on which the job is planned, and the last two instants of it."""

    folder: Path
    database_url: str
    before: datetime
    last: datetime

    def run(self, *words: str) -> Ended:
        """Run `python -m trigger …`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("MATINS_", "OTEL_"))}
        own = {"MATINS_JOBS": "foreign_jobs", "MATINS_DATABASE_URL": self.database_url, "MATINS_ENVIRONMENT": "test"}
        done = subprocess.run(
            [sys.executable, "-m", "trigger", *words],
            cwd=ROOT,
            env=kept | own | {"PYTHONPATH": str(self.folder), "COLUMNS": "200"},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return Ended(done.returncode, done.stdout + done.stderr)


async def planned(session: Session, folder: Path, database_url: str) -> Place:
    (folder / "foreign_jobs.py").write_text(JOBS)
    await session.execute("insert into matins.environment (name) values ('test')")
    now: datetime = await session.fetchval("select clock_timestamp()")
    last = now.replace(minute=0, second=0, microsecond=0)
    known = last - timedelta(hours=3)
    await register(session, FOREIGN, instance="one", now=known)
    await plan_ahead(session, FOREIGN, 1, now=known)
    return Place(folder, database_url, last - timedelta(hours=2), last - timedelta(hours=1))


async def test_a_run_checks_in_and_is_seen(tmp_path: Path, database_url: str) -> None:
    async with session_on(database_url) as session:
        place = await planned(session, tmp_path, database_url)
        at, occurrence = ("--at", format_instant(place.last)), f"report:{format_instant(place.last)}"
        named = ("check-in", "report")
        assert place.run(*named, "start", "--run", "a", *at) == (0, f"{occurrence} is running\n")
        again = place.run(*named, "start", "--run", "a", "--json")
        assert (again.code, json.loads(again.said)["deduplicated"]) == (0, True)
        assert occurrence in place.run("occurrences", "report", "--state", "claimed").said
        assert "not well: " in place.run("status").said
        assert place.run("attempts", occurrence).code == 0
        failed = place.run(*named, "fail", "--run", "a", "--message", "exit code 3", "--actor", "cron")
        assert failed == (0, f"{occurrence} failed\n")
        shown = place.run("show", occurrence)
        assert "reported by cron: exit code 3" in shown.said
        assert "as run a" in shown.said
        told = f"report: {occurrence} is over: it was succeeded"
        assert place.run(*named, "success", *at) == (0, f"{occurrence} succeeded\n")
        refused = place.run(*named, "fail", *at)
        assert (refused.code, told in refused.said) == (2, True)
        kinds = await session.fetch("select actor_kind from matins.audit where kind = 'check_in'")
        assert {row["actor_kind"] for row in kinds} == {"operator"}


async def test_what_cannot_be_reported_says_why(tmp_path: Path, database_url: str) -> None:
    async with session_on(database_url) as session:
        place = await planned(session, tmp_path, database_url)
        for words, code, told in (
            (("report", "done"), 2, "start"),
            (("report", "start", "--run", "a b"), 2, "--run: is 1 to 100 letters"),
            (("report", "start", "--message", "x"), 2, "--message: goes with fail"),
            (("reprot", "start"), 2, "did you mean report"),
            (("report", "start", "--at", "2020-01-01T00:00Z"), 2, "is not on the job's schedule"),
        ):
            ended = place.run("check-in", *words)
            assert (ended.code, told in ended.said) == (code, True), ended.said
        assert place.run("pause", "report", *WHY).code == 0
        paused = place.run("check-in", "report", "start", "--at", format_instant(place.last))
        assert (paused.code, "is paused" in paused.said) == (1, True), paused.said
        assert place.run("retire", "report", *WHY).code == 0
        retired = place.run("check-in", "report", "start", "--at", format_instant(place.last))
        assert (retired.code, "report is retired" in retired.said) == (2, True), retired.said


async def test_what_makes_no_sense_for_it_is_refused_and_the_rest_works(tmp_path: Path, database_url: str) -> None:
    async with session_on(database_url) as session:
        place = await planned(session, tmp_path, database_url)
        last, before = format_instant(place.last), format_instant(place.before)
        assert place.run("check-in", "report", "fail", "--at", last).code == 0
        span = ("--from", before, "--until", last)
        for words in (
            ("fire", "report", "--at", before, *WHY),
            ("fire", "report", "--ad-hoc", *WHY),
            ("rerun", f"report:{last}", "--failed", *WHY),
            ("backfill", "report", *span, *WHY),
            ("pause", "report", "--meanwhile", "hold", *WHY),
        ):
            ended = place.run(*words)
            assert (ended.code, "report runs elsewhere" in ended.said) == (2, True), (words, ended.said)
        shown = f"show report:{before}"
        for line in ("check", "jobs", "preview report", "occurrences report", shown, "attempts report"):
            ended = place.run(*line.split())
            assert ended.code == 0, (line, ended.said)
        assert place.run("cancel", f"report:{before}", *WHY).code == 0
        assert "elsewhere" in place.run("jobs").said
