from datetime import timedelta
from typing import Any

import anyio
import pytest

from shared.calls import Window
from shared.job import Outside, hours
from shared.postgres import Database, Session
from shared.terminal import Refused
from tests.integration.operate.night import ORDER, OTHER, events
from tests.integration.trigger.backfills import JOB, NAME, NOW, end, instant, items, past, step, steps
from tests.integration.trigger.support import DAY, HOUR, MINUTE, claimant, decisions, job_at, planned
from trigger.backfill import Range, backfill, cancel_backfill
from trigger.backfill_choice import Mode
from trigger.backfill_pass import backfilling_jobs
from trigger.backfills import list_backfills
from trigger.claim import Nothing, Overlapped, Won, claim_due, due_jobs
from trigger.pauses import pause, resume, retire
from trigger.status import STATUS_JOBS

WHOLE = Range(instant(15), instant(1))


async def progress(session: Session) -> dict[str, Any]:
    return (await list_backfills(session, NAME, 1))[0]


@pytest.mark.parametrize(
    ("mode", "order"),
    [
        ("missing", ["15/1", "19/1", "20/1", "21/1", "01/1"]),
        ("failed", ["17/2", "18/2", "23/2"]),
        ("all", ["15/1", "17/2", "18/2", "19/1", "20/1", "21/1", "23/2", "01/1"]),
    ],
)
async def test_each_mode_runs_what_it_says_the_earliest_first(session: Session, mode: Mode, order: list[str]) -> None:
    await past(session)
    before = await items(session)
    made = await backfill(session, NAME, Range(WHOLE.since, WHOLE.until, mode), ORDER, now=NOW)
    assert len(made.started) == len(order)
    assert await steps(session) == order
    after = await items(session)
    ran = {one.partition("/")[0] for one in order}
    assert {hour: state for hour, state in after.items() if hour in ran} == dict.fromkeys(ran, "succeeded")
    assert {hour: state for hour, state in after.items() if hour not in ran} == {
        hour: state for hour, state in before.items() if hour not in ran
    }
    found = await progress(session)
    assert (found["state"], found["total"], found["succeeded"], found["waiting"]) == ("done", len(order), len(order), 0)


async def test_in_reverse_the_latest_is_first(session: Session) -> None:
    await past(session)
    await backfill(session, NAME, Range(WHOLE.since, WHOLE.until, "all", reverse=True), ORDER, now=NOW)
    assert await steps(session) == ["01/1", "23/2", "21/1", "20/1", "19/1", "18/2", "17/2", "15/1"]


async def test_a_dry_run_says_what_becomes_of_each_and_writes_nothing(session: Session) -> None:
    await past(session)
    before = await session.fetchval("select count(*) from matins.audit")
    made = await backfill(session, NAME, Range(WHOLE.since, WHOLE.until, "all"), ORDER, dry_run=True, now=NOW)
    assert made.id is None
    assert [(f"{one.past.scheduled_at:%H}", one.action) for one in made.chosen] == [
        ("15", "run"),
        ("16", "leave"),
        ("17", "rerun"),
        ("18", "rerun"),
        ("19", "run"),
        ("20", "run"),
        ("21", "run"),
        ("22", "leave"),
        ("23", "rerun"),
        ("00", "leave"),
        ("01", "run"),
    ]
    why = {f"{one.past.scheduled_at:%H}": one.why for one in made.chosen}
    assert why["15"] == "was never planned"
    assert why["16"] == "succeeded, and is never run again"
    assert why["20"] == "coalesced: into 2026-08-24T16:00Z"
    assert why["22"] == "skipped: superseded, so it is not due"
    assert await session.fetchval("select count(*) from matins.audit") == before
    assert await session.fetchval("select count(*) from matins.backfill") == 0


async def test_a_dry_run_says_what_the_order_does_also_of_what_nobody_was_there_to_plan(session: Session) -> None:
    await past(session)
    now = NOW + 5 * DAY
    dry = await backfill(session, NAME, Range(instant(21), now), ORDER, dry_run=True, now=now)
    made = await backfill(session, NAME, Range(instant(21), now), ORDER, now=now)
    assert [(one.past.scheduled_at, one.action) for one in dry.chosen] == [
        (one.past.scheduled_at, one.action) for one in made.chosen
    ]
    assert {one.why for one in dry.chosen if one.past.scheduled_at > NOW} == {"waits to run by itself"}


async def test_each_runs_with_its_own_window_in_the_name_of_who_asked(session: Session) -> None:
    await past(session)
    await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    won = await step(session)
    assert isinstance(won, Won)
    assert won.claim.window == Window(instant(14), instant(15)), "from before the job was known"
    row: Any = await session.fetchrow("select * from matins.occurrence where id = $1", won.claim.id)
    assert (row["origin"], row["fired_by"]) == ("backfill", "ann")
    assert row["fire_reason"] == "backfill 1: the tax service is back"
    await end(session, won.claim.id, "succeeded")
    won = await step(session)
    assert isinstance(won, Won)
    assert won.claim.window == Window(instant(18), instant(19))
    assert await events(session, won.claim.id) == [
        ("expected", "ann", "backfill 1: the tax service is back"),
        ("claim", "ann", "backfill 1: the tax service is back"),
    ]
    detail = await session.fetchval("select detail from matins.audit where kind = 'expected' order by id limit 1")
    assert detail == {"was": "missed", "because": "nobody was there"}


