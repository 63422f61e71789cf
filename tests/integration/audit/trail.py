"""Rows of the audit trail and their chain, for tests."""

from typing import Any

from shared.postgres import Session
from tests.support.fleet import until
from trigger.seal_audit import seal

IS_SEALED = """select not exists (
    select from matins.audit a where not exists (select from matins.audit_chain c where c.audit_id = a.id))"""


async def append(session: Session, *reasons: str, kind: str = "called") -> list[int]:
    """Add rows, each with its reason; give their ids."""
    rows = [
        await session.fetchval(
            "insert into matins.audit (kind, job, instance, reason) values ($1, 'night', 'test', $2) returning id",
            kind,
            reason,
        )
        for reason in reasons
    ]
    return [int(row) for row in rows]


async def seal_ready(session: Session, *, at_most: int = 1000) -> int:
    """Seal what may be sealed now; give how many rows."""
    rows = 0
    while (sealed := await seal(session, "sealer", at_most=at_most)) is not None:
        rows += sealed.rows
    return rows


async def seal_all(session: Session, *, at_most: int = 1000) -> int:
    """Seal every row; give how many. What others run on the server meanwhile has to be over first."""
    rows = 0

    async def is_done() -> bool:
        nonlocal rows
        rows += await seal_ready(session, at_most=at_most)
        return bool(await session.fetchval(IS_SEALED))

    await until(is_done)
    return rows


async def chained(session: Session) -> list[int]:
    """Give the ids in the order of the chain."""
    return [row["audit_id"] for row in await session.fetch("select audit_id from matins.audit_chain order by position")]


async def head(session: Session) -> Any:
    """Give the last batch's row."""
    return await session.fetchrow(
        "select *, through_xid::text as xid from matins.audit_seal order by number desc limit 1"
    )
