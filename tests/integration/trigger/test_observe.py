"""What alert rules read of a fleet: as the database has it, told by one trigger at a time, and never stale."""

from collections.abc import AsyncIterator, Iterator
from datetime import timedelta

import pytest

from schemas.alert import KINDS
from shared import clock, telemetry
from shared.postgres import Database, Session
from tests.integration.operate.night import closed_night, nightly
from tests.support.growth import DAY, known_job, run_nights
from tests.support.ledger import DUE, database_on, running_occurrence, session_on
from tests.support.otlp import Collector
from trigger.observe import OBSERVED_JOBS, OBSERVED_RUNS, STANDS, Observer

NOW = DUE + timedelta(hours=1)


@pytest.fixture
def collector() -> Iterator[Collector]:
    """A collector to which this process sends."""
    with Collector() as listening:
        telemetry.configure(
            "matins-trigger",
            instance="one",
            version="1",
            environment="test",
            success_sampling=0.0,
            otel=listening.variables,
        )
        yield listening
        telemetry.shutdown(0.5)


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool on a database with two jobs: one whose nights succeed, and one that never ran; a third is retired."""
    async with database_on(database_url) as opened:
        async with opened.session() as session:
            await run_nights(session, nightly("charge"), lambda _: 60.0, count=3, lag=lambda _: 0.0)
            await run_nights(session, nightly("old"), lambda _: 60.0, count=3)
            await session.execute("update matins.job set retired_at = $1, retired_by = 'ann' where name = 'old'", DUE)
            await known_job(session, nightly("idle"))
            await expect(session, "charge", 1)
            await expect(session, "idle", 0)
        yield opened


async def expect(session: Session, job: str, nights: int) -> None:
    """Plan a night of a job."""
    await session.execute(
        """insert into matins.occurrence (job, scheduled_at, revision, window_since, window_until, tzdata_version)
           values ($1, $2, 1, $2, $2, 'test')""",
        job,
        DUE + nights * DAY,
    )


def told(collector: Collector) -> dict[tuple[str, ...], float]:
    """Give what is told now, by name and labels."""
    collector.points.clear()
    telemetry.flush()
    return {
        (point.name, *(str(value) for value in point.attributes.values())): point.value for point in collector.points
    }


def of_runs(found: dict[tuple[str, ...], float]) -> dict[tuple[str, ...], float]:
    """Give what is told of intervals and last runs."""
    begins = ("matins.job.interval", "matins.job.last_run.")
    return {
        (name[0].removeprefix("matins.job."), *name[1:]): value
        for name, value in found.items()
        if name[0].startswith(begins)
    }


async def test_what_the_database_has_is_told(database: Database, collector: Collector) -> None:
    async with database.session() as session:
        await session.execute(
            """insert into matins.alert (kind, subject, told, opened_by)
               values ('failed', 'a', 'x', 'one'), ('failed', 'b', 'x', 'one')"""
        )
    assert await Observer(database, "one").observe_pass(NOW)
    found = told(collector)
    assert found.pop(("matins.observed.timestamp",)) == NOW.timestamp()
    assert found.pop(("matins.oldest_unstarted.age",)) == 3600
    alerts = {name[1]: value for name, value in found.items() if name[0] == "matins.alerts.open"}
    assert alerts == dict.fromkeys(KINDS, 0) | {"failed": 2}
    others = ("matins.alerts.open", "matins.job.interval", "matins.job.last_run.")
    assert {name: value for name, value in found.items() if not name[0].startswith(others)} == {
        ("matins.job.last_success.timestamp", "charge"): DUE.timestamp() + 60,
        ("matins.job.next_due.timestamp", "charge"): (DUE + DAY).timestamp(),
        ("matins.job.next_due.timestamp", "idle"): DUE.timestamp(),
    }


async def test_the_last_run_is_told_beside_the_interval_that_it_has(database: Database, collector: Collector) -> None:
    async with database.session() as session:
        await session.execute(
            """insert into matins.attempt (job, scheduled_at, instance, won)
               values ('charge', $1, 'one', true), ('charge', $1, 'two', false), ('charge', $2, 'three', true)""",
            DUE,
            DUE - DAY,
        )
    assert await Observer(database, "one").observe_pass(NOW)
    assert of_runs(told(collector)) == {
        ("interval", "charge"): DAY.total_seconds(),
        ("last_run.duration", "charge"): 60,
        ("last_run.lag", "charge"): 0,
        ("last_run.attempts", "charge"): 2,
        ("last_run.wins", "charge"): 1,
        ("last_run.accounts", "charge", "succeeded"): 10,
    }


async def test_a_run_tells_its_accounts_by_outcome_and_what_it_took_only_if_it_went_through(
    database_url: str, collector: Collector
) -> None:
    async with database_on(database_url) as database:
        async with database.session() as session:
            await run_nights(session, nightly("night"), lambda _: 60.0, count=2, lag=lambda night: 5.0 * night)
            await closed_night(session, nightly("night"), scheduled_at=DUE + DAY)
            await closed_night(session, nightly("bad"), {"a": ("failed", "NoTax"), "b": ("dead", "killed_worker")})
            await running_occurrence(session, nightly("bad"), ["a"], scheduled_at=DUE + DAY)
        assert await Observer(database, "one").observe_pass(NOW + DAY)
        found = of_runs(told(collector))
    assert found.pop(("last_run.duration", "night")) > 0
    assert found == {
        ("last_run.lag", "night"): 0,
        ("last_run.accounts", "night", "succeeded"): 1,
        ("last_run.accounts", "night", "failed"): 2,
        ("last_run.accounts", "night", "dead"): 1,
        ("last_run.accounts", "night", "cancelled"): 1,
        ("last_run.lag", "bad"): 0,
        ("last_run.accounts", "bad", "succeeded"): 0,
        ("last_run.accounts", "bad", "failed"): 1,
        ("last_run.accounts", "bad", "dead"): 1,
    }


async def test_the_interval_passes_over_what_the_calendar_leaves_out(database_url: str, collector: Collector) -> None:
    async with database_on(database_url) as database:
        async with database.session() as session:
            await run_nights(session, nightly("charge"), lambda _: 60.0, count=1)
            await expect(session, "charge", 1)
            await session.execute("update matins.occurrence set state = 'skipped', reason = 'calendar' where id = 2")
            await expect(session, "charge", 3)
        assert await Observer(database, "one").observe_pass(NOW)
        assert told(collector)[("matins.job.interval", "charge")] == (3 * DAY).total_seconds()


async def test_of_each_system_the_last_version_is_told(database_url: str, collector: Collector) -> None:
    async with database_on(database_url) as database:
        async with database.session() as session:
            await session.execute(
                """insert into matins.deploy (system, version, at, actor, reason)
                   values ('tax-service', '9.1', $1, 'ann', 'new rates'), ('tax-service', '9.0', $1, 'ann', 'x'),
                          ('matins-trigger', '1', $2, 'ann', 'x')""",
                DUE,
                NOW,
            )
        assert await Observer(database, "one").observe_pass(NOW)
        found = told(collector)
    assert {name: value for name, value in found.items() if name[0] == "matins.deploy.timestamp"} == {
        ("matins.deploy.timestamp", "tax-service", "9.0"): DUE.timestamp(),
        ("matins.deploy.timestamp", "matins-trigger", "1"): NOW.timestamp(),
    }


async def test_one_that_is_paused_is_not_due_and_what_is_claimed_no_longer_waits(
    database: Database, collector: Collector
) -> None:
    async with database.session() as session:
        await session.execute("update matins.job set paused_at = $1 where name = 'idle'", DUE)
    assert await Observer(database, "one").observe_pass(NOW)
    found = told(collector)
    assert found[("matins.oldest_unstarted.age",)] == 0
    assert ("matins.job.next_due.timestamp", "idle") not in found


async def test_one_trigger_tells_at_a_time_and_another_goes_on_when_it_falls_silent(
    database: Database, collector: Collector
) -> None:
    one, two = Observer(database, "one"), Observer(database, "two")
    assert await one.observe_pass(NOW)
    assert not await two.observe_pass(NOW + STANDS / 2)
    assert told(collector) == {}, "whose turn it is not tells nothing"
    assert await two.observe_pass(NOW + 2 * STANDS)
    assert told(collector)
    assert not await one.observe_pass(NOW + 2 * STANDS)


async def test_what_was_read_long_ago_is_not_told(
    database: Database, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await Observer(database, "one").observe_pass(NOW)
    later = clock.monotonic() + STANDS.total_seconds() + 1
    monkeypatch.setattr(clock, "monotonic", lambda: later)
    assert told(collector) == {}


async def test_without_a_collector_nothing_is_read(database: Database) -> None:
    assert not await Observer(database, "one").observe_pass(NOW)
    async with database.session() as session:
        assert await session.fetchval("select count(*) from matins.lease") == 0


async def test_thousands_of_jobs_with_their_history_are_read_by_their_indexes(database_url: str) -> None:
    async with session_on(database_url) as session:
        await known_job(session, nightly("j"))
        await session.execute(
            """insert into matins.job (name, revision, definition, fingerprint, known_since, planned_through)
               select 'j' || one, 1, definition, fingerprint, known_since, planned_through
                 from matins.job, generate_series(1, 300) as one"""
        )
        await session.execute(
            """insert into matins.occurrence (job, scheduled_at, state, reason, revision, window_since, window_until,
                   tzdata_version)
               select j.name, $1::timestamptz + make_interval(days => night),
                      case when night < 0 then 'missed' else 'expected' end, 'x', 1, $1, $1, 'test'
                 from matins.job j, generate_series(-60, 1) as night""",
            DUE,
        )
        await session.execute("analyze matins.occurrence, matins.job")
        plan = "\n".join(row[0] for row in await session.fetch(f"explain {OBSERVED_JOBS}", 10_001))
        runs = "\n".join(row[0] for row in await session.fetch(f"explain {OBSERVED_RUNS}", ["j", "j1"], DUE))
        assert "occurrence_succeeded" in plan
        assert "occurrence_expected_of_job" in plan
        assert "Seq Scan on occurrence" not in plan, plan
        assert runs.count("occurrence_recent") == 3, runs
        assert "Seq Scan" not in runs, runs
