"""Check-ins of what runs elsewhere: each moves one row, in whatever order and however often they come."""

from datetime import datetime, timedelta
from typing import Any

import anyio
import pytest

from schemas.occurrence import Identity
from shared.job import Cron, Job, RunsElsewhere, hours, minutes
from shared.postgres import Session
from tests.integration.operate.night import ORDER
from tests.integration.trigger.support import DAY, DUE, HOUR, MINUTE, job_at, planned, states
from tests.support.ledger import session_on
from trigger.check_in import AHEAD, CheckIn, check_in, close_silent
from trigger.operate import cancel
from trigger.outside_call import Answered, Declined, Delivery
from trigger.pauses import pause, retire

SECOND = timedelta(seconds=1)
HEARD_WITHIN = 20 * HOUR


def elsewhere(cron: str = "0 2 * * *") -> Job:
    return RunsElsewhere(
        "nightly", Cron(cron), start_within=minutes(10), finish_within=hours(1), heard_within=hours(20)
    )


@pytest.fixture
async def nightly(session: Session) -> Session:
    """A session on a database where a nightly job that runs elsewhere is planned."""
    await planned(session, elsewhere(), DUE - DAY)
    return session


async def told(session: Session, event: Any, now: datetime, **more: Any) -> Answered | Declined:
    return await check_in(session, CheckIn("nightly", event, "cron", "key 0123abcd", "one", **more), now=now)


async def changed(session: Session, event: Any, now: datetime, **more: Any) -> str:
    """Check in, see that it has changed something, and give what of."""
    answered = await told(session, event, now, **more)
    assert isinstance(answered, Answered), answered
    assert answered.won
    return str(answered.identity)


async def known(session: Session, event: Any, now: datetime, **more: Any) -> str:
    """Check in what had been recorded before, and give the state that is told."""
    before = await rows(session)
    answered = await told(session, event, now, **more)
    assert isinstance(answered, Answered), answered
    assert not answered.won
    assert await rows(session) == before, "nothing changes"
    return answered.state


async def declined(session: Session, event: Any, now: datetime, **more: Any) -> Declined:
    """Check in what is declined, see that it changes nothing, and give why."""
    before = await rows(session)
    answered = await told(session, event, now, **more)
    assert isinstance(answered, Declined), answered
    assert await rows(session) == before
    return answered


async def rows(session: Session) -> list[Any]:
    return [tuple(row) for row in await session.fetch("select * from matins.occurrence order by id")]


async def found(session: Session, at: datetime = DUE) -> Any:
    return await session.fetchrow("select * from matins.occurrence where scheduled_at = $1", at)


async def trail(session: Session) -> list[dict[str, Any]]:
    """Give the audit trail of check-ins."""
    found = await session.fetch("select detail from matins.audit where kind = 'check_in' order by id")
    return [row["detail"] for row in found]


async def test_a_run_starts_and_succeeds(nightly: Session) -> None:
    assert await changed(nightly, "start", DUE + MINUTE, run="a") == "nightly:2026-08-25T02:00Z"
    row = await found(nightly)
    assert (row["state"], row["claimed_at"], row["opened_at"]) == ("claimed", DUE + MINUTE, DUE + MINUTE)
    assert (row["finish_by"], row["lease_until"], row["sealed_at"]) == (DUE + MINUTE + HOUR, None, None)
    assert (row["fired_by"], row["fire_reason"]) == ("cron", "checked in, key 0123abcd")
    assert (row["run_id"], row["claimed_by"], row["epoch"], row["generation"]) == ("a", "one", 1, 1)
    await changed(nightly, "success", DUE + 31 * MINUTE, run="a")
    row = await found(nightly)
    assert (row["state"], row["reason"], row["closed_at"]) == ("succeeded", None, DUE + 31 * MINUTE)
    assert [row[name] for name in ("total", "succeeded", "failed", "dead", "cancelled")] == [0] * 5
    assert row["report"]["counts"] == {"succeeded": 0, "failed": 0, "dead": 0, "cancelled": 0}
    assert await trail(nightly) == [
        {"event": "start", "before": "expected", "after": "claimed", "run": "a"},
        {"event": "success", "before": "claimed", "after": "succeeded", "run": "a"},
    ]
    assert await nightly.fetchval("select count(*) from matins.ledger") == 0
    assert await nightly.fetchval("select count(*) from matins.attempt") == 0


async def test_a_failure_says_why_in_a_few_plain_words(nightly: Session) -> None:
    await changed(nightly, "start", DUE)
    await changed(
        nightly, "fail", DUE + MINUTE, message=" exit code 3\nno space\x00 left password=hunter2hunter2 " + "x" * 900
    )
    row = await found(nightly)
    assert row["state"] == "failed"
    assert row["reason"].startswith("reported by cron: exit code 3 no space\\x00 left password=*** xxx")
    assert len(row["reason"]) < 600


