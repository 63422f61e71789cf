"""A call from outside on a real database: which occurrence it means, who has it, and that a refusal leaves no trace."""

from datetime import timedelta
from typing import Any

import anyio
import pytest

from schemas.occurrence import Identity
from shared.postgres import Database, Session
from tests.integration.trigger.support import DAY, DUE, MINUTE, claimant, decisions, job_at, live, planned, states
from trigger.claim import claim_due, claim_one
from trigger.claim_outcome import Claimant, NotDue
from trigger.operate import NO_LEASE
from trigger.outside_call import KEPT_FOR, TOLERANCE, Answered, Call, Declined, Delivery, answer, forget
from trigger.reach import not_on_the_plan

SECOND = timedelta(seconds=1)
INVOICES = Identity("nightly", DUE)
ONE = Claimant("one", "north", NO_LEASE)


def call(identity: str = "", body: bytes = b"", job: str = "nightly", at: Any = DUE, **more: Any) -> Call:
    """Make a call by the scheduler; with an id it is a signed one."""
    delivery = Delivery.of(identity, int(at.timestamp()), job, body) if identity else None
    return Call("cron", job, "key 0123abcd", delivery=delivery, **more)


async def written(session: Session) -> tuple[int, ...]:
    """Count all that a call could write."""
    tables = ("signed_call", "audit where kind in ('claim', 'called')", "attempt", "ledger")
    claimed = await session.fetchval("select count(*) from matins.occurrence where claimed_at is not null")
    counts = [await session.fetchval(f"select count(*) from matins.{table}") for table in tables]
    return (claimed, *counts)


async def told(session: Session) -> list[tuple[str, str | None, str | None]]:
    """Give the audit trail of claims and calls."""
    rows = await session.fetch(
        "select kind, actor, reason from matins.audit where kind in ('claim', 'called') order by id"
    )
    return [(row["kind"], row["actor"], row["reason"]) for row in rows]


@pytest.fixture
async def nightly(session: Session) -> Session:
    """A session on a database where a nightly job is planned."""
    await planned(session, job_at(), DUE - DAY)
    return session


async def test_the_first_call_claims_and_any_other_is_answered_with_the_same(nightly: Session) -> None:
    first = await answer(nightly, call(), ONE, now=DUE)
    assert isinstance(first, Answered)
    assert (first.identity, first.won, first.state) == (INVOICES, True, "claimed")
    second = await answer(nightly, call(scheduled_at=DUE), ONE, now=DUE + MINUTE)
    assert second == Answered(INVOICES, first.id, "claimed", won=False)
    reason = "called from outside, key 0123abcd"
    assert await told(nightly) == [("claim", "cron", reason), ("called", "cron", reason)]
    row = await nightly.fetchrow(
        "select fired_by, fire_reason, lease_until, claimed_at from matins.occurrence where id = $1", first.id
    )
    assert row is not None
    assert (row["fired_by"], row["fire_reason"]) == ("cron", reason)
    assert row["lease_until"] < row["claimed_at"]


async def test_what_a_trigger_has_claimed_or_ended_is_answered_with_as_well(nightly: Session) -> None:
    await live(nightly, "one")
    job = job_at()
    await claim_due(nightly, job, 1, ONE, now=DUE)
    answered = await answer(nightly, call("a"), ONE, now=DUE + MINUTE)
    assert isinstance(answered, Answered)
    assert (answered.won, answered.state) == (False, "claimed")
    await nightly.execute(
        "update matins.occurrence set state = 'expected', claimed_at = null, epoch = 0 where id = $1", answered.id
    )
    await nightly.execute(
        "update matins.occurrence set state = 'skipped', reason = 'overlap' where id = $1", answered.id
    )
    answered = await answer(nightly, call("b"), ONE, now=DUE + MINUTE)
    assert isinstance(answered, Answered)
    assert (answered.won, answered.state) == (False, "skipped")


async def test_a_repeated_delivery_is_answered_from_memory_even_when_more_is_due(session: Session) -> None:
    await planned(session, job_at("* * * * *"), DUE - DAY)
    first = await answer(session, call("a"), ONE, now=DUE)
    before = await written(session)
    again = await answer(session, call("a", at=DUE + 2 * MINUTE), ONE, now=DUE + 2 * MINUTE)
    assert isinstance(first, Answered)
    assert again == Answered(first.identity, first.id, "claimed", won=False, repeated=True)
    assert await written(session) == before


async def test_the_same_id_with_another_body_or_for_another_job_is_refused(nightly: Session) -> None:
    await planned(nightly, job_at(name="other"), DUE - DAY)
    assert isinstance(await answer(nightly, call("a"), ONE, now=DUE), Answered)
    before = await written(nightly)
    for changed in (call("a", b"{}"), call("a", job="other")):
        refused = await answer(nightly, changed, ONE, now=DUE)
        assert isinstance(refused, Declined)
        assert refused.outcome == "reused"
    assert await written(nightly) == before