async def test_the_window_of_the_next_scheduled_one_leaves_no_gap_and_counts_nothing_twice(session: Session) -> None:
    """What was backfilled right behind the last one is covered; what is still left out is spanned as ever."""
    revision = await past(session, became={16: "succeeded", 17: "missed", 18: "missed", 19: "missed"})
    await backfill(session, NAME, Range(instant(17), instant(18)), ORDER, now=NOW)
    assert await steps(session) == ["17/1", "18/1"]
    await planned(session, JOB, NOW + HOUR)
    won = await claim_due(session, JOB, revision, claimant(), now=NOW + HOUR)
    assert isinstance(won, Won)
    assert won.claim.window == Window(instant(18), NOW + HOUR)


async def test_what_is_left_out_before_a_backfilled_one_is_not_lost_to_the_next_window(session: Session) -> None:
    revision = await past(session, became={16: "succeeded", 17: "missed", 18: "missed"})
    await backfill(session, NAME, Range(instant(18), instant(18)), ORDER, now=NOW)
    assert await steps(session) == ["18/1"]
    await planned(session, JOB, NOW + HOUR)
    won = await claim_due(session, JOB, revision, claimant(), now=NOW + HOUR)
    assert isinstance(won, Won)
    assert won.claim.window == Window(instant(16), NOW + HOUR), "17:00 never ran"


async def test_the_schedule_goes_first_and_is_not_skipped_for_a_backfill(session: Session) -> None:
    revision = await past(session)
    await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    first = await step(session)
    assert isinstance(first, Won)
    due = NOW + HOUR
    await planned(session, JOB, due)
    in_the_way = Overlapped(str(first.claim.identity), waits=True)
    assert await claim_due(session, JOB, revision, claimant(), now=due) == in_the_way
    assert await due_jobs(session, [NAME], "one", now=due) == {NAME}, "it waits"
    await end(session, first.claim.id, "succeeded")
    assert await step(session, now=due) == Nothing(), "none is started while a scheduled one is due"
    won = await claim_due(session, JOB, revision, claimant(), now=due)
    assert isinstance(won, Won)
    assert won.claim.identity.scheduled_at == due
    assert await step(session, now=due) == Nothing(), "nor while it runs"
    await end(session, won.claim.id, "succeeded")
    assert isinstance(await step(session, now=due), Won)


async def test_one_that_waits_for_its_backfill_is_neither_due_nor_late_nor_in_anyones_way(session: Session) -> None:
    revision = await past(session)
    await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    assert await due_jobs(session, [NAME], "one", now=NOW) == set()
    assert await claim_due(session, JOB, revision, claimant(), now=NOW) == Nothing()
    row: Any = await session.fetchrow(STATUS_JOBS, None)
    assert row["late_scheduled_at"] == NOW + HOUR, "by the real clock, the first of the schedule itself"


async def test_it_waits_while_the_job_is_paused_or_everything_is_held(session: Session) -> None:
    await past(session)
    await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    await pause(session, NAME, ORDER, now=NOW)
    assert await backfilling_jobs(session, [NAME]) == []
    assert await step(session) == Nothing()
    resumed = await resume(session, NAME, ORDER, now=NOW + MINUTE)
    assert resumed.skipped == 0, "what waits for a backfill is not what fell due meanwhile"
    await session.execute(
        "insert into matins.environment (name, held_since, held_reason) values ('t', clock_timestamp(), 'restored')"
    )
    assert await backfilling_jobs(session, [NAME]) == []
    assert await step(session) == Nothing()
    await session.execute("update matins.environment set held_since = null, held_reason = null")
    assert await backfilling_jobs(session, [NAME]) == [NAME]
    assert isinstance(await step(session), Won)


async def test_cancelled_it_skips_what_waits_and_lets_finish_what_runs(session: Session) -> None:
    await past(session)
    made = await backfill(session, NAME, Range(WHOLE.since, WHOLE.until, "all"), ORDER, now=NOW)
    first = await step(session)
    assert isinstance(first, Won)
    assert made.id is not None
    assert await cancel_backfill(session, made.id, OTHER, now=NOW) == NAME
    await end(session, first.claim.id, "succeeded")
    assert await steps(session) == []
    found = await items(session)
    assert found["15"] == "succeeded"
    assert {found[hour] for hour in ("19", "20", "21", "01")} == {"skipped: backfill cancelled"}
    assert (found["17"], found["18"], found["23"]) == ("failed", "partial", "cancelled")
    told = await progress(session)
    assert (told["state"], told["ended_by"], told["end_reason"]) == ("cancelled", "bob", "I was faster")
    assert (told["succeeded"], told["waiting"], told["left_out"]) == (1, 0, 7)
    with pytest.raises(Refused, match=r"backfill 1 of nightly is cancelled since 2026-08-25T02:00Z by bob"):
        await cancel_backfill(session, made.id, ORDER)
    with pytest.raises(Refused, match="there is no backfill 99"):
        await cancel_backfill(session, 99, ORDER)
    again = await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    assert len(again.started) == 4, "another takes up what was skipped"


