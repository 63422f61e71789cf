"""What every worker runs for itself: its absence is judged against those that live; what makes no sense is refused."""

from datetime import datetime, timedelta

import pytest

from shared.fleet import Instance, register_instance
from shared.job import Cron, Decisions, EachWorker, EveryWorker, Job, hours, minutes, seconds
from shared.postgres import Session
from shared.settings import load_settings
from shared.terminal import Refused
from tests.integration.operate.night import ORDER
from tests.support.ledger import session_on
from trigger.operate import latest_due
from trigger.pauses import pause
from trigger.plan import plan_ahead
from trigger.register import register
from trigger.status import read_status

DAY = timedelta(days=1)
REFRESH = Job(
    "refresh",
    schedule=Cron("* * * * *"),
    accounts=EachWorker(),
    handler=EveryWorker("billing.prices:refresh"),
    decisions=Decisions(
        catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=seconds(30), finish_within=minutes(5)
    ),
    coordination="every",
)


async def absent(session: Session) -> list[str]:
    """Give what status says of the job."""
    status = await read_status(session, load_settings({}, need=frozenset()))
    return [one for one in status.problems if one.startswith("refresh:")]


async def ran(session: Session, worker: str, due: datetime) -> None:
    await session.execute(
        "select matins.open_own('refresh', $1, $2, '', 1, 'running', null, $1, '1 minute', '', '', null)", due, worker
    )


async def test_live_workers_that_have_not_run_it_are_named(database_url: str) -> None:
    async with session_on(database_url) as session:
        now: datetime = await session.fetchval("select clock_timestamp()")
        await register(session, REFRESH, instance="trigger", now=now - DAY)
        await plan_ahead(session, REFRESH, 1)
        assert await absent(session) == [], "a fleet without workers misses nothing"
        (job,) = (await read_status(session, load_settings({}, need=frozenset()))).jobs
        assert job["next_at"] == now.replace(second=0, microsecond=0) + minutes(1), "though no row is written ahead"
        for name in ("young", "ran", "unable", "stopped", "idle"):
            problem = "no trial" if name == "unable" else None
            await register_instance(session, Instance(name, "worker", "host", "0", "", ""), {"refresh": problem})
        await session.execute(
            "update matins.instance set started_at = started_at - interval '1 hour' where id <> 'young'"
        )
        await session.execute("update matins.instance set stopped_at = clock_timestamp() where id = 'stopped'")
        await ran(session, "ran", now.replace(second=0, microsecond=0))
        (told,) = await absent(session)
        assert told.endswith("was not run by 1 live workers: idle")
        await session.execute("update matins.job set paused_at = clock_timestamp()")
        assert await absent(session) == []


async def test_nobody_fires_it_and_nothing_of_it_is_held(database_url: str) -> None:
    async with session_on(database_url) as session:
        await register(session, REFRESH, instance="trigger")
        with pytest.raises(Refused, match="refresh is run by each worker for itself"):
            await latest_due(session, "refresh")
        with pytest.raises(Refused, match="nothing of it can wait; only skip"):
            await pause(session, "refresh", ORDER, "hold")
        assert (await pause(session, "refresh", ORDER)).standing.meanwhile == "skip"


async def test_what_no_live_worker_may_run_is_told(database_url: str) -> None:
    async with session_on(database_url) as session:
        await register(session, REFRESH, instance="trigger")
        worker = Instance("untried", "worker", "host", "0", "", "")
        await register_instance(session, worker, {"refresh": "no trial"})
        status = await read_status(session, load_settings({}, need=frozenset()))
        assert "refresh is run by none of 1 live workers: no trial" in status.problems
        able = Instance("tried", "worker", "host", "0", "", "")
        await register_instance(session, able, {"refresh": None})
        status = await read_status(session, load_settings({}, need=frozenset()))
        assert not [one for one in status.problems if one.startswith("refresh is run by none")]


async def test_a_job_that_cannot_be_read_leaves_the_screen_to_the_others(database_url: str) -> None:
    async with session_on(database_url) as session:
        await register(session, REFRESH, instance="trigger")
        await session.execute(
            """update matins.job set definition = jsonb_set(definition, '{schedule,zone}', '"Mars/Phobos"')"""
        )
        (job,) = (await read_status(session, load_settings({}, need=frozenset()))).jobs
        assert (job["job"], job["next_at"]) == ("refresh", None)
