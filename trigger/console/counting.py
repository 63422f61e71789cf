"""Counting the accounts of an occurrence that runs: behind the pages, never while one is waited for.

A million accounts take their time to be read through. Whoever looks is given what was counted last, and as of when.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from schemas.occurrence import Identity
from schemas.states import ACTIVE
from shared.postgres import Row
from trigger.console.keeping import Unseen
from trigger.console.place import Place
from trigger.reach import require_occurrence
from trigger.show import count_accounts

FRESH_SECONDS: Final = 2.0
MOST_SECONDS: Final = 25.0


@dataclass(frozen=True, slots=True)
class Counted:
    """What was counted last, as `count_accounts` gives it; `counts` is None before anything was.

    `problem` says why it is not newer, or is ''.
    """

    counts: dict[str, int] | None = None
    progress: dict[str, Any] | None = None
    as_of: datetime | None = None
    problem: str = ""


def counted(place: Place, identity: Identity, row: Row) -> Counted:
    """Give what was counted last of an occurrence that runs, by its row, and have it counted anew."""

    async def count() -> dict[str, Any]:
        async with (
            place.database.session() as session,
            session.transaction(isolation="repeatable_read", readonly=True),
        ):
            present = await require_occurrence(session, identity)
            return await count_accounts(session, present) if present["state"] in ACTIVE else {}

    name = f"accounts {row['id']} {row['generation']}"
    try:
        kept = place.keeping.glimpse(name, count, fresh_for=FRESH_SECONDS, within=MOST_SECONDS)
    except Unseen as error:
        return Counted(problem=str(error))
    if kept is None or not kept.value:
        return Counted()
    return Counted(kept.value["counts"], kept.value["progress"], kept.read_at, kept.problem)
