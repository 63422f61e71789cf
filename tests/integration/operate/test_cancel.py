from typing import Any

import anyio
import pytest

from schemas.occurrence import Identity
from shared.close import close
from shared.terminal import Refused
from tests.integration.operate.night import ORDER, OTHER, closed_night, events, expected_occurrence, nightly
from tests.support.ledger import DUE, occurrence_row, running_occurrence, session_on
from trigger.claim import claim_one
from trigger.claim_outcome import Claimant, Held, Won
from trigger.operate import NO_LEASE, cancel

INVOICES = Identity("invoice-run", DUE)


async def test_dispatch_ends_and_the_close_writes_the_state(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, nightly(), ["a", "b"])
        assert await cancel(session, occurrence.identity, ORDER) == (occurrence.id, "running")
        row = await occurrence_row(session, occurrence.id)
        assert (row["state"], row["ending"], row["epoch"]) == ("running", "cancel", 2)
        assert row["ending_reason"] == "by ann: the tax service is back"
        await session.execute("update matins.ledger set state = 'cancelled', finished_at = clock_timestamp()")
        closed = await close(session, occurrence.id, by="test")
        assert closed is not None
        assert closed.state == "cancelled"
        assert [kind for kind, _, _ in await events(session, occurrence.id)] == ["cancel", "closed"]


async def test_with_no_account_left_it_is_closed_at_once(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, nightly(), [])
        await cancel(session, occurrence.identity, ORDER)
        row = await occurrence_row(session, occurrence.id)
        assert (row["state"], row["reason"]) == ("cancelled", "cancel: by ann: the tax service is back")


async def test_one_that_waits_is_skipped(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence_id = await expected_occurrence(session, nightly())
        assert await cancel(session, INVOICES, ORDER) == (occurrence_id, "skipped")
        row = await occurrence_row(session, occurrence_id)
        assert (row["state"], row["reason"]) == ("skipped", "cancelled by ann: the tax service is back")
        assert await events(session, occurrence_id) == [("cancel", "ann", "the tax service is back")]


async def test_what_is_over_or_ends_already_is_refused(database_url: str) -> None:
    async with session_on(database_url) as session:
        over, _ = await closed_night(session)
        running = await running_occurrence(session, nightly("other-run"), ["a"])
        await cancel(session, running.identity, ORDER)
        with pytest.raises(Refused, match="is over: it was partial at 20"):
            await cancel(session, over.identity, ORDER)
        with pytest.raises(Refused, match=r"is ending already \(cancel: by ann: the tax service is back\)"):
            await cancel(session, running.identity, OTHER)


async def test_of_two_operators_at_once_one_cancels_and_the_other_is_told(database_url: str) -> None:
    async with session_on(database_url) as first, session_on(database_url) as second:
        occurrence = await running_occurrence(first, nightly(), ["a"])
        told: list[str] = []

        async def act(session: Any, order: Any) -> None:
            try:
                await cancel(session, occurrence.identity, order)
            except Refused as refused:
                told.append(str(refused))

        async with anyio.create_task_group() as group:
            group.start_soon(act, first, ORDER)
            group.start_soon(act, second, OTHER)
        assert len(told) == 1
        row = await occurrence_row(first, occurrence.id)
        assert row["ending_reason"] in told[0]
        assert row["epoch"] == 2


async def test_a_cancel_and_a_claim_at_once_leave_one_story(database_url: str) -> None:
    async with session_on(database_url) as first, session_on(database_url) as second:
        for number in range(10):
            job = nightly(f"job-{number}")
            occurrence_id = await expected_occurrence(first, job)
            identity = Identity(job.name, DUE)
            outcomes: list[Any] = []

            async def claim(identity: Identity = identity, outcomes: list[Any] = outcomes) -> None:
                claimant = Claimant("trigger", "", NO_LEASE)
                outcomes.append(await claim_one(second, identity, claimant, fired_by="x"))

            async with anyio.create_task_group() as group:
                group.start_soon(cancel, first, identity, ORDER)
                group.start_soon(claim)
            row = await occurrence_row(first, occurrence_id)
            if isinstance(outcomes[0], Won):
                # It had read no account yet, so there was nothing to wait for.
                assert (row["state"], row["ending"]) == ("cancelled", "cancel")
            else:
                assert isinstance(outcomes[0], Held)
                assert (row["state"], row["claimed_at"]) == ("skipped", None)
