"""Marking that another version of some system runs, in the name of who says so."""

from datetime import datetime
from typing import Any
from uuid import uuid4

from shared.postgres import Session
from shared.sql_files import statement

MARK_DEPLOY = statement("trigger", "mark_deploy")


async def mark_deploy(
    session: Session, system: str, version: str, at: datetime | None, actor: str, reason: str | None
) -> dict[str, Any]:
    """Record it with its audit entry, and give what was recorded; `at` None is the database's present."""
    row: Any = await session.fetchrow(MARK_DEPLOY, system, version, at, actor, reason, str(uuid4()))
    return dict(row)
