from datetime import timedelta
from typing import Any

import anyio
import msgspec
import pytest

from schemas.report import Counts, Generation
from shared.close import Closed, close
from shared.job import Outside, hours
from shared.terminal import Refused
from tests.integration.operate.night import ORDER, OTHER, closed_night, events, expected_occurrence, nightly, nothing
from tests.support.ledger import DUE, ledger, occurrence_row, running_occurrence, session_on
from trigger.operate import Choice, Rerun, cancel, rerun

FAILED = Choice()


async def test_all_that_did_not_succeed_runs_again_in_the_same_occurrence(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence, closed = await closed_night(session)
        started = await rerun(session, occurrence.identity, FAILED, ORDER)
        assert started == Rerun(occurrence.id, 2, 3, "running")
        row = await occurrence_row(session, occurrence.id)
        assert (row["state"], row["generation"], row["epoch"], row["closed_at"]) == ("running", 2, 2, None)
        assert row["finish_by"] - row["opened_at"] == hours(3)
        assert row["total"] is None
        kept = msgspec.convert(row["report"]["generations"], list[Generation])
        counts = Counts(succeeded=1, failed=2, dead=1, cancelled=1)
        classes = closed.report.error_classes
        assert [one.examples for one in classes] == [("d",), ("c",), ("b",)]
        assert kept == [
            Generation(generation=1, state="partial", closed_at=closed.closed_at, counts=counts, error_classes=classes)
        ]
        assert (await events(session, occurrence.id))[-1] == ("rerun", "ann", "the tax service is back")


async def test_the_chosen_rows_begin_anew_and_the_others_stay(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        before = await ledger(session, occurrence.id)
        await rerun(session, occurrence.identity, FAILED, ORDER)
        rows = await ledger(session, occurrence.id)
        for account in "bce":
            row = rows[account]
            assert (row["state"], row["generation"], row["attempts"], row["starts"]) == ("pending", 2, 0, 0)
            assert row["epoch"] == before[account]["epoch"] + 1
            assert (row["published_at"], row["not_before"], row["error_class"], row["finished_at"]) == (None,) * 4
            assert row["key_salt"] == ""
        assert [account for account in rows if rows[account]["isolated"]] == ["c"]
        assert (dict(rows["a"]), dict(rows["d"])) == (dict(before["a"]), dict(before["d"]))


async def test_the_report_of_the_second_generation_keeps_the_first(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        closed: Closed | None = None
        for generation in (2, 3):
            await rerun(session, occurrence.identity, Choice(("b",)), ORDER)
            await session.execute(
                """update matins.ledger set state = 'failed', error_class = 'StillDown', finished_at = clock_timestamp()
                    where occurrence_id = $1 and state = 'pending'""",
                occurrence.id,
            )
            closed = await close(session, occurrence.id, by="test")
            assert closed is not None
            assert closed.generation == generation
        assert closed is not None
        assert [one.generation for one in closed.report.generations] == [1, 2]
        row = await occurrence_row(session, occurrence.id)
        assert row["total"] == row["succeeded"] + row["failed"] + row["dead"] + row["cancelled"] == 5


async def test_single_accounts_can_be_chosen_with_a_new_key(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        started = await rerun(session, occurrence.identity, Choice(("b", "e", "b"), new_key=True), ORDER)
        rows = await ledger(session, occurrence.id)
        assert started.accounts == 2
        assert [account for account in rows if rows[account]["state"] == "pending"] == ["b", "e"]
        assert len(rows["b"]["key_salt"]) == 16
        assert rows["c"]["key_salt"] == ""


async def test_of_two_operators_at_once_one_runs_it_and_the_other_is_told(database_url: str) -> None:
    async with session_on(database_url) as first, session_on(database_url) as second:
        occurrence, _ = await closed_night(first)
        won: list[Rerun] = []
        told: list[str] = []

        async def act(session: Any, order: Any) -> None:
            try:
                won.append(await rerun(session, occurrence.identity, FAILED, order))
            except Refused as refused:
                told.append(str(refused))

        async with anyio.create_task_group() as group:
            group.start_soon(act, first, ORDER)
            group.start_soon(act, second, OTHER)
        assert [one.generation for one in won] == [2]
        assert told == ["invoice-run:2026-08-25T02:00Z runs already, in generation 2: wait for its end, or cancel it"]
        assert (await occurrence_row(first, occurrence.id))["generation"] == 2


async def test_a_rerun_and_a_cancel_at_once_leave_one_story(database_url: str) -> None:
    async with session_on(database_url) as first, session_on(database_url) as second:
        occurrence, _ = await closed_night(first)
        done: list[str] = []

        async def act(name: str, work: Any) -> None:
            try:
                await work
                done.append(name)
            except Refused:
                pass

        async with anyio.create_task_group() as group:
            group.start_soon(act, "rerun", rerun(first, occurrence.identity, FAILED, ORDER))
            group.start_soon(act, "cancel", cancel(second, occurrence.identity, OTHER))
        row = await occurrence_row(first, occurrence.id)
        assert done in (["rerun"], ["rerun", "cancel"])
        assert (row["state"], row["ending"]) == ("running", "cancel" if "cancel" in done else None)


@pytest.mark.parametrize(
    ("choice", "reason"),
    [
        (Choice(("a",)), "has succeeded for: 'a'"),
        (Choice(("zz",)), "has no account: 'zz'"),
        (Choice(("d",)), "an id that can be no account's, and cannot run, in: 'd'"),
        (Choice(("b", "zz")), "has no account: 'zz'"),
    ],
)
async def test_accounts_that_cannot_run_again_are_refused_and_nothing_changes(
    database_url: str, choice: Choice, reason: str
) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        before = (dict(await occurrence_row(session, occurrence.id)), await ledger(session, occurrence.id))
        with pytest.raises(Refused, match=reason):
            await rerun(session, occurrence.identity, choice, ORDER)
        assert (dict(await occurrence_row(session, occurrence.id)), await ledger(session, occurrence.id)) == before


async def test_an_occurrence_with_invalid_ids_alone_has_nothing_to_run_again(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(
            session, accounts={"a": ("succeeded", None), "d": ("failed", "invalid_account")}
        )
        with pytest.raises(Refused, match=r"no account of .* can be run again"):
            await rerun(session, occurrence.identity, FAILED, ORDER)
        assert (await occurrence_row(session, occurrence.id))["generation"] == 1


async def test_what_runs_has_succeeded_or_never_ran_is_refused(database_url: str) -> None:
    async with session_on(database_url) as session:
        well, _ = await closed_night(session, accounts={"a": ("succeeded", None)})
        running = await running_occurrence(session, nightly("other-run"), ["a"])
        await expected_occurrence(session, nightly("third-run"))
        with pytest.raises(Refused, match="has succeeded"):
            await rerun(session, well.identity, FAILED, ORDER)
        with pytest.raises(Refused, match="runs already, in generation 1"):
            await rerun(session, running.identity, FAILED, ORDER)
        for state, reason, told in (
            ("expected", None, "has not run yet: fire it"),
            ("skipped", "overlap", r"never ran: it was skipped \(overlap\)"),
        ):
            await session.execute(
                "update matins.occurrence set state = $1, reason = $2 where job = 'third-run'", state, reason
            )
            with pytest.raises(Refused, match=told):
                await rerun(session, type(well.identity)("third-run", DUE), FAILED, ORDER)


async def test_unknown_jobs_and_instants_are_refused_with_what_is_near(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        identity = type(occurrence.identity)
        with pytest.raises(Refused, match="did you mean invoice-run"):
            await rerun(session, identity("invoice-runn", DUE), FAILED, ORDER)
        with pytest.raises(Refused, match="not on the plan; nearest: 2026-08-25T02:00Z"):
            await rerun(session, identity("invoice-run", DUE + timedelta(hours=1)), FAILED, ORDER)


async def test_while_another_occurrence_of_the_job_runs_none_is_run_again(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session)
        await running_occurrence(session, nightly(), ["a"], scheduled_at=DUE + timedelta(days=1))
        with pytest.raises(Refused, match="2026-08-26T02:00Z of the same job still runs"):
            await rerun(session, occurrence.identity, FAILED, ORDER)


async def test_a_provider_that_may_have_forgotten_the_key_needs_a_decision(database_url: str) -> None:
    job = nightly("charge", handler=Outside(nothing, key_valid_for=hours(24)))
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session, job)
        soon, late = DUE + hours(23), DUE + hours(25)
        with pytest.raises(Refused, match=r"claimed 25\.0 h ago.*--reconciled, or --new-key"):
            await rerun(session, occurrence.identity, Choice(("b",)), ORDER, now=late)
        await rerun(session, occurrence.identity, Choice(("b",)), ORDER, now=soon)
        assert (await ledger(session, occurrence.id))["b"]["key_salt"] == ""


@pytest.mark.parametrize("choice", [Choice(("b",), reconciled=True), Choice(("b",), new_key=True)])
async def test_a_decision_about_the_key_opens_the_way(database_url: str, choice: Choice) -> None:
    job = nightly("charge", handler=Outside(nothing, key_valid_for=hours(24)))
    async with session_on(database_url) as session:
        occurrence, _ = await closed_night(session, job)
        await rerun(session, occurrence.identity, choice, ORDER, now=DUE + hours(25))
        assert bool((await ledger(session, occurrence.id))["b"]["key_salt"]) is choice.new_key


async def test_one_that_was_never_sealed_goes_on_at_its_cursor(database_url: str) -> None:
    async with session_on(database_url) as session:
        occurrence = await running_occurrence(session, nightly(), ["a", "b"])
        await session.execute(
            """update matins.occurrence set state = 'claimed', sealed_at = null, cursor = 'b', fan_out_attempts = 5,
                      fan_out_error = 'no route', ending = 'fan_out', ending_reason = 'no route' where id = $1""",
            occurrence.id,
        )
        await session.execute("delete from matins.publication")
        await session.execute(
            "update matins.ledger set state = 'cancelled', epoch = 1, finished_at = clock_timestamp()"
        )
        closed = await close(session, occurrence.id, by="test")
        assert closed is not None
        with pytest.raises(Refused, match="never all read"):
            await rerun(session, occurrence.identity, Choice(("a",)), ORDER)
        started = await rerun(session, occurrence.identity, FAILED, ORDER)
        row = await occurrence_row(session, occurrence.id)
        assert started == Rerun(occurrence.id, 2, 2, "claimed")
        assert (row["state"], row["cursor"], row["ending"], row["fan_out_attempts"]) == ("claimed", "b", None, 0)
        assert row["lease_until"] <= await session.fetchval("select clock_timestamp()")
        # Rows that were never published are behind the watermark now: the sweeps look no further than it.
        assert await session.fetchval("select max(through_position) from matins.publication") == 2
