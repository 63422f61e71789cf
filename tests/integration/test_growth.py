"""The watch of growing jobs: raised before the first overlap, over by itself, silent otherwise, cheap for thousands."""

import re
from datetime import datetime, timedelta

import pytest

from shared.postgres import Session
from shared.runs import RUNS_OF_JOBS
from shared.watch import Finding
from shared.watch_growth import FORECASTS_DUE, JOBS_AT_ONCE, LATEST, STANDING_FORECASTS, look
from tests.integration.operate.night import nightly
from tests.support.growth import DAY, known_job, run_nights
from tests.support.ledger import DECISIONS, DUE

HOUR = 3600.0
NOW = DUE + timedelta(hours=1)
DURATION, LAG = "duration_near_interval", "lag_growing"


def told(findings: list[Finding]) -> list[tuple[str, str]]:
    """Give kind and subject of each."""
    return [(one.kind, one.subject) for one in findings]


async def found(session: Session, now: datetime) -> list[Finding]:
    """Look once."""
    return list(await look(session, now))


async def test_fifty_growing_nights_raise_before_the_first_overlap_and_name_its_night(session: Session) -> None:
    await run_nights(session, nightly(), lambda night: 12 * HOUR + 760 * night)
    [finding] = await found(session, NOW)
    assert told([finding]) == [(DURATION, "invoice-run")]
    assert finding.job == "invoice-run"
    # The fiftieth night was at DUE, and the 58th takes more than 24 hours.
    assert finding.detail["meets_at"] == "2026-09-02T02:00Z"
    assert finding.told.endswith("at this growth the run meets the next one on 2 September 2026")


async def test_level_and_falling_nights_and_few_and_small_ones_raise_nothing(session: Session) -> None:
    await run_nights(session, nightly("level"), lambda night: 20 * HOUR + 60 * (night % 3))
    await run_nights(session, nightly("falling"), lambda night: 23 * HOUR - 600 * night)
    await run_nights(session, nightly("few"), lambda night: 18 * HOUR + 3600 * night, count=5)
    await run_nights(session, nightly("small"), lambda night: 60 + 5 * night)
    await run_nights(session, nightly("failed"), lambda night: 12 * HOUR + 760 * night, state="failed")
    await run_nights(session, nightly("quick"), lambda _: 60, lag=lambda night: 0.01 * night)
    await known_job(session, nightly("idle"))
    assert await found(session, NOW) == []


async def test_growing_lag_is_raised_by_itself(session: Session) -> None:
    await run_nights(session, nightly(), lambda _: 60, lag=lambda night: 2.0 + 3 * night)
    [finding] = await found(session, NOW)
    assert told([finding]) == [(LAG, "invoice-run")]
    assert finding.detail["trend"]["seconds_per_day"] == pytest.approx(3)
    assert "3.0s later each day" in finding.told


async def test_it_stands_until_it_is_judged_again_and_is_over_when_runs_are_short_again(session: Session) -> None:
    await run_nights(session, nightly(), lambda night: 12 * HOUR + 760 * night)
    assert len(await found(session, NOW)) == 1
    await session.execute("update matins.occurrence set closed_at = claimed_at + interval '1 minute'")
    assert len(await found(session, NOW + LATEST / 2)) == 1, "what was found stands"
    assert await found(session, NOW + LATEST) == []


@pytest.mark.parametrize("column", ["paused_at", "retired_at"])
async def test_one_that_is_paused_or_retired_raises_nothing(session: Session, column: str) -> None:
    await run_nights(session, nightly(), lambda night: 12 * HOUR + 760 * night)
    assert len(await found(session, NOW)) == 1
    await session.execute(f"update matins.job set {column} = $1", NOW)
    assert await found(session, NOW + DAY) == []


async def test_runs_that_overlap_already_are_told_unless_that_is_what_the_job_allows(session: Session) -> None:
    await run_nights(session, nightly("skips"), lambda _: 25 * HOUR, count=6)
    allowed = DECISIONS.__class__(
        catch_up="latest",
        catch_up_within=DECISIONS.catch_up_within,
        overlap="allow",
        start_within=DECISIONS.start_within,
        finish_within=DECISIONS.finish_within,
    )
    await run_nights(session, nightly("allows", decisions=allowed), lambda _: 25 * HOUR, count=6)
    findings = await found(session, NOW)
    assert told(findings) == [(DURATION, "skips")]
    assert findings[0].detail["overlaps"]


async def test_a_definition_that_cannot_be_read_leaves_the_others_their_judgement(session: Session) -> None:
    await run_nights(session, nightly("unreadable"), lambda night: 12 * HOUR + 760 * night)
    await session.execute("""update matins.job set definition = '{"schedule": {"kind": "moon"}}'""")
    await run_nights(session, nightly(), lambda night: 12 * HOUR + 760 * night)
    assert told(await found(session, NOW)) == [(DURATION, "invoice-run")]


async def test_ten_thousand_jobs_are_judged_in_turn_a_bounded_number_in_a_pass(session: Session) -> None:
    await known_job(session, nightly("j"))
    await session.execute(
        """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
           select 'j' || one, 1, definition, fingerprint, known_since, planned_through
             from matins.job, generate_series(1, 9999) as one"""
    )
    await session.execute("analyze matins.job")
    for passes in (1, 2, 3):
        assert await found(session, NOW) == []
        assert await session.fetchval("select count(*) from matins.forecast") == passes * JOBS_AT_ONCE
    await session.execute(
        """insert into matins.forecast (job, judged_at, judge_at)
           select name, $1::timestamptz, $1::timestamptz + make_interval(secs => row_number() over ())
             from matins.job
           on conflict do nothing""",
        NOW,
    )
    await session.execute("analyze matins.forecast")
    plan = await explained(session, FORECASTS_DUE, JOBS_AT_ONCE, NOW)
    assert "forecast_judge_at" in plan, plan
    assert "forecast_standing" in await explained(session, STANDING_FORECASTS)


async def test_the_runs_of_a_job_are_read_by_their_index_however_long_its_history_is(session: Session) -> None:
    for name in ("one", "two", "three"):
        await run_nights(session, nightly(name), lambda _: 60.0, count=3000)
    await session.execute("analyze matins.occurrence")
    plan = await explained(session, RUNS_OF_JOBS, ["one", "two"], 60, NOW)
    assert re.search(r"Index Scan( Backward)? using occurrence_", plan), plan
    assert "Seq Scan on occurrence" not in plan, plan
    assert "Bitmap Heap Scan" not in plan, "it would read the whole history of a job: " + plan


async def explained(session: Session, query: str, *arguments: object) -> str:
    """Give a statement's plan."""
    rows = await session.fetch(f"explain (costs off) {query}", *arguments)
    return "\n".join(row[0] for row in rows)