async def test_a_retirement_ends_it(session: Session) -> None:
    await past(session)
    await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    await retire(session, NAME, ORDER, now=NOW)
    assert (await progress(session))["state"] == "cancelled"
    assert "expected" not in (await items(session)).values()
    with pytest.raises(Refused, match="retired"):
        await backfill(session, NAME, WHOLE, ORDER, now=NOW)


async def test_what_cannot_be_run_again_is_left_out_with_its_reason_and_the_others_run(session: Session) -> None:
    handler = Outside("billing.charges:charge", key_valid_for=hours(3))
    job = job_at("0 * * * *", decisions=decisions(catch_up="skip", catch_up_within=HOUR), handler=handler)
    await past(session, job, {20: "failed", 23: "failed", 0: "failed"})
    await backfill(session, NAME, Range(instant(20), instant(0), "failed"), ORDER, now=NOW)
    assert await steps(session) == ["23/2", "00/2"]
    why = await session.fetchval("select left_out from matins.backfill_occurrence where left_out is not null")
    assert "its provider remembers a key for 3.0 h" in why
    found = await progress(session)
    assert (found["state"], found["succeeded"], found["left_out"]) == ("done", 2, 1)
    assert (await items(session))["20"] == "failed"


async def test_what_is_pruned_before_its_turn_is_left_out(session: Session) -> None:
    await past(session)
    await session.execute("insert into matins.environment (name) values ('t')")
    await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    await session.execute("update matins.environment set retained_from = $1", instant(20))
    assert await steps(session) == ["20/1", "21/1", "01/1"]
    assert (await items(session))["19"] == "skipped: backfill: older than what is retained"
    made = await backfill(session, NAME, WHOLE, ORDER, dry_run=True, now=NOW)
    assert made.chosen[0].why == "older than what is retained"


async def test_what_makes_no_sense_is_refused_and_writes_nothing(session: Session) -> None:
    await past(session)
    for asked, told in (
        (Range(instant(15), NOW + HOUR), "--until: 2026-08-25T03:00Z is still to come"),
        (Range(instant(1), instant(15)), "lies before --from"),
        (Range(instant(16), instant(16)), "nothing of nightly is there to run: 1 succeeded, and is never run again"),
        (Range(NOW - 500 * DAY, NOW), "more than 10000 instants of nightly lie between them"),
    ):
        with pytest.raises(Refused, match=told):
            await backfill(session, NAME, asked, ORDER, now=NOW)
    with pytest.raises(Refused, match="did you mean nightly"):
        await backfill(session, "nightli", WHOLE, ORDER, now=NOW)
    assert await session.fetchval("select count(*) from matins.backfill") == 0
    await backfill(session, NAME, WHOLE, ORDER, now=NOW)
    with pytest.raises(Refused, match="backfill 1 of nightly goes on"):
        await backfill(session, NAME, WHOLE, OTHER, now=NOW)


async def test_no_more_run_at_once_than_is_asked_for_and_none_twice_whoever_goes_on(database: Database) -> None:
    """Eight triggers go on at once, with claims of the schedule between them."""
    async with database.session() as session:
        revision = await past(session)
        await backfill(session, NAME, Range(instant(15) - 2 * DAY, instant(1), "missing"), ORDER, now=NOW)
    won: list[str] = []
    for turn in range(200):
        now = NOW + turn * timedelta(seconds=1)

        async def go_on(number: int, now: Any = now) -> None:
            async with database.session() as session:
                if number == 0:
                    await claim_due(session, JOB, revision, claimant("schedule"), now=now)
                outcome = await step(session, f"t{number}", now=now)
            if isinstance(outcome, Won):
                won.append(str(outcome.claim.identity))

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(go_on, number)
        async with database.session() as session:
            active = await session.fetch("select id from matins.occurrence where state in ('claimed', 'running')")
            assert len(active) <= 1
            for row in active:
                await end(session, row["id"], "succeeded")
            if await session.fetchval("select state from matins.backfill") == "done":
                break
    assert len(won) == len(set(won)) == 48 + 4 + 1
    async with database.session() as session:
        twice = await session.fetchval(
            """select count(*) from (
                   select from matins.audit where kind = 'claim' group by occurrence_id having count(*) > 1) _"""
        )
    assert twice == 0
