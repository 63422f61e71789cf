"""Retention of the audit trail: deleting the chain's beginning, so that the rest still verifies from there on.

The point is recorded first, by the act's own entry: the last position that goes, and its hash. Then links and rows go,
in steps; what an interrupted prune has left is no part of the chain any more, and goes with the next one. Nothing goes
from a trail that is not whole: it would be the evidence.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from schemas.audit import PRUNED
from schemas.occurrence import Identity, format_instant
from shared.postgres import InsufficientPrivilege, Session, database_now
from shared.sql_files import statement
from shared.terminal import Refused
from trigger.forget import AUDIT_OWNER, HOLD_CHAIN
from trigger.operate import Order
from trigger.verify_audit import verify

PRUNE_AUDIT_THROUGH = statement("trigger", "prune_audit_through")
PRUNE_AUDIT_ROWS = statement("trigger", "prune_audit_rows")
PRUNE_AUDIT_SEALS = statement("trigger", "prune_audit_seals")
PRUNE_AUDIT_OBSTACLES = statement("trigger", "prune_audit_obstacles")

ROWS_AT_ONCE = 10_000
SHOWN = 5


@dataclass(frozen=True, slots=True)
class PrunedAudit:
    """How many rows went, or would go, through which position of the chain, and the link at that position."""

    rows: int
    position: int
    hash: bytes


async def prune_audit(session: Session, before: datetime, order: Order, *, dry_run: bool = False) -> PrunedAudit:
    """Delete the sealed rows that lie before the first one of `before` or later; with `dry_run` only say what.

    Raises Refused when `before` is still to come, when something that was opened before is not over, when the trail is
    not whole, or when the login does not own the tables.
    """
    await _refuse(session, before)
    verified = await verify(session, {})
    if verified.found:
        raise Refused(f"the audit trail is not whole ({verified.problems[0].told}): it stays as it is; see --verify")
    try:
        async with session.transaction():
            await session.execute(HOLD_CHAIN)
            found: Any = await session.fetchrow(PRUNE_AUDIT_THROUGH, before, verified.pruned_through)
            pruned = PrunedAudit(0, verified.pruned_through, verified.hash)
            if found is not None:
                pruned = PrunedAudit(found["rows"], found["position"], found["hash"])
            if found is not None and not dry_run:
                detail = {"position": pruned.position, "hash": pruned.hash.hex(), "rows": pruned.rows}
                detail |= {"before": verified.pruned_through, "after": pruned.position, "older_than": before}
                await session.execute(AUDIT_OWNER, PRUNED, order.instance, order.actor, order.reason, detail)
        if not dry_run:
            while await session.fetchval(PRUNE_AUDIT_ROWS, pruned.position, ROWS_AT_ONCE):
                pass
            await session.execute(PRUNE_AUDIT_SEALS, pruned.position)
    except InsufficientPrivilege as error:
        raise Refused(f"this login may not take rows away ({error}): prune with the one that migrates") from error
    return pruned


async def _refuse(session: Session, before: datetime) -> None:
    if before > await database_now(session):
        raise Refused(f"--before: {format_instant(before)} is still to come")
    rows = await session.fetch(PRUNE_AUDIT_OBSTACLES, before, SHOWN)
    if rows:
        named = [f"{Identity(row['job'], row['scheduled_at'], row['variant'])} ({row['state']})" for row in rows]
        raise Refused(f"opened before {format_instant(before)} and not over: {', '.join(named)}; wait for their end")