@pytest.mark.parametrize("off", [TOLERANCE + SECOND, -TOLERANCE - SECOND])
async def test_the_databases_clock_decides_whether_a_signed_call_is_in_time(nightly: Session, off: timedelta) -> None:
    before = await written(nightly)
    assert await answer(nightly, call("a", at=DUE + off), ONE, now=DUE) == Declined("timestamp")
    assert await written(nightly) == before
    assert isinstance(await answer(nightly, call("a", at=DUE + off * 0.99), ONE, now=DUE), Answered)
    assert await answer(nightly, call("a", at=DUE + off), ONE, now=DUE) == Declined("timestamp")


async def test_a_call_is_remembered_until_its_time_is_outside_of_the_tolerance(nightly: Session) -> None:
    assert isinstance(await answer(nightly, call("a", at=DUE + TOLERANCE), ONE, now=DUE), Answered)
    await forget(nightly, now=DUE + 2 * TOLERANCE)
    again = await answer(nightly, call("a", at=DUE + TOLERANCE), ONE, now=DUE + 2 * TOLERANCE)
    assert isinstance(again, Answered)
    assert again.repeated
    await forget(nightly, now=DUE + KEPT_FOR + SECOND)
    assert await nightly.fetchval("select count(*) from matins.signed_call") == 0


@pytest.mark.parametrize(
    ("scheduled_at", "now", "outcome", "again"),
    [
        (DUE + 30 * MINUTE, DUE + DAY / 2, "off_schedule", None),
        (DUE + timedelta(microseconds=5), DUE + MINUTE, "off_schedule", None),
        (DUE - DAY, DUE - DAY + timedelta(hours=21), "too_old", None),
        (DUE - 400 * DAY, DUE, "too_old", None),
        (DUE + DAY, DUE + MINUTE, "not_due", None),
        (DUE + 400 * DAY, DUE + MINUTE, "not_due", None),
        (DUE, DUE - 30 * SECOND, "early", 30.0),
        (None, DUE - 30 * SECOND, "early", 30.0),
        (None, DUE + 11 * MINUTE, "not_due", None),
        (None, DUE - DAY / 2, "not_due", None),
    ],
)
async def test_only_a_due_instant_of_the_schedule_and_of_late_can_be_named(
    nightly: Session, scheduled_at: Any, now: Any, outcome: str, again: float | None
) -> None:
    before = await written(nightly)
    declined = await answer(nightly, call("a", at=now, scheduled_at=scheduled_at), ONE, now=now)
    assert isinstance(declined, Declined)
    assert (declined.outcome, declined.again) == (outcome, again)
    assert await written(nightly) == before


async def test_what_is_due_is_the_latest_within_start_within(nightly: Session) -> None:
    answered = await answer(nightly, call(), ONE, now=DUE + 10 * MINUTE)
    assert isinstance(answered, Answered)
    assert answered.identity == INVOICES


async def test_the_named_instant_may_be_as_late_as_the_job_catches_up(nightly: Session) -> None:
    answered = await answer(nightly, call(scheduled_at=DUE), ONE, now=DUE + timedelta(hours=20))
    assert isinstance(answered, Answered)
    assert answered.won


async def test_an_occurrence_that_is_put_off_is_due_when_that_is_over(nightly: Session) -> None:
    put_off = DUE + 5 * MINUTE
    await nightly.execute("update matins.occurrence set due_at = $1 where scheduled_at = $2", put_off, DUE)
    before = await written(nightly)
    declined = await answer(nightly, call("a", scheduled_at=DUE), ONE, now=DUE + MINUTE)
    assert declined == Declined("early", "the instant is not due yet", 240.0)
    assert await written(nightly) == before
    answered = await answer(nightly, call("b", at=put_off), ONE, now=put_off)
    assert isinstance(answered, Answered)
    assert (answered.identity, answered.won) == (INVOICES, True)


async def test_a_refused_delivery_may_come_again_and_be_accepted(nightly: Session) -> None:
    assert isinstance(await answer(nightly, call("a"), ONE, now=DUE - SECOND), Declined)
    again = await answer(nightly, call("a"), ONE, now=DUE)
    assert isinstance(again, Answered)
    assert again.won


@pytest.mark.parametrize(
    ("statement", "outcome", "again"),
    [
        ("update matins.job set paused_at = clock_timestamp()", "paused", None),
        ("update matins.job set retired_at = clock_timestamp()", "unknown", None),
        ("update matins.job set revision = 2", "unplanned", 5),
        ("update matins.environment set held_since = clock_timestamp(), held_reason = 'a restore'", "held", 60),
        ("update matins.environment set retained_from = '2026-08-26T00:00Z'", "too_old", None),
    ],
)
async def test_what_cannot_run_is_declined_and_nothing_is_written(
    nightly: Session, statement: str, outcome: str, again: float | None
) -> None:
    await nightly.execute("insert into matins.environment (name) values ('test') on conflict do nothing")
    await nightly.execute(statement)
    before = await written(nightly)
    declined = await answer(nightly, call("a"), ONE, now=DUE)
    assert isinstance(declined, Declined)
    assert (declined.outcome, declined.again) == (outcome, again)
    assert await written(nightly) == before


