from datetime import datetime
from typing import Any

import anyio
import pytest

from schemas.occurrence import Identity
from shared.job import Job
from shared.postgres import Database, Session
from shared.terminal import Refused
from tests.integration.operate.night import ORDER, OTHER
from tests.integration.trigger.support import (
    DAY,
    DUE,
    HOUR,
    MINUTE,
    claimant,
    claimed,
    decisions,
    job_at,
    live,
    planned,
    states,
)
from trigger.claim import Nothing, Stale, Won, claim_due, claim_one, due_jobs
from trigger.claim_outcome import Paused
from trigger.pauses import pause, resume, retire, unretire
from trigger.register import JobRetired, register

NAME = "nightly"


async def acts(session: Session) -> list[tuple[str, str | None, str | None]]:
    rows = await session.fetch(
        """select kind, actor, reason from matins.audit
            where kind in ('pause', 'resume', 'retire', 'unretire') order by id"""
    )
    return [(row["kind"], row["actor"], row["reason"]) for row in rows]


async def tick(session: Session, job: Job, now: datetime) -> Any:
    """Plan and claim as a trigger does, if there is something to do."""
    revision = await planned(session, job, now)
    if job.name not in await due_jobs(session, [job.name], "one", now=now):
        return None
    return await claim_due(session, job, revision, claimant(), now=now)


class TestAPauseThatSkips:
    async def test_has_what_falls_due_skipped_and_fires_again_from_the_next_instant_on(self, session: Session) -> None:
        job = job_at()
        await planned(session, job, DUE - DAY)
        changed = await pause(session, NAME, ORDER, now=DUE - HOUR)
        assert (changed.standing.paused_at, changed.standing.paused_by) == (DUE - HOUR, "ann")
        assert await tick(session, job, DUE) == Nothing()
        await resume(session, NAME, OTHER, now=DUE + HOUR)
        assert await tick(session, job, DUE + HOUR) in {None, Nothing()}
        won = await tick(session, job, DUE + DAY)
        assert isinstance(won, Won)
        found = await states(session)
        assert (found["25 02:00"], found["26 02:00"]) == ("skipped: paused", "claimed")
        assert won.claim.window.since < DUE, "the next one that runs spans what was skipped"
        assert await acts(session) == [
            ("pause", "ann", "the tax service is back"),
            ("resume", "bob", "I was faster"),
        ]
        why = await session.fetchval("select detail ->> 'because_of' from matins.audit where kind = 'skipped'")
        assert why == "the tax service is back"

    async def test_says_in_the_audit_what_was_before_and_is_now(self, session: Session) -> None:
        await planned(session, job_at(), DUE - DAY)
        await pause(session, NAME, ORDER, "hold", now=DUE - HOUR)
        await resume(session, NAME, OTHER, now=DUE)
        rows = await session.fetch("select detail from matins.audit where kind in ('pause', 'resume') order by id")
        paused = {
            "paused_at": "2026-08-25T01:00:00+00:00",
            "paused_by": "ann",
            "pause_reason": "the tax service is back",
            "meanwhile": "hold",
        }
        assert rows[0]["detail"] == {"before": {"meanwhile": "skip"}, "after": paused}
        resumed = {"meanwhile": "hold", "resumed_at": "2026-08-25T02:00:00+00:00"}
        assert rows[1]["detail"] == {"before": paused, "after": resumed}

    async def test_a_resumed_job_never_fires_for_a_time_before_even_if_nobody_was_there_to_record_it(
        self, session: Session
    ) -> None:
        job = job_at("0 * * * *")
        await planned(session, job, DUE - 4 * DAY)
        await pause(session, NAME, ORDER, now=DUE - 3 * DAY)
        changed = await resume(session, NAME, ORDER, now=DUE + MINUTE)
        assert changed.skipped == 96, "each hour of four days, planned or not"
        assert await tick(session, job, DUE + 2 * MINUTE) in {None, Nothing()}
        found = await states(session)
        assert {state for instant, state in found.items() if instant <= "25 02:00"} == {"skipped: paused"}
        assert found["25 03:00"] == "expected"

    async def test_what_runs_goes_on_and_is_named(self, session: Session) -> None:
        claim = await claimed(session, job_at())
        changed = await pause(session, NAME, ORDER, now=DUE + MINUTE)
        assert changed.running == (str(claim.identity),)
        row = await session.fetchrow("select state, ending from matins.occurrence where id = $1", claim.id)
        assert row is not None
        assert tuple(row) == ("claimed", None)

    async def test_refuses_to_be_fired_by_hand_or_from_outside(self, session: Session) -> None:
        await planned(session, job_at(), DUE - DAY)
        await pause(session, NAME, ORDER, "hold", now=DUE - HOUR)
        outcome = await claim_one(session, Identity(NAME, DUE), claimant(), fired_by="cron", now=DUE)
        assert outcome == Paused(DUE - HOUR, "the tax service is back")
        assert (await states(session))["25 02:00"] == "expected"


