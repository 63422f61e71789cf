"""A hold that a person orders: once, in their name, and nothing is opened behind it until a person has released it."""

from collections.abc import Awaitable, Callable

import anyio
import pytest

from schemas.occurrence import Identity
from shared.postgres import Session
from shared.terminal import Refused
from tests.integration.operate.night import ORDER, OTHER, closed_night, expected_occurrence, nightly
from tests.support.ledger import DUE, occurrence_row, session_on
from trigger.operate import Choice, Order, cancel, rerun
from trigger.reconcile import release, restored

INVOICES = Identity("invoice-run", DUE)
NAMED = "insert into matins.environment (name) values ('test')"


async def both(url: str, act: Callable[[Session, Order], Awaitable[None]]) -> list[str]:
    """Have two persons do the same at once; give what those were told who did nothing."""
    told: list[str] = []

    async def one(order: Order) -> None:
        async with session_on(url) as session:
            try:
                await act(session, order)
            except Refused as refused:
                told.append(str(refused))

    async with anyio.create_task_group() as group:
        group.start_soon(one, ORDER)
        group.start_soon(one, OTHER)
    return told


async def test_of_two_persons_at_once_one_holds_and_one_releases(database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.execute(NAMED)
        held = await both(database_url, lambda session, order: restored(session, order, DUE))
        row = await session.fetchrow("select held_reason, known_through from matins.environment")
        assert row is not None
        assert held == [f"everything is held already: {row['held_reason']}"]
        assert row["known_through"] == DUE
        assert await both(database_url, release) == ["nothing is held"]
        audited = await session.fetch("select kind, actor, reason from matins.audit order by id")
    assert [one["kind"] for one in audited] == ["hold", "release"]
    assert all((one["actor"], one["reason"]) in {(by.actor, by.reason) for by in (ORDER, OTHER)} for one in audited)
    assert audited[0]["reason"] == row["held_reason"]


async def test_while_everything_is_held_nothing_runs_again_and_what_must_not_run_can_be_cancelled(
    database_url: str,
) -> None:
    async with session_on(database_url) as session:
        await session.execute(NAMED)
        await closed_night(session)
        waiting = await expected_occurrence(session, nightly("other-run"))
        await restored(session, ORDER, None)
        with pytest.raises(Refused, match="everything is held"):
            await rerun(session, INVOICES, Choice(), OTHER)
        await cancel(session, Identity("other-run", DUE), OTHER)
        assert (await occurrence_row(session, waiting))["state"] == "skipped"
        await release(session, OTHER)
        await rerun(session, INVOICES, Choice(), OTHER)
