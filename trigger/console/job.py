"""One job: how it stands, its last occurrences, how its runs change, what it was told to do, and what is to come."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, Final

import anyio

from schemas.occurrence import Identity
from shared.declaration import FaultyDeclaration
from shared.errors import DeclarationError, MatinsError
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.timing import Timing
from trigger.alerts import list_alerts
from trigger.backfills import list_backfills
from trigger.console.asking import instant_of, one_of
from trigger.console.cells import Cell, cell_of, unplanned
from trigger.console.chart_runs import changes_of, charts_of
from trigger.console.clock_ahead import clock_ahead
from trigger.console.definition_changes import definition_change
from trigger.console.place import Asked, Page, Place, Values
from trigger.console.policies import policies_of
from trigger.console.status_look import status_kept
from trigger.maintenances import list_maintenance
from trigger.pauses import STILL_RUNNING
from trigger.preview import preview
from trigger.show import seconds_of
from trigger.standing import standing_of
from trigger.stats import Stats, read_stats
from trigger.status import read_job

JOB_STRIP = statement("trigger.console", "job_strip")
JOB_OCCURRENCES = statement("trigger.console", "job_occurrences")
JOB_REVISIONS = statement("trigger.console", "job_revisions")
PLANNED_BESIDE = statement("trigger.console", "planned_beside")

CELLS: Final = 60
HOLES: Final = 20
LISTED: Final = 25
INSTANTS: Final = 10
REVISIONS: Final = 10
MOST_ALERTS: Final = 10
MOST_NAMED: Final = 5
# How far a backfill is is counted from its occurrences.
MOST_BACKFILLS: Final = 3
MOST_MAINTENANCES: Final = 20
RUNS: Final = ("60", "30", "120")
# So long a page waits for a first count; it goes on behind the page.
COUNTING_SECONDS: Final = 2.0
NOTHING_AHEAD: Final = {"instants": [], "beside": {}, "jitter": False, "doubts": [], "clock": None}
# As far as `preview` looks.
FARTHEST: Final = timedelta(days=60 * 366)


async def read(asked: Asked) -> Values:
    """Read the page, all of it in one view of the database. Raises Refused and Unanswerable."""
    name, before = asked.path["job"], instant_of(asked.query, "before")
    runs = one_of(asked.query, "runs", RUNS) or RUNS[0]
    database = asked.place.database
    async with database.session() as session, session.transaction(isolation="repeatable_read", readonly=True):
        job, row = await read_job(session, name)
        alerts, found = await list_alerts(session, job=name, limit=MOST_ALERTS)
        occurrences = await _occurrences(session, job, row["now"], before)
        timing = _timing(name, row["definition"])
        stats = None if timing is None else await read_stats(session, name, int(runs))
        ahead = NOTHING_AHEAD if timing is None else await _ahead(session, timing, row["now"])
        revisions = await session.fetch(JOB_REVISIONS, name, REVISIONS + 1)
        orders = {
            "backfills": await list_backfills(session, name, MOST_BACKFILLS),
            "maintenances": await list_maintenance(session, name, limit=MOST_MAINTENANCES),
        }
        running = [str(Identity(name, *one)) for one in await session.fetch(STILL_RUNNING, name)]
    return {
        "title": name,
        "job": job,
        "definition": row["definition"],
        "standing": standing_of(row),
        "known": timing is not None,
        "zone": "UTC" if timing is None else timing.schedule.zone,
        "schedule": None if timing is None else timing.schedule.description,
        "alerts": alerts,
        "more_alerts": found - len(alerts),
        "running": await _progress(asked.place, running),
        "before": before,
        "runs": runs,
        "runs_valid": sorted(RUNS, key=int),
        "parts": policies_of(row["definition"]),
        "revisions": _revisions(revisions),
        **orders,
        **occurrences,
        **ahead,
        **_told_stats(stats),
    }


def _timing(name: str, definition: Mapping[str, Any]) -> Timing | None:
    """Give when the job is due; None where a later release has recorded it in a way that this one cannot read."""
    try:
        return Timing.from_definition(name, definition)
    except (DeclarationError, FaultyDeclaration, TypeError, ValueError):
        return None


async def _occurrences(
    session: Session, job: Mapping[str, Any], now: datetime, before: datetime | None
) -> dict[str, Any]:
    strip = await session.fetch(JOB_STRIP, job["job"], before, CELLS)
    holes: list[Cell] = []
    if before is None and not (job["next_at"] or job["paused_at"] or job["retired_at"]):
        holes = unplanned(job["schedule"], strip, now, HOLES)
    listed = await session.fetch(JOB_OCCURRENCES, job["job"], before, LISTED)
    return {
        "cells": [cell_of(dict(one)) for one in strip] + holes,
        "unplanned_since": strip[-1]["scheduled_at"] if holes else None,
        "cells_before": strip[0]["scheduled_at"] if strip and strip[0]["more"] else None,
        "occurrences": [_occurrence(one) for one in listed],
        "occurrences_before": listed[-1]["scheduled_at"] if listed and listed[0]["more"] else None,
    }


def _occurrence(row: Row) -> dict[str, Any]:
    written = str(Identity(row["job"], row["scheduled_at"], row["variant"]))
    return {**dict(row), "occurrence": written, "seconds": seconds_of(row)}


async def _progress(place: Place, running: Sequence[str]) -> list[dict[str, Any]]:
    """Give how far what runs is, as it was counted last; of what was not counted yet, or cannot be, its name alone."""
    if not running:
        return []
    counted: dict[str, Any] = {}
    with anyio.move_on_after(COUNTING_SECONDS), suppress(MatinsError):
        counted = {one["occurrence"]: one for one in (await status_kept(place)).value.running}
    return [counted.get(name) or {"occurrence": name, "accounts": None} for name in running]


async def _ahead(session: Session, timing: Timing, now: datetime) -> dict[str, Any]:
    """Give the next instants as `preview` does, who else is planned for them, and the next clock change."""
    rows = preview(timing, now, now + FARTHEST, INSTANTS)
    due = [datetime.fromisoformat(row.scheduled_at) for row in rows if row.scheduled_at and row.due_at]
    beside = await session.fetch(PLANNED_BESIDE, timing.job, due, MOST_NAMED)
    return {
        "instants": rows,
        "beside": {f"{one['scheduled_at']:%Y-%m-%dT%H:%M:%SZ}": dict(one) for one in beside},
        "jitter": bool(timing.jitter),
        "doubts": [str(doubt) for doubt in timing.schedule.warnings()],
        "clock": clock_ahead(timing, now),
    }


def _told_stats(stats: Stats | None) -> dict[str, Any]:
    if stats is None:
        return {"stats": None, "charts": [], "changes": []}
    changes = [
        {"number": change.number, **_change(one)} for change, one in zip(changes_of(stats), stats.changes, strict=True)
    ]
    return {"stats": stats, "charts": charts_of(stats), "changes": changes}


def _change(one: Any) -> dict[str, Any]:
    return {name: getattr(one, name) for name in ("at", "system", "version", "actor", "reason")}


def _revisions(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Give the last definitions, the latest first, each with what it changed."""
    told = []
    for place, row in enumerate(rows[:REVISIONS]):
        before = rows[place + 1]["definition"] if place + 1 < len(rows) else None
        names = ("revision", "effective_from", "recorded_by", "host", "version")
        told.append({name: row[name] for name in names} | {"differs": definition_change(before, row["definition"])})
    return told


PAGE: Final = Page("/jobs/{job}", "job.html", read, "tonight", frozenset({"before", "runs"}))