@pytest.mark.parametrize(("event", "state"), [("success", "succeeded"), ("fail", "failed")])
async def test_an_end_needs_no_start(nightly: Session, event: str, state: str) -> None:
    await changed(nightly, event, DUE + 5 * MINUTE)
    row = await found(nightly)
    assert (row["state"], row["claimed_at"], row["closed_at"]) == (state, DUE + 5 * MINUTE, DUE + 5 * MINUTE)


async def test_what_comes_again_changes_nothing_and_is_told_the_same(nightly: Session) -> None:
    await changed(nightly, "start", DUE, run="a")
    assert await known(nightly, "start", DUE + SECOND, run="a") == "claimed"
    await changed(nightly, "success", DUE + MINUTE, run="a")
    assert await known(nightly, "success", DUE + 2 * MINUTE, run="a") == "succeeded"
    assert await known(nightly, "start", DUE + 2 * MINUTE, run="a") == "succeeded", "overtaken by the end"
    assert len(await trail(nightly)) == 2


async def test_a_success_is_final_and_who_contradicts_it_is_kept_once(nightly: Session) -> None:
    await changed(nightly, "success", DUE + MINUTE, run="a")
    for event, run in (("fail", "a"), ("fail", "b"), ("start", "b")):
        for _ in range(2):
            refused = await declined(nightly, event, DUE + HOUR, run=run, scheduled_at=DUE)
            assert refused == Declined("over", "nightly:2026-08-25T02:00Z is over: it was succeeded")
    late = [detail for detail in await trail(nightly) if "refused" in detail]
    assert [(detail["event"], detail["run"]) for detail in late] == [("fail", "a"), ("start", "b")]
    assert await known(nightly, "success", DUE + HOUR, run="b", scheduled_at=DUE) == "succeeded"


async def test_a_retry_is_the_next_generation_and_mends_the_failure(nightly: Session) -> None:
    await changed(nightly, "start", DUE, run="a")
    await changed(nightly, "fail", DUE + MINUTE, run="a", message="exit code 1")
    assert await known(nightly, "fail", DUE + MINUTE, run="a") == "failed"
    assert await known(nightly, "start", DUE + MINUTE, run="a") == "failed"
    await changed(nightly, "start", DUE + 2 * MINUTE, run="b", scheduled_at=DUE)
    row = await found(nightly)
    assert (row["state"], row["generation"], row["run_id"], row["reason"]) == ("claimed", 2, "b", None)
    assert (row["claimed_at"], row["opened_at"], row["total"]) == (DUE, DUE + 2 * MINUTE, None)
    await changed(nightly, "success", DUE + 3 * MINUTE, run="b")
    row = await found(nightly)
    assert (row["state"], row["generation"]) == ("succeeded", 2)
    assert [(one["generation"], one["state"]) for one in row["report"]["generations"]] == [(1, "failed")]


async def test_a_success_alone_mends_a_failure_too(nightly: Session) -> None:
    await changed(nightly, "fail", DUE + MINUTE)
    await changed(nightly, "success", DUE + HOUR)
    row = await found(nightly)
    assert (row["state"], row["generation"], row["reason"]) == ("succeeded", 2, None)
    assert len(row["report"]["generations"]) == 1


async def test_the_run_that_started_last_has_it(nightly: Session) -> None:
    await changed(nightly, "start", DUE, run="a")
    await changed(nightly, "start", DUE + MINUTE, run="b", scheduled_at=DUE)
    row = await found(nightly)
    assert (row["run_id"], row["epoch"], row["generation"], row["finish_by"]) == ("b", 2, 1, DUE + MINUTE + HOUR)
    for event in ("start", "success", "fail"):
        refused = await declined(nightly, event, DUE + 2 * MINUTE, run="a", scheduled_at=DUE)
        assert refused == Declined("another_run", "nightly:2026-08-25T02:00Z is run by b, which started later")
    await changed(nightly, "success", DUE + HOUR, run="b")
    assert (await trail(nightly))[1]["from"] == "a"


async def test_overlapping_runs_of_two_instants_are_told_apart_by_their_names(session: Session) -> None:
    await planned(session, elsewhere("0 * * * *"), DUE - HOUR)
    assert await changed(session, "start", DUE, run="a") == "nightly:2026-08-25T02:00Z"
    assert await changed(session, "start", DUE + HOUR, run="b") == "nightly:2026-08-25T03:00Z"
    assert await changed(session, "success", DUE + HOUR + MINUTE, run="a") == "nightly:2026-08-25T02:00Z"
    assert await changed(session, "fail", DUE + HOUR + MINUTE, run="b") == "nightly:2026-08-25T03:00Z"


