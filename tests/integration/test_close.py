"""What comes between a close's look and its write."""

from collections.abc import Awaitable, Callable
from typing import Any

from shared.calls import AccountCall
from shared.close import CLOSE_WRITE, close
from shared.job import PerAccount
from shared.postgres import Session
from tests.support.ledger import job_with, occurrence_row, running_occurrence, session_on
from trigger.operate import Order, cancel


async def nothing(call: AccountCall) -> None:
    """Do nothing."""


class BeforeTheWrite:
    """A session on which something happens just before the close's write."""

    def __init__(self, session: Session, happens: Callable[[], Awaitable[object]]) -> None:
        self._session = session
        self._happens = happens

    async def fetch(self, query: str, *arguments: Any) -> Any:
        """Read rows."""
        return await self._session.fetch(query, *arguments)

    async def fetchrow(self, query: str, *arguments: Any) -> Any:
        """Read a row."""
        if query == CLOSE_WRITE:
            await self._happens()
        return await self._session.fetchrow(query, *arguments)


async def test_a_cancel_between_the_look_and_the_write_is_not_overlooked(database_url: str) -> None:
    async with session_on(database_url) as session, session_on(database_url) as other:
        occurrence = await running_occurrence(session, job_with(PerAccount(nothing)), ["a"])
        await session.execute("update matins.ledger set state = 'succeeded', finished_at = clock_timestamp()")
        order = Order("ann", "wrong price", "test")
        own: Any = BeforeTheWrite(session, lambda: cancel(other, occurrence.identity, order))
        assert await close(own, occurrence.id, by="x") is None
        row = await occurrence_row(session, occurrence.id)
        assert (row["ending"], row["reason"]) == ("cancel", "cancel: by ann: wrong price")
        closed = await session.fetch(
            "select instance from matins.audit where occurrence_id = $1 and kind = 'closed'", occurrence.id
        )
        assert [one["instance"] for one in closed] == ["test"]


async def test_an_ending_that_nobody_closed_behind_is_closed_by_the_next_try(database_url: str) -> None:
    """A deadline is written by a sweep, which may end before it closes."""
    async with session_on(database_url) as session, session_on(database_url) as other:
        occurrence = await running_occurrence(session, job_with(PerAccount(nothing)), ["a"])
        await session.execute("update matins.ledger set state = 'succeeded', finished_at = clock_timestamp()")
        ends = "update matins.occurrence set ending = 'deadline', ending_reason = 'late', epoch = epoch + 1"
        own: Any = BeforeTheWrite(session, lambda: other.execute(ends))
        assert await close(own, occurrence.id, by="x") is None
        assert (await occurrence_row(session, occurrence.id))["state"] == "running"
        assert await close(session, occurrence.id, by="x") is not None
        assert (await occurrence_row(session, occurrence.id))["reason"] == "deadline: late"
