"""The first page: every job with its last occurrences, what runs, what is due next, and what is not well on top."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from shared import clock
from shared.postgres import Session
from shared.sql_files import statement
from trigger.console.asking import one_of, page_number, words
from trigger.console.cells import Cell, cell_of, unplanned
from trigger.console.place import GLANCE_SECONDS, STALE_SECONDS, Asked, Page, Values
from trigger.console.status_look import status_kept
from trigger.show import seconds_of
from trigger.status import Status

STRIPS = statement("trigger.console", "strips")

CELLS: Final = 20
JOBS_A_PAGE: Final = 100
MOST_ALERTS: Final = 10
SHOWS: Final = ("all", "attention", "running", "stopped", "retired")


@dataclass(frozen=True, slots=True)
class Row:
    """One job: `attention` says why it is on top, or is ''; `zone` is that of its schedule."""

    job: dict[str, Any]
    cells: Sequence[Cell]
    zone: str
    attention: str
    running: Sequence[dict[str, Any]]
    seconds: float | None


async def read(asked: Asked) -> Values:
    """Read the page. Raises Unanswerable."""
    page, wanted, shows = page_number(asked.query), words(asked.query, "q"), one_of(asked.query, "show", SHOWS)
    kept = await status_kept(asked.place)
    status: Status = kept.value
    chosen = sorted((one for one in _judged(status) if _is_asked(one, wanted, shows)), key=_place)
    pages = max(1, -(-len(chosen) // JOBS_A_PAGE))
    page = min(page, pages)
    rows = chosen[(page - 1) * JOBS_A_PAGE : page * JOBS_A_PAGE]
    async with asked.place.database.session() as session:
        strips = await _strips(session, [one.job["job"] for one in rows])
    return {
        "title": "Tonight",
        "status": status,
        "alerts": status.alerts[:MOST_ALERTS],
        "rows": [_with_cells(one, strips.get(one.job["job"], [])) for one in rows],
        "watched": sum(job["retired_at"] is None for job in status.jobs),
        # As of what is judged, which may be older than the strips beside it.
        "read_at": kept.read_at,
        "page": page,
        "pages": pages,
        "found": len(chosen),
        "wanted": wanted,
        "shows": shows,
    }


async def _strips(session: Session, jobs: Sequence[str]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for row in await session.fetch(STRIPS, list(jobs), CELLS):
        found.setdefault(row["job"], []).insert(0, row)
    return found


def _judged(status: Status) -> list[Row]:
    """Give a row for each job, without its cells yet."""
    told = {alert["job"] for alert in status.alerts if alert["standing"] == "told"}
    running: dict[str, list[dict[str, Any]]] = {}
    for one in status.running:
        running.setdefault(one["job"], []).append(one)
    unmended = {one["occurrence"].partition(":")[0].partition("@")[0] for one in status.unmended}
    rows = []
    for job in status.jobs:
        name, last = job["job"], job["last"]
        attention = "late" if job["late_since"] else "ended badly" if name in unmended else ""
        attention = attention or ("open alert" if name in told else "")
        seconds = None if last is None else seconds_of(last)
        zone = str(job["schedule"].get("zone") or "UTC")
        rows.append(Row(job, (), zone, attention, running.get(name, ()), seconds))
    return rows


def _is_asked(row: Row, wanted: str, shows: str) -> bool:
    job = row.job
    if wanted and wanted.lower() not in job["job"].lower():
        return False
    if shows in {"", "all"}:
        return job["retired_at"] is None
    of = {
        "attention": bool(row.attention),
        "running": bool(row.running),
        "stopped": job["paused_at"] is not None and job["retired_at"] is None,
        "retired": job["retired_at"] is not None,
    }
    return of[shows]


def _place(row: Row) -> tuple[bool, bool, str]:
    """Order rows: what needs somebody, then what runs, then by name."""
    return not row.attention, not row.running, row.job["job"]


def _with_cells(row: Row, found: Sequence[Any]) -> Row:
    cells = [cell_of(one) for one in found]
    if not (row.job["next_at"] or row.job["paused_at"] or row.job["retired_at"]):
        cells += unplanned(row.job["schedule"], found, clock.utc_now(), CELLS)
    return replace(row, cells=cells[-CELLS:])


PAGE: Final = Page(
    "/", "tonight.html", read, "tonight", frozenset({"page", "q", "show"}), GLANCE_SECONDS, STALE_SECONDS
)