async def test_without_names_an_end_is_that_of_the_run_that_started_last(session: Session) -> None:
    await planned(session, elsewhere("0 * * * *"), DUE - HOUR)
    await changed(session, "start", DUE)
    await changed(session, "start", DUE + HOUR)
    assert await changed(session, "success", DUE + HOUR + MINUTE) == "nightly:2026-08-25T03:00Z"
    assert await changed(session, "success", DUE + HOUR + 2 * MINUTE) == "nightly:2026-08-25T02:00Z"


async def test_an_end_after_the_next_is_due_is_still_that_of_the_run_that_started(session: Session) -> None:
    await planned(session, elsewhere("0 * * * *"), DUE - HOUR)
    await changed(session, "start", DUE)
    assert await changed(session, "success", DUE + 70 * MINUTE) == "nightly:2026-08-25T02:00Z"
    assert (await states(session))["25 03:00"] == "expected"


async def test_a_sender_whose_clock_is_a_little_ahead_means_the_next(nightly: Session) -> None:
    await planned(nightly, elsewhere(), DUE)
    await changed(nightly, "success", DUE + HOUR)
    early = DUE + DAY - AHEAD
    assert await changed(nightly, "start", early, run="a") == "nightly:2026-08-26T02:00Z"
    row = await found(nightly, DUE + DAY)
    assert (row["claimed_at"], row["opened_at"]) == (DUE + DAY, DUE + DAY), "nothing starts before it is due"
    await changed(nightly, "success", early + SECOND, run="a")
    assert (await found(nightly, DUE + DAY))["closed_at"] == DUE + DAY


async def test_a_start_means_the_next_though_the_one_before_was_never_heard_of(nightly: Session) -> None:
    await planned(nightly, elsewhere(), DUE)
    assert await changed(nightly, "start", DUE + DAY - SECOND) == "nightly:2026-08-26T02:00Z"
    assert (await states(nightly))["25 02:00"] == "expected"


async def test_an_end_shortly_before_the_next_is_the_end_of_the_one_that_is_awaited(session: Session) -> None:
    await planned(session, elsewhere("* * * * *"), DUE)
    assert await changed(session, "success", DUE + 53 * SECOND + MINUTE) == "nightly:2026-08-25T02:01Z"


async def test_what_is_too_early_too_old_or_not_on_the_schedule_is_declined(nightly: Session) -> None:
    await planned(nightly, elsewhere(), DUE)
    for event in ("start", "success", "fail"):
        early = await declined(nightly, event, DUE - MINUTE, scheduled_at=DUE)
        assert early == Declined("early", "the instant is not due yet", 60.0)
        assert (await declined(nightly, event, DUE - HOUR, scheduled_at=DUE)).outcome == "not_due"
        assert (await declined(nightly, event, DUE, scheduled_at=DUE + SECOND)).outcome == "off_schedule"
        assert (await declined(nightly, event, DUE - HOUR)).outcome == "not_due"
        assert (await declined(nightly, event, DUE + HEARD_WITHIN + SECOND)).outcome == "too_old"
    assert await trail(nightly) == []
    await changed(nightly, "start", DUE + HEARD_WITHIN)


async def test_what_was_missed_stays_so_and_that_it_ran_is_kept(nightly: Session) -> None:
    await nightly.execute("update matins.occurrence set state = 'missed', reason = 'r' where scheduled_at = $1", DUE)
    for _ in range(2):
        refused = await declined(nightly, "success", DUE + DAY - HOUR, scheduled_at=DUE, run="a")
        assert refused == Declined("over", "nightly:2026-08-25T02:00Z is over: it was missed (r)")
    (late,) = await trail(nightly)
    assert late == {"event": "success", "before": "missed", "after": "missed", "run": "a", "refused": "over"}


async def test_what_started_and_fell_silent_is_closed_and_a_late_success_mends_it(nightly: Session) -> None:
    await changed(nightly, "start", DUE, run="a")
    assert await close_silent(nightly, "one", now=DUE + HEARD_WITHIN) == 0
    assert await close_silent(nightly, "one", now=DUE + HEARD_WITHIN + SECOND) == 1
    assert await close_silent(nightly, "one", now=DUE + HEARD_WITHIN + SECOND) == 0
    row = await found(nightly)
    assert (row["state"], row["reason"]) == ("failed", "it started, and no end was reported within heard_within")
    assert row["report"]["version"] == 1
    assert await changed(nightly, "success", DUE + HEARD_WITHIN + MINUTE, run="a") == "nightly:2026-08-25T02:00Z"
    assert (await found(nightly))["state"] == "succeeded"


