from dataclasses import replace
from datetime import timedelta

import anyio
import pytest

from schemas.occurrence import Identity
from shared.postgres import Session
from shared.terminal import NotDone, Refused
from tests.integration.operate.night import ORDER, OTHER, closed_night, events, expected_occurrence, nightly
from tests.support.ledger import DUE, occurrence_row, running_occurrence, session_on
from trigger.claim_outcome import FireOutcome, Held, NotDue, Overlapped, Stale, Won
from trigger.operate import SOON, Order, fire, latest_due

INVOICES = Identity("invoice-run", DUE)
DAY = timedelta(days=1)


async def test_a_claim_by_hand_is_anybodys_to_go_on_with(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence_id = await expected_occurrence(session, nightly())
        assert isinstance(await fire(session, INVOICES, ORDER), Won)
        row = await occurrence_row(session, occurrence_id)
        assert (row["state"], row["fired_by"], row["fire_reason"]) == ("claimed", "ann", "the tax service is back")
        assert row["lease_until"] < await session.fetchval("select clock_timestamp()")
        assert await events(session, occurrence_id) == [("claim", "ann", "the tax service is back")]


async def test_of_two_operators_at_once_one_claims_and_the_other_is_told_who(database_url: str) -> None:
    async with session_on(database_url) as first, session_on(database_url) as second:
        await expected_occurrence(first, nightly())
        outcomes: list[FireOutcome] = []

        async def act(session: Session, order: Order) -> None:
            outcomes.append(await fire(session, INVOICES, order))

        async with anyio.create_task_group() as group:
            group.start_soon(act, first, ORDER)
            group.start_soon(act, second, OTHER)
        won = next(one for one in outcomes if isinstance(one, Won))
        held = next(one for one in outcomes if isinstance(one, Held))
        assert held.claimed_at == won.claim.claimed_at
        assert held.claimed_by in {ORDER.instance, OTHER.instance}
        actors = await first.fetch("select kind, actor from matins.audit order by id")
        assert [row["kind"] for row in actors] == ["claim", "called"]
        assert {row["actor"] for row in actors} == {"ann", "bob"}


async def test_due_is_the_latest_instant_whatever_became_of_it(database_url: str) -> None:
    async with session_on(database_url) as session:
        await closed_night(session)
        await expected_occurrence(session, nightly(), DUE + DAY)
        assert await latest_due(session, "invoice-run", now=DUE + DAY) == DUE + DAY
        assert await latest_due(session, "invoice-run", now=DUE + timedelta(minutes=10)) == DUE
        with pytest.raises(Refused, match=r"later than start_within \(600 s\) ago; name it .* --at 2026-08-25T02:00Z"):
            await latest_due(session, "invoice-run", now=DUE + timedelta(minutes=10, seconds=1))
        assert isinstance(await fire(session, INVOICES, ORDER), Held)
        with pytest.raises(Refused, match="nothing of invoice-run is due yet"):
            await latest_due(session, "invoice-run", now=DUE - DAY)
        with pytest.raises(Refused, match="did you mean invoice-run"):
            await latest_due(session, "invoice-rum")


async def test_a_caller_that_is_a_minute_ahead_is_to_come_again(database_url: str) -> None:
    async with session_on(database_url) as session:
        await expected_occurrence(session, nightly())
        with pytest.raises(NotDone, match="nothing of invoice-run is due yet: the next is in 60 s"):
            await latest_due(session, "invoice-run", now=DUE - SOON)
        with pytest.raises(Refused, match="nothing of invoice-run is due yet"):
            await latest_due(session, "invoice-run", now=DUE - SOON - timedelta(seconds=1))


async def test_who_has_it_wait_for_the_one_before_is_in_the_audit_trail(database_url: str) -> None:
    async with session_on(database_url) as session:
        job = nightly(decisions=replace(nightly().decisions, overlap="queue_one"))
        occurrence_id = await expected_occurrence(session, job)
        running = await running_occurrence(session, job, ["a"], scheduled_at=DUE - DAY)
        assert await fire(session, INVOICES, ORDER) == Overlapped(str(running.identity), waits=True)
        assert await events(session, occurrence_id) == [("called", "ann", "the tax service is back")]


async def test_what_is_not_due_not_planned_or_in_the_way_of_another_is_not_claimed(database_url: str) -> None:
    async with session_on(database_url) as session:
        await expected_occurrence(session, nightly())
        assert await fire(session, INVOICES, ORDER, now=DUE - DAY) == NotDue(known=True)
        assert await fire(session, Identity("invoice-run", DUE + DAY), ORDER) == NotDue(known=False)
        assert await fire(session, Identity("other-run", DUE), ORDER) == NotDue(known=False)
        running = await running_occurrence(session, nightly(), ["a"], scheduled_at=DUE - DAY)
        assert await fire(session, INVOICES, ORDER) == Overlapped(str(running.identity))
        await session.execute("update matins.job set retired_at = clock_timestamp()")
        assert await fire(session, INVOICES, ORDER) == Stale(None)
