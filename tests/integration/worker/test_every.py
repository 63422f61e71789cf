"""What every worker runs for itself: its own row when it is due, once for each instant, and nobody else's to finish."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import anyio
import pytest

from schemas.occurrence import Identity
from shared.fleet import Instance, stop_instance
from shared.job import Cron, Decisions, EachWorker, EveryWorker, Job, WorkerCall, hours, minutes
from shared.logs import FailureLog, logger
from shared.postgres import Database, Session
from shared.terminal import Refused
from tests.integration.operate.night import ORDER
from tests.integration.trigger.support import DAY, DUE, HOUR, LEASE, MINUTE, claimant, decisions, job_at, states
from tests.support.checker import assert_none, check, record_history
from tests.support.ledger import database_on, session_on
from trigger.ad_hoc import fire_ad_hoc
from trigger.claim import Won, claim_due, due_jobs
from trigger.operate import Choice, cancel, rerun
from trigger.pauses import pause, resume
from trigger.plan import plan_ahead
from trigger.register import register
from trigger.sweep import Sweeping, sweep_pass
from worker.closing import Closing
from worker.every import Own
from worker.evidence import mark_of, record_trial
from worker.invoke import Invocation
from worker.tell import Teller
from worker.transaction import Runner

SECOND = timedelta(seconds=1)
SKIPPING = Decisions(
    catch_up="skip", catch_up_within=hours(1), overlap="skip", start_within=minutes(1), finish_within=minutes(5)
)
TABLE = "create table effect (account text, occurrence text, primary key (account, occurrence))"
NOTE = "insert into effect values ($1, $2) on conflict do nothing"


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool, as a worker has one."""
    async with database_on(database_url, size=6) as opened:
        yield opened


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A look at the database, in which every forbidden write is recorded."""
    async with session_on(database_url) as opened:
        await opened.execute(TABLE)
        await record_history(opened)
        yield opened


async def note(call: WorkerCall) -> None:
    await call.connection.execute(NOTE, call.worker, str(call.occurrence))


async def fail(call: WorkerCall) -> None:
    await note(call)
    problem = "no room"
    raise OSError(problem)


async def lose(call: WorkerCall) -> None:
    await call.connection.execute("select pg_terminate_backend(pg_backend_pid())")


def refreshing(handler: Any = note, cron: str = "* * * * *", **more: Any) -> Job:
    """Declare a job that every worker runs for itself."""
    usual: dict[str, Any] = {"decisions": SKIPPING, "coordination": "every"}
    return Job("refresh", schedule=Cron(cron), accounts=EachWorker(), handler=EveryWorker(handler), **(usual | more))


@dataclass(slots=True)
class Fleet:
    """Workers that run a job for themselves, by their names."""

    database: Database
    session: Session
    job: Job
    handler: Callable[..., Any] = note
    closing: list[Closing] = field(default_factory=list)

    async def deploy(self, now: datetime = DUE, *, tried: bool = True) -> None:
        """Register and plan as a trigger does, and record the evidence."""
        await register(self.session, self.job, instance="trigger", now=now)
        await plan_ahead(self.session, self.job, 1, now=now)
        if tried:
            await record_trial(self.session, self.job, self.handler, "ann")

    async def start(self, name: str, at: datetime = DUE) -> Own:
        """Have a worker that started at an instant."""
        await self.session.execute(
            """insert into matins.instance (id, kind, host, version, message_version, tzdata_version, started_at, jobs)
               values ($1, 'worker', 'test', '0', 1, 'test', $2, '{"refresh": null}')""",
            name,
            at,
        )
        instance = Instance(name, "worker", "test", "0", "north", "test")
        runner = Runner(self.job, Invocation(self.handler, timedelta(seconds=20), anyio.CapacityLimiter(1)), name)
        self.closing.append(Closing(self.database, name))
        teller = Teller("refresh", FailureLog(logger("test")))
        mark = mark_of(self.handler)
        return Own(self.job, mark, runner, instance, self.database, self.closing[-1], teller, started_at=at)

    async def closed(self) -> None:
        """Let the workers close what they have settled."""
        for one in self.closing:
            await one.close_pass()

    async def rows(self) -> list[tuple[str, str, str, str | None]]:
        """Give minute, worker, state and reason of every occurrence."""
        found = await self.session.fetch(
            "select scheduled_at, variant, state, reason from matins.occurrence order by scheduled_at, variant"
        )
        return [(f"{row['scheduled_at']:%H:%M}", row["variant"], row["state"], row["reason"]) for row in found]

    async def sweep(self, now: datetime | None = None) -> None:
        """Sweep as a trigger does."""

        async def unseen() -> None:
            return None

        await sweep_pass(Sweeping(self.database, "refresh", None, unseen, "sweeper", LEASE, MINUTE, now=now))


async def test_each_worker_runs_its_own_when_it_is_due_and_not_before(database: Database, session: Session) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy()
    one, two = await fleet.start("one"), await fleet.start("two")
    for worker in (one, two):
        await worker.own_pass(now=DUE + 59 * SECOND)
    assert await fleet.rows() == [], "nothing is written ahead"
    for _ in range(3):
        for worker in (one, two):
            await worker.own_pass(now=DUE + MINUTE)
    await fleet.closed()
    assert await fleet.rows() == [("02:01", "@one", "succeeded", None), ("02:01", "@two", "succeeded", None)]
    effects = await session.fetch("select account, occurrence from effect order by account")
    assert [tuple(row) for row in effects] == [
        ("one", "refresh@one:2026-08-25T02:01Z"),
        ("two", "refresh@two:2026-08-25T02:01Z"),
    ]
    assert await session.fetchval("select count(*) from matins.attempt where won and region = 'north'") == 2
    assert_none(await check(session, due_before=DUE + MINUTE))


async def test_what_was_due_before_a_workers_start_is_none_of_its(database: Database, session: Session) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy()
    late = await fleet.start("late", DUE + 61 * SECOND)
    await late.own_pass(now=DUE + 62 * SECOND)
    assert await fleet.rows() == []
    await late.own_pass(now=DUE + 2 * MINUTE)
    await fleet.closed()
    assert await fleet.rows() == [("02:02", "@late", "succeeded", None)]


async def test_instants_that_passed_meanwhile_are_in_the_window_of_the_next(
    database: Database, session: Session
) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy()
    worker = await fleet.start("one")
    for minute in (1, 5):
        await worker.own_pass(now=DUE + minute * MINUTE)
    await fleet.closed()
    windows = await session.fetch("select window_since, window_until from matins.occurrence order by 2")
    assert [tuple(row) for row in windows] == [(DUE, DUE + MINUTE), (DUE + MINUTE, DUE + 5 * MINUTE)]


async def test_what_cannot_begin_in_time_and_what_is_paused_is_recorded_with_its_reason(
    database: Database, session: Session
) -> None:
    fleet = Fleet(database, session, refreshing(cron="*/10 * * * *"))
    await fleet.deploy()
    worker = await fleet.start("one", DUE)
    await worker.own_pass(now=DUE + 11 * MINUTE + SECOND)
    await session.execute("update matins.job set paused_at = $1", DUE)
    await worker.own_pass(now=DUE + 20 * MINUTE)
    assert await fleet.rows() == [
        ("02:10", "@one", "missed", "not begun within start_within"),
        ("02:20", "@one", "skipped", "paused"),
    ]
    assert_none(await check(session, due_before=DUE))


@pytest.mark.parametrize(
    "hindrance",
    [
        "update matins.job set retired_at = clock_timestamp()",
        "update matins.environment set held_since = clock_timestamp(), held_reason = 'restored'",
    ],
)
async def test_nothing_begins_of_a_retired_job_or_while_everything_is_held(
    database: Database, session: Session, hindrance: str
) -> None:
    fleet = Fleet(database, session, refreshing())
    await session.execute("insert into matins.environment (name) values ('test') on conflict do nothing")
    await fleet.deploy()
    worker = await fleet.start("one")
    await session.execute(hindrance)
    await worker.own_pass(now=DUE + MINUTE)
    assert (await fleet.rows(), worker.problem) == ([], None)


async def test_code_without_evidence_is_not_run_and_other_codes_evidence_is_none(
    database: Database, session: Session
) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy(tried=False)
    worker = await fleet.start("one")
    await record_trial(session, fleet.job, fail, "ann")
    await worker.own_pass(now=DUE + MINUTE)
    assert await fleet.rows() == []
    assert "run `python -m worker try refresh --twice`" in (worker.problem or "")
    await record_trial(session, fleet.job, note, "ann")
    await worker.own_pass(now=DUE + MINUTE)
    assert worker.problem is None
    assert [row[2] for row in await fleet.rows()] == ["running"]


async def test_a_definition_that_no_trigger_has_registered_is_not_run(database: Database, session: Session) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy()
    fleet.job = refreshing(cron="*/2 * * * *")
    worker = await fleet.start("new")
    await worker.own_pass(now=DUE + 2 * MINUTE)
    assert await fleet.rows() == []
    assert worker.problem == "no trigger has registered this definition of it yet"


async def test_old_and_new_code_each_run_their_own_schedule(database: Database, session: Session) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy()
    old = await fleet.start("old")
    fleet.job = refreshing(cron="*/2 * * * *")
    await register(session, fleet.job, instance="trigger", now=DUE)
    new = await fleet.start("new")
    for worker in (old, new):
        for minute in (1, 2):
            await worker.own_pass(now=DUE + minute * MINUTE)
    revisions = await session.fetch("select variant, revision from matins.occurrence order by variant, scheduled_at")
    assert [tuple(row) for row in revisions] == [("@new", 2), ("@old", 1), ("@old", 1)]


async def test_a_failure_is_tried_once_and_the_next_instant_is_the_next_try(
    database: Database, session: Session
) -> None:
    fleet = Fleet(database, session, refreshing(fail), fail)
    await fleet.deploy()
    worker = await fleet.start("one")
    for minute in (1, 2):
        await worker.own_pass(now=DUE + minute * MINUTE)
    await fleet.closed()
    assert [(row[0], row[2]) for row in await fleet.rows()] == [("02:01", "failed"), ("02:02", "failed")]
    row = await session.fetchrow("select attempts, error_class, error from matins.ledger limit 1")
    assert row is not None
    assert tuple(row) == (1, "OSError", "no room")
    assert_none(await check(session, due_before=DUE + 2 * MINUTE))


async def test_code_that_ends_its_own_session_has_failed(database: Database, session: Session) -> None:
    fleet = Fleet(database, session, refreshing(lose), lose)
    await fleet.deploy()
    worker = await fleet.start("one")
    await worker.own_pass(now=DUE + MINUTE)
    await fleet.closed()
    assert [row[2] for row in await fleet.rows()] == ["failed"]
    assert worker.under_way is None


class Held:
    """A handler that waits in its transaction until it is let go."""

    def __init__(self) -> None:
        self.reached, self.goes_on = anyio.Event(), anyio.Event()

    async def __call__(self, call: WorkerCall) -> None:
        """Write, and wait."""
        await note(call)
        self.reached.set()
        await self.goes_on.wait()


async def test_what_a_dead_worker_leaves_ends_as_failed_and_is_nobody_elses(
    database: Database, session: Session
) -> None:
    held = Held()
    fleet = Fleet(database, session, refreshing(held), held)
    await fleet.deploy()
    dying, other = await fleet.start("dying"), await fleet.start("other")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: dying.own_pass(now=DUE + MINUTE))
        await held.reached.wait()
        await session.execute("update matins.instance set seen_at = clock_timestamp() - interval '2 minutes'")
        await fleet.sweep()
        assert [row[2] for row in await fleet.rows()] == ["running"], "it still holds its row"
        group.cancel_scope.cancel()
    await session.execute("update matins.instance set seen_at = clock_timestamp()")
    await fleet.sweep()
    assert [row[2] for row in await fleet.rows()] == ["running"], "its worker lives"
    await stop_instance(session, "dying")
    await fleet.sweep()
    assert await fleet.rows() == [("02:01", "@dying", "failed", "accounts failed")]
    row = await session.fetchrow("select error_class, error, epoch from matins.ledger")
    assert row is not None
    assert tuple(row) == ("worker_lost", "its worker ended, or fell silent, before it was done", 1)
    held.goes_on.set()
    await dying.own_pass(now=DUE + MINUTE)
    assert await session.fetchval("select count(*) from effect") == 0, "held for dead, it changes nothing any more"
    assert dying.under_way is None
    await other.own_pass(now=DUE + 90 * SECOND)
    assert await session.fetchval("select count(*) from effect where account = 'other'") == 1


async def test_an_operator_cancels_it_and_cannot_run_it_again(database: Database, session: Session) -> None:
    held = Held()
    fleet = Fleet(database, session, refreshing(held), held)
    await fleet.deploy()
    worker = await fleet.start("one")
    identity = Identity("refresh", DUE + MINUTE, "@one")
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: worker.own_pass(now=DUE + MINUTE))
        await held.reached.wait()
        group.cancel_scope.cancel()
    await cancel(session, identity, ORDER)
    await fleet.sweep()
    assert [row[2] for row in await fleet.rows()] == ["cancelled"]
    await worker.own_pass(now=DUE + MINUTE)
    assert worker.under_way is None
    with pytest.raises(Refused, match="is a worker's own"):
        await rerun(session, identity, Choice(), ORDER)


async def test_a_pause_plans_nothing_of_it_and_it_is_never_fired_beside_itself(
    database: Database, session: Session
) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy()
    worker = await fleet.start("one")
    await pause(session, "refresh", ORDER, now=DUE)
    await worker.own_pass(now=DUE + MINUTE)
    await resume(session, "refresh", ORDER, now=DUE + 3 * DAY)
    assert await fleet.rows() == [("02:01", "@one", "skipped", "paused")]
    with pytest.raises(Refused, match="run by each worker for itself"):
        await fire_ad_hoc(session, "refresh", ORDER)


async def test_triggers_claim_and_plan_nothing_of_it(database: Database, session: Session) -> None:
    fleet = Fleet(database, session, refreshing())
    await fleet.deploy()
    assert await due_jobs(session, ["refresh"], "trigger", now=DUE + MINUTE) == set()
    assert await fleet.rows() == []
    assert await session.fetchval("select planned_through >= $1 from matins.job", DUE + 2 * DAY)


async def test_from_a_claim_to_every_worker_and_back(database: Database, session: Session) -> None:
    claimed = job_at("* * * * *", name="refresh", decisions=decisions(catch_up_within=HOUR))
    fleet = Fleet(database, session, refreshing())
    await register(session, claimed, instance="trigger", now=DUE)
    await plan_ahead(session, claimed, 1, now=DUE)
    assert isinstance(await claim_due(session, claimed, 1, claimant(), now=DUE + MINUTE), Won)
    await fleet.deploy(DUE + 2 * MINUTE + SECOND)
    found = await states(session, "refresh")
    assert found.pop("25 02:01") == "claimed"
    assert set(found.values()) == {"skipped: superseded"}, "what waited is nobody's any more, and said to be so"
    worker = await fleet.start("one", DUE + 2 * MINUTE)
    await worker.own_pass(now=DUE + 3 * MINUTE)
    await fleet.closed()
    await register(session, claimed, instance="trigger", now=DUE + 3 * MINUTE + SECOND)
    await session.execute(
        """update matins.occurrence set state = 'succeeded', closed_at = claimed_at, report = '{}',
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where state = 'claimed'"""
    )
    outcome = await claim_due(session, claimed, 3, claimant(), now=DUE + 4 * MINUTE)
    assert isinstance(outcome, Won)
    assert outcome.claim.identity.scheduled_at == DUE + 4 * MINUTE
    assert await session.fetchval("select count(*) from matins.occurrence where variant = '@one'") == 1
