"""Everything that is known about one occurrence, and lists of occurrences: as values for JSON and for a person."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from schemas.occurrence import Identity, format_instant
from schemas.report import EXAMPLES_PER_CLASS
from shared.postgres import Row, Session
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.alerts import open_alerts_of
from trigger.await_end import PROGRESS
from trigger.reach import require_job, require_occurrence

LIST_OCCURRENCES = statement("trigger", "list_occurrences")
LIST_ATTEMPTS = statement("trigger", "list_attempts")
LIST_EVENTS = statement("trigger", "list_events")
LIST_ACCOUNTS = statement("trigger", "list_accounts")
OPEN_ERRORS = statement("trigger", "open_errors")

ACTIVE = ("claimed", "running")
COUNTS = ("succeeded", "failed", "dead", "cancelled")
_FIELDS = (
    "job",
    "scheduled_at",
    "due_at",
    "variant",
    "origin",
    "state",
    "reason",
    "revision",
    "generation",
    "epoch",
    "fired_by",
    "fire_reason",
    "run_id",
    "claimed_by",
    "claimed_on",
    "claimed_version",
    "claimed_at",
    "lease_until",
    "accounts_read",
    "fan_out_attempts",
    "fan_out_error",
    "sealed_at",
    "ending",
    "ending_reason",
    "opened_at",
    "finish_by",
    "closed_at",
    "tzdata_version",
    "trace_context",
)

Shown = dict[str, Any]


async def list_occurrences(
    session: Session, job: str | None, states: Sequence[str] | None, since: datetime | None, limit: int
) -> list[Shown]:
    """Give occurrences, the latest first. Raises Refused for an unknown job."""
    if job is not None:
        await require_job(session, job)
    rows = await session.fetch(LIST_OCCURRENCES, job, list(states) if states else None, since, limit)
    return [{"occurrence": _written(row), **dict(row), "seconds": seconds_of(row)} for row in rows]


async def show_occurrence(session: Session, identity: Identity) -> Shown:
    """Give an occurrence: its row, counts, progress while it runs, report, open alerts, attempts and events.

    Raises Refused when there is none.
    """
    row = await require_occurrence(session, identity)
    shown = facts_of(identity, row)
    if row["state"] in ACTIVE:
        shown |= await count_accounts(session, row)
    attempts = await session.fetch(LIST_ATTEMPTS, identity.job, identity.scheduled_at, identity.variant)
    shown["attempts"] = [dict(one) for one in attempts]
    shown["alerts"] = await open_alerts_of(session, row["id"])
    shown["events"] = [dict(one) for one in await session.fetch(LIST_EVENTS, row["id"])]
    return shown


def facts_of(identity: Identity, row: Row) -> Shown:
    """Give what an occurrence's row says; `counts`, of one that is closed, and no `progress`: nothing is counted."""
    shown: Shown = {"occurrence": str(identity), **{name: row[name] for name in _FIELDS}}
    shown["window"] = {"since": row["window_since"], "until": row["window_until"]}
    for name, other in (("coalesced_into", "coalesced"), ("waits_for", "waits_for")):
        at, variant = row[f"{other}_at"], row[f"{other}_variant"]
        shown[name] = None if at is None else str(Identity(identity.job, at, variant))
    shown["pruned_before"] = row["pruned_before"] if row["accounts_read"] else None
    shown["seconds"] = seconds_of(row)
    shown["counts"] = {name: row[name] for name in COUNTS} | {"total": row["total"]} if row["closed_at"] else None
    shown["report"] = row["report"] if row["closed_at"] else None
    shown["generations"] = (row["report"] or {}).get("generations", [])
    shown["progress"] = None
    return shown


async def count_accounts(session: Session, row: Row) -> Shown:
    """Give `counts` and `progress` of an occurrence that runs, by its row; it reads every account of it."""
    counted: Any = await session.fetchrow(PROGRESS, row["id"])
    counts = {name: counted[name] for name in ("pending", "running", *COUNTS)}
    total = sum(counts.values())
    left = counts["pending"] + counts["running"]
    done = total - left
    goes_on = row["sealed_at"] and left > counted["waiting"]
    seconds = (row["now"] - row["opened_at"]).total_seconds()
    per_second = done / seconds if done and seconds > 0 else None
    classes = await session.fetch(OPEN_ERRORS, row["id"], row["scheduled_at"], EXAMPLES_PER_CLASS)
    progress = {
        "done": done,
        "total": total if row["sealed_at"] else None,
        "seconds": seconds,
        "per_second": per_second,
        "seconds_left": left / per_second if per_second and goes_on else None,
        "waiting": counted["waiting"],
        "next_try_at": counted["next_try_at"],
        "overdue": is_overdue(row),
        "error_classes": [dict(one) for one in classes],
    }
    return {"counts": counts | {"total": total}, "progress": progress}


def told_detail(detail: Mapping[str, Any]) -> str:
    """Write what an entry of the audit trail holds beside its reason, in one line, without what says nothing."""
    return ", ".join(
        f"{name.replace('_', ' ')} {value}"
        for name, value in detail.items()
        if value is not False and value not in (None, "", [], {})
    )


def is_overdue(row: Row) -> bool:
    """Tell whether an occurrence that runs should have been finished by now."""
    return row["finish_by"] is not None and row["finish_by"] < row["now"]


async def list_accounts(
    session: Session, identity: Identity, states: Sequence[str], after: str | None, limit: int
) -> Shown:
    """Give a page of accounts in key order; `next_after` begins the next one, and is None behind the last.

    Raises Refused when there is no such occurrence, or its accounts were pruned.
    """
    row = await require_occurrence(session, identity)
    if row["pruned_before"] is not None:
        since = format_instant(row["pruned_before"])
        problem = f"the accounts of {identity} were pruned: only those of what was due from {since} on are kept"
        raise Refused(problem)
    found = await session.fetch(LIST_ACCOUNTS, row["id"], identity.scheduled_at, list(states), after, limit + 1)
    page = [dict(one) for one in found[:limit]]
    return {"states": list(states), "page": page, "next_after": page[-1]["account"] if len(found) > limit else None}


def _written(row: Row) -> str:
    return str(Identity(row["job"], row["scheduled_at"], row["variant"]))


def seconds_of(row: Row) -> float | None:
    """Give what an occurrence took, from its opening to its close; None before that."""
    if row["closed_at"] is None or row["opened_at"] is None:
        return None
    return float((row["closed_at"] - row["opened_at"]).total_seconds())