class TestAPauseThatHolds:
    async def test_lets_what_falls_due_wait_until_the_catch_up_decides(self, session: Session) -> None:
        job = job_at("0 * * * *")
        revision = await planned(session, job, DUE - DAY)
        await pause(session, NAME, ORDER, "hold", now=DUE - DAY)
        assert await due_jobs(session, [NAME], "one", now=DUE) == set()
        assert await claim_due(session, job, revision, claimant(), now=DUE) == Nothing()
        assert set((await states(session)).values()) == {"expected"}
        await resume(session, NAME, ORDER, now=DUE)
        won = await tick(session, job, DUE)
        assert isinstance(won, Won)
        found = await states(session)
        assert (found["25 01:00"], found["25 02:00"]) == ("coalesced", "claimed")
        assert found["24 05:00"] == "missed", "as after a downtime: later than catch_up_within"

    async def test_can_be_told_to_skip_after_all(self, session: Session) -> None:
        job = job_at("0 * * * *")
        await planned(session, job, DUE - 2 * HOUR)
        await pause(session, NAME, ORDER, "hold", now=DUE - 2 * HOUR)
        changed = await pause(session, NAME, OTHER, "skip", now=DUE)
        assert changed.standing.paused_at == DUE - 2 * HOUR
        assert await tick(session, job, DUE) == Nothing()
        assert (await states(session))["25 01:00"] == "skipped: paused"


class TestARetirement:
    async def test_ends_everything_that_waits_and_deletes_nothing(self, session: Session) -> None:
        job = job_at("0 * * * *")
        revision = await planned(session, job, DUE - HOUR)
        before = await session.fetchval("select count(*) from matins.occurrence")
        changed = await retire(session, NAME, ORDER, now=DUE)
        assert changed.skipped == before
        assert set((await states(session)).values()) == {"skipped: retired"}
        assert await due_jobs(session, [NAME], "one", now=DUE + HOUR) == set()
        assert await claim_due(session, job, revision, claimant(), now=DUE + HOUR) == Stale(revision)
        assert await claim_one(session, Identity(NAME, DUE), claimant(), fired_by="cron", now=DUE) == Stale(None)
        with pytest.raises(JobRetired, match="by ann: the tax service is back"):
            await register(session, job, instance="one", now=DUE + HOUR)
        audited = await session.fetchval("select count(*) from matins.audit where kind = 'skipped' and actor = 'ann'")
        assert audited == before

    async def test_has_a_way_back_that_fires_nothing_of_the_time_between(self, session: Session) -> None:
        job = job_at("0 * * * *")
        await planned(session, job, DUE - HOUR)
        await retire(session, NAME, ORDER, now=DUE - HOUR / 2)
        changed = await unretire(session, NAME, OTHER, now=DUE + 3 * DAY + MINUTE)
        assert changed.skipped == 72 - 48, "those that the plan had not reached"
        assert changed.expected == 0
        assert await tick(session, job, DUE + 3 * DAY + 2 * MINUTE) in {None, Nothing()}
        won = await tick(session, job, DUE + 3 * DAY + HOUR)
        assert isinstance(won, Won)
        assert [kind for kind, _, _ in await acts(session)] == ["retire", "unretire"]

    async def test_taken_back_at_once_has_the_future_expected_again(self, session: Session) -> None:
        job = job_at("0 * * * *")
        await planned(session, job, DUE - HOUR)
        retired = await retire(session, NAME, ORDER, now=DUE - HOUR / 2)
        changed = await unretire(session, NAME, OTHER, now=DUE - HOUR / 3)
        assert (changed.expected, changed.skipped) == (retired.skipped, 0)
        assert isinstance(await tick(session, job, DUE), Won)


