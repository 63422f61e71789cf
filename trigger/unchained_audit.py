"""The rows of the audit trail that no link of its chain stands for: the tail that waits, and what was put behind it."""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from shared.postgres import Session
from shared.sql_files import statement

UNCHAINED_ROWS = statement("trigger", "unchained_rows")
SEALED_PAST = statement("trigger", "sealed_past")
AUDIT_EXTENT = statement("trigger", "audit_extent")

IDS_AT_ONCE = 20_000


@dataclass(slots=True)
class Unsealed:
    """The rows that wait for the sealer: how many, and when the oldest was written."""

    rows: int = 0
    oldest: datetime | None = None


@dataclass(slots=True)
class Unchained:
    """Reads them all; `head` is the chain's, or None where it cannot tell what was sealed. The tail is counted."""

    session: Session
    head: Any
    unsealed: Unsealed

    async def rows(self) -> AsyncIterator[tuple[Any, str]]:
        """Give each row that was put where all was sealed already, and why it cannot be of the tail."""
        extent: Any = await self.session.fetchrow(AUDIT_EXTENT)
        for above in range(extent["first"] - 1, extent["last"], IDS_AT_ONCE):
            up_to = min(above + IDS_AT_ONCE, extent["last"])
            for row in await self.session.fetch(UNCHAINED_ROWS, above, up_to):
                why = await self._why(row)
                if why is not None:
                    yield row, why
                    continue
                self.unsealed.rows += 1
                self.unsealed.oldest = min(self.unsealed.oldest or row["at"], row["at"])

    async def _why(self, row: Any) -> str | None:
        head = self.head
        if head is None:
            return None
        if (int(row["xid"]), row["id"]) <= (int(head["through_xid"]), head["through_id"]):
            return "all of its transaction's time is sealed, without it"
        if row["id"] <= head["highest_id"]:
            past = await drawn_before(self.session, head["era"], row, head["number"] + 1)
            if past is not None:
                return f"position {past} was sealed, with a later id, before it was begun"
        return None


async def drawn_before(session: Session, era: int, row: Any, number: int) -> int | None:
    """Give the position by which ids as large as the row's had been drawn before its transaction began, if any.

    A transaction gets its number before it draws an id; so an id below one that is sealed is nothing odd, unless its
    transaction had not begun by then. Batches before `number` are looked at.
    """
    past: Any = await session.fetchrow(SEALED_PAST, era, row["id"], number)
    if past is None or int(row["xid"]) < int(past["begun_after"]):
        return None
    return int(past["position"])
