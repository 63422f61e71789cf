"""Reading the audit trail: who or what did something, when, why, and what was before and after."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schemas.occurrence import Identity
from shared.postgres import Session
from shared.sql_files import statement

LIST_AUDIT = statement("trigger", "list_audit")
CHAIN_STATE = statement("trigger", "chain_state")

SHORT_ID = 8
# So many rows are counted that wait for the sealer; it takes a thousand at once, every few seconds.
WAITING_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Filter:
    """What to show: what is None or empty narrows nothing. `since` is included, `until` is not.

    `behind` is the time and the id of an entry: only what stands behind it in the list.
    """

    job: str | None = None
    occurrence: Identity | None = None
    kinds: tuple[str, ...] = ()
    actor: str | None = None
    since: datetime | None = None
    until: datetime | None = None
    behind: tuple[datetime, int] | None = None


async def list_audit(session: Session, asked: Filter, limit: int) -> list[dict[str, Any]]:
    """Give at most `limit` entries, the latest first."""
    of = asked.occurrence
    named = (asked.job, None, None) if of is None else (of.job, of.scheduled_at, of.variant)
    narrowing = (list(asked.kinds) or None, asked.actor, asked.since, asked.until)
    async with session.transaction():
        # One plan for every question would read the whole trail for most of them.
        await session.execute("set local plan_cache_mode = force_custom_plan")
        rows = await session.fetch(LIST_AUDIT, *named, *narrowing, limit, *(asked.behind or (None, None)))
    return [_entry(dict(row)) for row in rows]


@dataclass(frozen=True, slots=True)
class Chain:
    """How far the trail is sealed: the position and the hash of the head, 0 and '' before the first, and since when.

    `waiting` rows are not sealed yet, at least so many if there are WAITING_COUNTED; the oldest of them is of `oldest`.
    """

    position: int
    hash: str
    sealed_at: datetime | None
    waiting: int
    oldest: datetime | None
    now: datetime


async def read_chain(session: Session) -> Chain:
    """Say how far the trail is sealed. That it is whole, only `verify` says."""
    row: Any = await session.fetchrow(CHAIN_STATE, WAITING_COUNTED)
    hashed = row["hash"].hex() if row["hash"] else ""
    return Chain(row["position"], hashed, row["sealed_at"], row["waiting"], row["oldest"], row["now"])


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