async def test_what_started_late_has_all_of_its_time(nightly: Session) -> None:
    await changed(nightly, "start", DUE + HEARD_WITHIN - MINUTE)
    assert await close_silent(nightly, "one", now=DUE + HEARD_WITHIN + 59 * MINUTE) == 0
    assert await close_silent(nightly, "one", now=DUE + HEARD_WITHIN + 59 * MINUTE + SECOND) == 1


async def test_a_paused_job_starts_nothing_and_what_has_started_ends(nightly: Session) -> None:
    await planned(nightly, elsewhere(), DUE)
    await changed(nightly, "start", DUE)
    await pause(nightly, "nightly", ORDER, now=DUE + MINUTE)
    await changed(nightly, "success", DUE + 2 * MINUTE)
    for event in ("start", "success", "fail"):
        refused = await declined(nightly, event, DUE + DAY)
        assert refused == Declined("paused", "the job is paused: nothing of it is waited for")


async def test_a_retired_job_is_nobodys_and_what_has_started_ends(nightly: Session) -> None:
    await planned(nightly, elsewhere(), DUE)
    await changed(nightly, "start", DUE)
    await retire(nightly, "nightly", ORDER, now=DUE + MINUTE)
    await changed(nightly, "success", DUE + 2 * MINUTE)
    for event in ("start", "fail"):
        assert await declined(nightly, event, DUE + 3 * MINUTE) == Declined("unknown", "no such job")
    refused = await told(nightly, "start", DUE, scheduled_at=DUE)
    assert refused == Declined("unknown", "no such job")


async def test_a_cancelled_one_is_opened_by_another_run_alone(nightly: Session) -> None:
    await changed(nightly, "start", DUE, run="a")
    _, state = await cancel(nightly, Identity("nightly", DUE), ORDER, now=DUE + MINUTE)
    assert state == "claimed"
    assert (await found(nightly))["state"] == "cancelled"
    refused = await declined(nightly, "success", DUE + MINUTE, run="a")
    assert refused.outcome == "over"
    await changed(nightly, "start", DUE + 2 * MINUTE, run="b", scheduled_at=DUE)
    assert (await found(nightly))["generation"] == 2


async def test_what_runs_here_does_not_check_in(session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    refused = await declined(session, "success", DUE)
    assert refused == Declined("runs_here", "the job runs here: it does not check in")
    assert await told(session, "success", DUE, scheduled_at=DUE) == refused
    unknown = await check_in(session, CheckIn("other", "start", "cron", "token", "one"), now=DUE)
    assert unknown == Declined("unknown", "no such job")


async def test_what_was_started_elsewhere_can_end_when_the_job_runs_here_by_now(nightly: Session) -> None:
    await changed(nightly, "start", DUE, run="a")
    await planned(nightly, job_at(), DUE + MINUTE)
    await changed(nightly, "success", DUE + 2 * MINUTE, run="a")


async def test_a_signed_call_that_comes_again_is_answered_with_the_same(session: Session) -> None:
    await planned(session, elsewhere("0 * * * *"), DUE - HOUR)
    at = int(DUE.timestamp())
    delivery = Delivery.of("msg_1", at, "nightly", b"body")
    first = await told(session, "success", DUE, delivery=delivery)
    assert isinstance(first, Answered)
    assert (first.won, first.repeated) == (True, False)
    again = await told(session, "success", DUE + MINUTE, delivery=delivery)
    assert again == Answered(first.identity, first.id, "succeeded", won=False, repeated=True)
    other = await told(session, "fail", DUE, delivery=Delivery.of("msg_1", at, "nightly", b"other"))
    assert other == Declined("reused", "this webhook-id was used for another call")


async def test_a_signed_call_that_was_too_late_is_told_so_again(nightly: Session) -> None:
    await changed(nightly, "success", DUE)
    delivery = Delivery.of("msg_2", int(DUE.timestamp()), "nightly", b"body")
    answers = [await told(nightly, "fail", DUE + MINUTE, scheduled_at=DUE, delivery=delivery) for _ in range(2)]
    assert answers[0] == answers[1]
    assert isinstance(answers[0], Declined)
    assert len(await trail(nightly)) == 2


async def test_of_many_at_once_each_is_answered_and_one_moves_the_row(database_url: str, nightly: Session) -> None:
    answers: list[Answered | Declined] = []

    async def one(event: str) -> None:
        async with session_on(database_url) as own:
            answers.append(await told(own, event, DUE + MINUTE, run="a"))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(one, "start")
            group.start_soon(one, "success")
    assert all(isinstance(answer, Answered) for answer in answers)
    assert (await found(nightly))["state"] == "succeeded"
    assert [detail["event"] for detail in await trail(nightly)] in (["success"], ["start", "success"])