async def test_what_makes_no_sense_is_refused_and_changes_nothing(session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    with pytest.raises(Refused, match="did you mean nightly"):
        await pause(session, "nightli", ORDER)
    with pytest.raises(Refused, match="is not paused"):
        await resume(session, NAME, ORDER)
    with pytest.raises(Refused, match="is not retired"):
        await unretire(session, NAME, ORDER)
    await pause(session, NAME, ORDER, now=DUE)
    with pytest.raises(Refused, match="paused already: since 2026-08-25T02:00Z by ann: the tax service is back"):
        await pause(session, NAME, OTHER)
    await retire(session, NAME, ORDER, now=DUE)
    for act in (pause, resume, retire):
        with pytest.raises(Refused, match="retired"):
            await act(session, NAME, OTHER)
    assert [kind for kind, _, _ in await acts(session)] == ["pause", "retire"]


@pytest.mark.parametrize("act", [pause, retire])
async def test_of_an_order_and_many_triggers_at_once_nothing_is_claimed_behind_it(database: Database, act: Any) -> None:
    triggers = [f"trigger-{number}" for number in range(4)]
    for number in range(25):
        job = job_at(name=f"job-{number}", decisions=decisions(catch_up_within=HOUR))
        async with database.session() as session:
            await live(session, *(f"{name}-{number}" for name in triggers), job=job.name)
            revision = await planned(session, job, DUE - DAY)
        outcomes: list[Any] = []

        async def claim(
            name: str, job: Job = job, revision: int = revision, outcomes: list[Any] = outcomes, number: int = number
        ) -> None:
            async with database.session() as session:
                outcomes.append(await claim_due(session, job, revision, claimant(f"{name}-{number}"), now=DUE))

        async def order(job: Job = job) -> None:
            async with database.session() as session:
                await act(session, job.name, ORDER, now=DUE)

        async with anyio.create_task_group() as group:
            for place, name in enumerate(triggers):
                group.start_soon(claim, name)
                if place == number % 4:
                    group.start_soon(order)
        async with database.session() as session:
            kinds = [
                row["kind"]
                for row in await session.fetch("select kind from matins.audit where job = $1 order by id", job.name)
            ]
            state = (await states(session, job.name))["25 02:00"]
        wins = sum(isinstance(outcome, Won) for outcome in outcomes)
        assert wins == kinds.count("claim")
        ordered = kinds.index(act.__name__)
        assert "claim" not in kinds[ordered:], "whoever comes behind the order goes by it"
        assert state == ("claimed" if wins else f"skipped: {act.__name__.removesuffix('e')}ed"), kinds


async def test_of_many_who_resume_at_once_one_does_and_what_was_due_fires_for_nobody(database: Database) -> None:
    job = job_at()
    async with database.session() as session:
        revision = await planned(session, job, DUE - DAY)
        await pause(session, NAME, ORDER, now=DUE - HOUR)
    told: list[str] = []
    outcomes: list[Any] = []

    async def act() -> None:
        async with database.session() as session:
            try:
                await resume(session, NAME, ORDER, now=DUE + MINUTE)
            except Refused as refused:
                told.append(str(refused))

    async def claim() -> None:
        async with database.session() as session:
            outcomes.append(await claim_due(session, job, revision, claimant(), now=DUE + MINUTE))

    async with anyio.create_task_group() as group:
        for _ in range(4):
            group.start_soon(act)
            group.start_soon(claim)
    assert told == ["nightly is not paused"] * 3
    assert not any(isinstance(outcome, Won) for outcome in outcomes)
    async with database.session() as session:
        assert (await states(session))["25 02:00"] == "skipped: paused"
