"""Reading the audit trail: who or what did something, when, why, and what was before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schemas.occurrence import Identity
from shared.postgres import Session
from shared.sql_files import statement

LIST_AUDIT = statement("trigger", "list_audit")

SHORT_ID = 8


@dataclass(frozen=True, slots=True)
class Filter:
    """What to show: what is None or empty narrows nothing. `since` is included, `until` is not."""

    job: str | None = None
    occurrence: Identity | None = None
    kinds: tuple[str, ...] = ()
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None


async def list_audit(session: Session, asked: Filter, limit: int) -> list[dict[str, Any]]:
    """Give at most `limit` entries, the latest first."""
    of = asked.occurrence
    named = (asked.job, None, None) if of is None else (of.job, of.scheduled_at, of.variant)
    narrowing = (list(asked.kinds) or None, asked.actor, asked.since, asked.until)
    rows = await session.fetch(LIST_AUDIT, *named, *narrowing, limit)
    return [_entry(dict(row)) for row in rows]


def who(entry: Mapping[str, Any]) -> str:
    """Say who or what acted: `operator ann`, `caller billing`, or `instance 3f2a9c01`, with the release of each."""
    version = f" ({entry['version']})" if entry["version"] else ""
    if entry["actor"] is not None:
        return f"{entry['actor_kind'] or 'actor'} {entry['actor']}{version}"
    return f"instance {entry['instance'][:SHORT_ID]}{version}" if entry["instance"] else "-"


def _entry(row: dict[str, Any]) -> dict[str, Any]:
    scheduled_at, variant = row.pop("scheduled_at"), row.pop("variant")
    written = None if scheduled_at is None else str(Identity(row["job"], scheduled_at, variant))
    return {**row, "occurrence": written, "before": row["detail"].get("before"), "after": row["detail"].get("after")}
