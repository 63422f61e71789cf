import re
from dataclasses import replace
from datetime import timedelta
from typing import Any

import anyio
import pytest

from schemas.occurrence import parse_identity
from shared.calls import Window
from shared.close import close
from shared.postgres import Database, Session
from shared.terminal import Refused
from tests.integration.operate.night import ORDER, events
from tests.integration.trigger.support import DAY, DUE, HOUR, MINUTE, claimant, claimed, job_at, planned, states
from trigger.ad_hoc import fire_ad_hoc
from trigger.claim import Nothing, claim_due
from trigger.claim_outcome import OnHold, Overlapped, Stale, Won
from trigger.pauses import pause, retire

NAME = "nightly"
SECOND = timedelta(seconds=1)


async def ended(session: Session, occurrence_id: int) -> None:
    await session.execute(
        "update matins.occurrence set state = 'running', sealed_at = claimed_at where id = $1", occurrence_id
    )
    assert await close(session, occurrence_id, by="test") is not None


async def test_it_has_an_identity_of_its_own_and_is_claimed_at_once(session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    now = DUE + 8 * HOUR + 13 * MINUTE + 22 * SECOND
    first = await fire_ad_hoc(session, NAME, ORDER, now=now + SECOND / 3)
    assert isinstance(first, Won)
    written = str(first.claim.identity)
    assert re.fullmatch(r"nightly\+ad-hoc-[0-9a-f]{6}:2026-08-25T10:13:22Z", written)
    assert parse_identity(written) == first.claim.identity
    row: Any = await session.fetchrow("select * from matins.occurrence where id = $1", first.claim.id)
    assert (row["origin"], row["state"], row["fired_by"]) == ("ad_hoc", "claimed", "ann")
    assert await events(session, first.claim.id) == [("claim", "ann", "the tax service is back")]
    await ended(session, first.claim.id)
    second = await fire_ad_hoc(session, NAME, ORDER, now=now + SECOND / 3)
    assert isinstance(second, Won), "each call runs it once more, in the same second too"
    assert second.claim.identity != first.claim.identity


async def test_it_stands_in_for_no_scheduled_one_and_moves_no_window(session: Session) -> None:
    job = job_at()
    scheduled = await claimed(session, job)
    await ended(session, scheduled.id)
    fired = await fire_ad_hoc(session, NAME, ORDER, now=DUE + 8 * HOUR)
    assert isinstance(fired, Won)
    assert fired.claim.window == Window(DUE, DUE + 8 * HOUR), "by default since the last that was claimed"
    await ended(session, fired.claim.id)
    next_one = await claim_due(session, job, await planned(session, job, DUE + DAY), claimant(), now=DUE + DAY)
    assert isinstance(next_one, Won)
    assert next_one.claim.window == Window(DUE, DUE + DAY)
    assert (await states(session))["25 02:00"] == "succeeded"


async def test_its_window_can_be_told(session: Session) -> None:
    await planned(session, job_at(), DUE - DAY)
    fired = await fire_ad_hoc(session, NAME, ORDER, DUE - 9 * DAY, DUE - 8 * DAY, now=DUE)
    assert isinstance(fired, Won)
    assert fired.claim.window == Window(DUE - 9 * DAY, DUE - 8 * DAY)


async def test_a_window_that_is_not_over_or_ends_before_it_begins_is_refused_and_nothing_written(
    session: Session,
) -> None:
    await planned(session, job_at(), DUE - DAY)
    with pytest.raises(Refused, match="--since: 2026-08-25T01:00Z does not lie before --until, 2026-08-25T00:00Z"):
        await fire_ad_hoc(session, NAME, ORDER, DUE - HOUR, DUE - 2 * HOUR, now=DUE)
    with pytest.raises(Refused, match="--until: 2026-08-25T03:00Z is still to come"):
        await fire_ad_hoc(session, NAME, ORDER, until=DUE + HOUR, now=DUE)
    with pytest.raises(Refused, match="did you mean nightly"):
        await fire_ad_hoc(session, "nightli", ORDER)
    assert await session.fetchval("select count(*) from matins.occurrence where origin = 'ad_hoc'") == 0


async def test_while_another_runs_it_is_refused_and_a_scheduled_one_waits_for_its_end(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    fired = await fire_ad_hoc(session, NAME, ORDER, now=DUE - MINUTE)
    assert isinstance(fired, Won)
    in_the_way = Overlapped(str(fired.claim.identity))
    assert await fire_ad_hoc(session, NAME, ORDER, now=DUE - MINUTE) == in_the_way
    assert await claim_due(session, job, revision, claimant(), now=DUE) == replace(in_the_way, waits=True)
    assert (await states(session))["25 02:00"] == "expected", "it costs the night nothing but time"
    await ended(session, fired.claim.id)
    assert isinstance(await claim_due(session, job, revision, claimant(), now=DUE + MINUTE), Won)


async def test_a_pause_does_not_keep_it_but_a_retirement_and_a_hold_do(session: Session) -> None:
    job = job_at()
    revision = await planned(session, job, DUE - DAY)
    await pause(session, NAME, ORDER, now=DUE - HOUR)
    fired = await fire_ad_hoc(session, NAME, ORDER, now=DUE)
    assert isinstance(fired, Won)
    assert await claim_due(session, job, revision, claimant(), now=DUE) == Nothing()
    await ended(session, fired.claim.id)
    await session.execute(
        "insert into matins.environment (name, held_since, held_reason) values ('t', clock_timestamp(), 'restored')"
    )
    assert await fire_ad_hoc(session, NAME, ORDER, now=DUE + HOUR) == OnHold("restored")
    await retire(session, NAME, ORDER, now=DUE + HOUR)
    assert await fire_ad_hoc(session, NAME, ORDER, now=DUE + HOUR) == Stale(None)


async def test_of_many_at_once_beside_the_schedule_one_is_active(database: Database) -> None:
    job = job_at()
    async with database.session() as session:
        revision = await planned(session, job, DUE - DAY)
    outcomes: list[Any] = []

    async def fire() -> None:
        async with database.session() as session:
            outcomes.append(await fire_ad_hoc(session, NAME, ORDER, now=DUE))

    async def claim() -> None:
        async with database.session() as session:
            outcomes.append(await claim_due(session, job, revision, claimant(), now=DUE))

    async with anyio.create_task_group() as group:
        for _ in range(6):
            group.start_soon(fire)
            group.start_soon(claim)
    assert sum(isinstance(outcome, Won) for outcome in outcomes) == 1
    async with database.session() as session:
        assert (await states(session))["25 02:00"] in {"claimed", "expected"}
