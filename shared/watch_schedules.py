"""Due instants without any row: the schedule compared with what was written, not only what was written with the clock.

A row that somebody has removed leaves nothing that could be late. So of each job its instants are enumerated once, when
they should have been claimed, from where the last comparison ended; what it costs depends on what was due, not on the
number of jobs or of past occurrences. An instant that planning has passed will never run by itself: it was `missed`;
one that nobody has planned yet is `not_claimed`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import orjson

from schemas.occurrence import Identity, parse_identity
from shared import clock
from shared.declaration import FaultyDeclaration
from shared.errors import DeclarationError
from shared.logs import logger
from shared.postgres import Row, Session
from shared.schedule_definition import schedule_of
from shared.schedule_protocol import Schedule
from shared.sql_files import statement
from shared.timing import Timing
from shared.watch import Detector, Finding, written
from shared.zones import tzdata_version

DUE_COMPARISONS = statement("shared", "due_comparisons")
WRITE_COMPARISONS = statement("shared", "write_comparisons")
ROWLESS_INSTANTS = statement("shared", "rowless_instants")
ROWLESS_ALERTS = statement("shared", "rowless_alerts")

JOBS_AT_ONCE: Final = 500
INSTANTS_AT_ONCE: Final = 1000
SECONDS_AT_ONCE: Final = 0.25
# Of a job that is compared for the first time: what it had lately, if that is not much.
LOOK_BACK: Final = timedelta(days=2)
LOOKED_BACK_AT_MOST: Final = 50
# A schedule that has ended, or that this release cannot read.
LATER: Final = timedelta(hours=1)
_log = logger(__name__)


@dataclass(frozen=True, slots=True)
class Compared:
    """What one job had due, how far that was enumerated, and when there is more to compare."""

    job: str
    revision: int
    instants: tuple[datetime, ...]
    through: datetime
    next_at: datetime


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Compare what is due to be compared, and see whether what was found before still has no row."""
    compared = await _compared(session, now)
    due = [(one.job, instant) for one in compared for instant in one.instants]
    standing: dict[tuple[str, datetime], Row] = {}
    for row in await session.fetch(ROWLESS_ALERTS):
        identity = parse_identity(row["subject"])
        if not identity.variant:
            standing[(identity.job, identity.scheduled_at)] = row
    asked = sorted({*due, *standing})
    rows: Sequence[Row] = []
    if asked:
        jobs, instants = [job for job, _ in asked], [instant for _, instant in asked]
        rows = await session.fetch(ROWLESS_INSTANTS, jobs, instants, tzdata_version() or "")
    if compared:
        await session.execute(
            WRITE_COMPARISONS,
            [one.job for one in compared],
            [one.revision for one in compared],
            [one.through for one in compared],
            [one.next_at for one in compared],
        )
    return [_finding(row, standing.get((row["job"], row["instant"]))) for row in rows]


async def _compared(session: Session, now: datetime | None) -> list[Compared]:
    """Enumerate what is due to be compared, for as long as a pass may; the rest is due at the next."""
    ends_at = clock.monotonic() + SECONDS_AT_ONCE
    compared = []
    for row in await session.fetch(DUE_COMPARISONS, JOBS_AT_ONCE, now):
        compared.append(_compare(row))
        if clock.monotonic() > ends_at:
            break
        # It computes: the process's other loops have their turn.
        await clock.sleep(0)
    return compared


def schedule_in(definition: Mapping[str, Any]) -> Schedule:
    """Make the schedule of a job's recorded definition, or remember it. Raises DeclarationError."""
    return _schedule(orjson.dumps(definition["schedule"]))


@lru_cache(maxsize=16_384)
def _schedule(definition: bytes) -> Schedule:
    return schedule_of(orjson.loads(definition))


def _compare(row: Row) -> Compared:
    """Enumerate the instants of a job that should have been claimed since the last comparison."""
    job, revision, present = row["name"], row["revision"], row["now"]
    try:
        timing = Timing(job, schedule_in(row["definition"]), timedelta(seconds=row["definition"].get("jitter", 0)))
    except (DeclarationError, FaultyDeclaration) as error:
        _log.warning("a schedule cannot be compared", job=job, reason=str(error))
        return Compared(job, revision, (), row["compared_through"] or present, present + LATER)
    tolerance = timing.jitter + timedelta(seconds=row["definition"]["decisions"]["start_within"])
    through = present - tolerance
    after = row["compared_through"] or _first(timing, max(row["effective_from"], through - LOOK_BACK), through)
    if row["retired"]:
        # One that is brought back counts from then.
        return Compared(job, revision, (), max(after, present), present + LATER)
    counts_at = row["counts_from"] and row["counts_from"] + tolerance
    if counts_at is not None and counts_at > present:
        # What a hold or a pause has kept is late by the time since its end.
        return Compared(job, revision, (), after, counts_at)
    through = max(through, after)
    instants = tuple(islice(timing.schedule.instants(after, through), INSTANTS_AT_ONCE))
    if len(instants) == INSTANTS_AT_ONCE:
        through = instants[-1]
    following = timing.schedule.next_after(through)
    next_at = present + LATER if following is None else following + tolerance
    return Compared(job, revision, () if row["paused"] else instants, through, next_at)


def _first(timing: Timing, after: datetime, through: datetime) -> datetime:
    """Give since when a job is compared for the first time."""
    few = len(list(islice(timing.schedule.instants(after, through), LOOKED_BACK_AT_MOST))) < LOOKED_BACK_AT_MOST
    return after if few else max(after, through)


def _finding(row: Row, standing: Row | None) -> Finding:
    subject = str(Identity(row["job"], row["instant"]))
    if standing is not None:
        return Finding(standing["kind"], subject, standing["told"], row["job"], None, standing["detail"])
    detail: dict[str, Any] = {"due_at": written(row["instant"]), "planned_through": written(row["planned_through"])}
    if row["instant"] <= row["planned_through"]:
        told = f"{subject} was due by the job's schedule and has no row: it was removed, and runs no more by itself"
        return Finding("missed", subject, told, row["job"], None, detail)
    planned = written(row["planned_through"])
    told = f"{subject} was due by the job's schedule and nobody has planned it; the job is planned through {planned}"
    return Finding("not_claimed", subject, told, row["job"], None, detail)


SCHEDULES: Final = Detector("schedules", frozenset({"not_claimed", "missed"}), look)