async def test_while_another_occurrence_runs_the_call_is_told_which(session: Session) -> None:
    await planned(session, job_at("* * * * *"), DUE - DAY)
    assert isinstance(await answer(session, call("a"), ONE, now=DUE), Answered)
    before = await written(session)
    declined = await answer(session, call("b", at=DUE + MINUTE), ONE, now=DUE + MINUTE)
    assert declined == Declined("overlap", f"{INVOICES} still runs", 60)
    assert await written(session) == before


@pytest.mark.parametrize("overlap", ["queue_one", "cancel_previous"])
async def test_where_the_next_may_wait_the_call_has_it_wait_and_is_told_so(session: Session, overlap: str) -> None:
    await planned(session, job_at("* * * * *", decisions=decisions(overlap=overlap)), DUE - DAY)
    first = await answer(session, call("a"), ONE, now=DUE)
    assert isinstance(first, Answered)
    waits = await answer(session, call("b", at=DUE + MINUTE), ONE, now=DUE + MINUTE)
    assert isinstance(waits, Answered)
    assert (waits.identity, waits.state) == (Identity("nightly", DUE + MINUTE), "expected")
    assert (waits.won, waits.waits, waits.repeated) == (False, True, False)
    again = await answer(session, call("b", at=DUE + MINUTE), ONE, now=DUE + MINUTE)
    assert isinstance(again, Answered)
    assert (again.id, again.repeated) == (waits.id, True)
    ending = await session.fetchval("select ending from matins.occurrence where id = $1", first.id)
    assert ending == ("cancel" if overlap == "cancel_previous" else None)
    assert [kind for kind, _, _ in await told(session)] == ["claim", "called"]
    # A platform that retries with a new id is told, too, that it was asked for before.
    another = await answer(session, call("c", at=DUE + MINUTE), ONE, now=DUE + MINUTE)
    assert isinstance(another, Answered)
    # What was cancelled is over at once here, so that the call need not wait any more.
    state = "claimed" if overlap == "cancel_previous" else "expected"
    assert (another.id, another.state, another.won) == (waits.id, state, overlap == "cancel_previous")
    assert (another.waits, another.repeated) == (False, False)


async def test_an_instant_that_the_schedule_has_no_more_is_refused(session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    await planned(session, job_at("30 2 * * *"), DUE - MINUTE)
    assert (await states(session))["25 02:00"] == "skipped: superseded"
    before = await written(session)
    declined = await answer(session, call("a", scheduled_at=DUE), ONE, now=DUE)
    assert declined == Declined("off_schedule", "the instant is not on the job's schedule")
    assert await written(session) == before
    assert await claim_one(session, INVOICES, ONE, fired_by="ann", now=DUE) == NotDue(known=False)
    assert f"{INVOICES} is not on the plan; nearest: 2026-08-25T02:30Z" in await not_on_the_plan(session, INVOICES)


async def test_a_paused_jobs_claimed_occurrence_is_answered_with(nightly: Session) -> None:
    first = await answer(nightly, call("a"), ONE, now=DUE)
    await nightly.execute("update matins.job set paused_at = clock_timestamp()")
    second = await answer(nightly, call("b"), ONE, now=DUE)
    assert isinstance(first, Answered)
    assert second == Answered(INVOICES, first.id, "claimed", won=False)


async def test_an_unknown_job_is_unknown(nightly: Session) -> None:
    declined = await answer(nightly, call("a", job="other"), ONE, now=DUE)
    assert isinstance(declined, Declined)
    assert declined.outcome == "unknown"


async def test_of_many_deliveries_at_once_one_claims_and_all_are_answered_with_it(
    database: Database, nightly: Session
) -> None:
    answers: list[Answered | Declined] = []

    async def deliver(identity: str, instance: str) -> None:
        async with database.session() as session:
            answers.append(await answer(session, call(identity), claimant(instance), now=DUE))

    async with anyio.create_task_group() as group:
        for number in range(40):
            group.start_soon(deliver, f"id{number % 4}", f"instance{number % 2}")
    answered = [one for one in answers if isinstance(one, Answered)]
    assert len(answered) == 40
    assert len({one.id for one in answered}) == 1
    assert [one.won for one in answered].count(True) == 1
    assert [one.repeated for one in answered].count(True) == 36
    assert [kind for kind, _, _ in await told(nightly)].count("claim") == 1
    assert [kind for kind, _, _ in await told(nightly)].count("called") == 3
