"""Whether this process can take the roles that its jobs name, so that it is told before a night and not in it."""

from collections.abc import Mapping

from shared.postgres import Session
from shared.sql_files import statement

UNTAKEABLE_ROLES = statement("shared", "untakeable_roles")


async def untakeable_roles(session: Session, jobs_by_role: Mapping[str, list[str]]) -> list[str]:
    """Say of each role that this login cannot take why, and which jobs name it; nothing when it can take all."""
    rows = await session.fetch(UNTAKEABLE_ROLES, list(jobs_by_role)) if jobs_by_role else []
    return [
        f"role {row['role']} {'cannot be taken: it is not granted' if row['exists'] else 'does not exist'}"
        f" (named by {', '.join(sorted(jobs_by_role[row['role']]))})"
        for row in rows
    ]
