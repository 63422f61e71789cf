"""Whole triggers in the test's event loop, on a real PostgreSQL and a real RabbitMQ."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import anyio

from schemas.message import WorkMessage, decode
from shared.accounts import AccountAt, GeneratedAccounts, SourceCall
from shared.broker import Consumer, Delivery
from shared.health import Health
from shared.job import Job
from shared.load import Loaded
from shared.migrate import enter_environment
from shared.postgres import Session
from shared.start import Prepared
from shared.stopping import Stopping
from shared.terminal import REFUSED
from shared.version import VERSION
from tests.integration.operate.night import ORDER
from tests.integration.trigger.support import fill, job_at
from tests.support.fleet import deploy, prepared_for, until
from trigger.pauses import retire, unretire
from trigger.register import register
from trigger.service import Trigger, serve

FAST = {"tick_interval": "50ms", "sweep_interval": "100ms", "claim_lease": "2s", "grace_period": "3s"}


@asynccontextmanager
async def running(*every: Prepared) -> AsyncIterator[list[Trigger]]:
    """Have triggers at work meanwhile, and drain them at the end."""
    triggers = [Trigger(prepared, Health()) for prepared in every]
    stopping = Stopping()
    async with anyio.create_task_group() as group:
        for trigger in triggers:
            group.start_soon(trigger.start, group, stopping)
        try:
            yield triggers
        finally:
            stopping.request("the test is over")


async def due_now(session: Session, job: Job, ago: timedelta = timedelta(seconds=1)) -> datetime:
    """Make the job known since a day, and an instant due just now."""
    now: datetime = await session.fetchval("select clock_timestamp()")
    await register(session, job, instance="deploy", now=now - timedelta(days=1))
    await session.execute("update matins.job set planned_through = clock_timestamp()")
    instant = (now - ago).replace(microsecond=0)
    await session.execute("select matins.ensure_ledger_partition($1)", instant)
    await session.execute(
        """insert into matins.occurrence (job, scheduled_at, revision, window_since, window_until, tzdata_version)
           values ($1, $2, 1, $2, $2, 'test')""",
        job.name,
        instant,
    )
    return instant


class Worker:
    """Takes messages and settles their accounts at once, as a worker does."""

    def __init__(self, session: Session) -> None:
        self.messages: list[WorkMessage] = []
        self._session = session
        self._waiting: asyncio.Queue[Delivery] = asyncio.Queue()

    def deliver(self, delivery: Delivery) -> None:
        """Take one message."""
        self._waiting.put_nowait(delivery)

    async def run(self) -> None:
        """Settle what comes."""
        while True:
            delivery = await self._waiting.get()
            message = decode(delivery.body)
            self.messages.append(message)
            await self._session.execute(
                """update matins.ledger set state = 'succeeded', finished_at = clock_timestamp(), epoch = epoch + 1
                    where occurrence_id = $1 and account = any($2) and state = 'pending'""",
                message.occurrence_id,
                list(message.accounts),
            )
            await delivery.ack()

    def accounts(self) -> list[str]:
        """Give every account that came, in the order of their names."""
        return sorted(account for message in self.messages for account in message.accounts)


@asynccontextmanager
async def working(prepared: Prepared, session: Session, jobs: Sequence[Job]) -> AsyncIterator[Worker]:
    """Have a worker of the test's own meanwhile."""
    worker = Worker(session)
    queues = {prepared.topology.work_queue(job.queue): 50 for job in jobs}
    url = prepared.settings.secret("broker_url")
    consumer = Consumer(lambda: url, queues, name="test", heartbeat=20, timeout=10)
    async with anyio.create_task_group() as group:
        await group.start(consumer.run, worker.deliver)
        group.start_soon(worker.run)
        yield worker
        await consumer.close()
        group.cancel_scope.cancel()


async def closed(session: Session, job: str, state: str) -> Any:
    """Wait until an occurrence of the job has ended in a state."""
    return await until(
        lambda: session.fetchrow(
            "select * from matins.occurrence where job = $1 and state = $2 and closed_at is not null", job, state
        )
    )


async def test_three_triggers_run_an_occurrence_once(
    database_url: str, broker_url: str, prefix: str, session: Session, other_session: Session
) -> None:
    await fill(session, 250)
    job = job_at()
    every = [prepared_for("trigger", [job], database_url, broker_url, prefix, **FAST) for _ in range(3)]
    await deploy(every[0])
    async with working(every[0], other_session, [job]) as worker, running(*every):
        await until(lambda: _registered(session, 3))
        await session.execute("update matins.instance set started_at = started_at - interval '1 minute'")
        await due_now(session, job)
        row = await closed(session, "nightly", "succeeded")
        assert (row["total"], row["succeeded"]) == (250, 250)
        assert worker.accounts() == [f"account-{number:05d}" for number in range(1, 251)]
        await until(lambda: session.fetchval("select count(*) = 3 from matins.attempt where job = 'nightly'"))
        assert await session.fetchval("select count(*) from matins.attempt where won") == 1
        marked = await session.fetch("select system, version from matins.deploy")
        assert [tuple(one) for one in marked] == [("matins-trigger", VERSION)], "once, of three that started at once"
    assert await session.fetchval("select count(*) from matins.lease") == 0
    assert await session.fetchval("select count(*) from matins.instance where stopped_at is null") == 0


async def _registered(session: Session, count: int) -> bool:
    found = await session.fetchval("select count(*) from matins.instance where jobs <> '{}'")
    return bool(found == count)


async def test_a_slow_source_holds_back_no_other_job(
    database_url: str, broker_url: str, prefix: str, session: Session, other_session: Session
) -> None:
    await fill(session, 3)
    reading, goes_on = anyio.Event(), anyio.Event()

    async def slow(_call: SourceCall) -> AsyncIterator[AccountAt]:
        reading.set()
        await goes_on.wait()
        yield AccountAt("slow", "1")

    jobs = [job_at(name="slow", accounts=GeneratedAccounts(slow)), job_at(name="quick")]
    prepared = prepared_for("trigger", jobs, database_url, broker_url, prefix, **FAST)
    await deploy(prepared)
    async with working(prepared, other_session, jobs), running(prepared):
        await until(lambda: _registered(session, 1))
        await due_now(session, jobs[0])
        await reading.wait()
        await due_now(session, jobs[1])
        await closed(session, "quick", "succeeded")
        goes_on.set()
        assert (await closed(session, "slow", "succeeded"))["total"] == 1


async def test_what_a_dead_trigger_claimed_is_taken_over(
    database_url: str, broker_url: str, prefix: str, session: Session, other_session: Session
) -> None:
    await fill(session, 3)
    job = job_at()
    prepared = prepared_for("trigger", [job], database_url, broker_url, prefix, **FAST)
    await deploy(prepared)
    instant = await due_now(session, job)
    await session.execute(
        """update matins.occurrence
              set state = 'claimed', epoch = 1, claimed_by = 'dead', claimed_at = clock_timestamp(),
                  lease_until = clock_timestamp()
            where job = 'nightly' and scheduled_at = $1""",
        instant,
    )
    async with working(prepared, other_session, [job]), running(prepared):
        row = await closed(session, "nightly", "succeeded")
    assert (row["epoch"], row["claimed_by"]) == (2, prepared.instance.id)


async def test_a_trigger_that_drains_gives_its_claim_back_between_two_pages(
    database_url: str, broker_url: str, prefix: str, session: Session
) -> None:
    first, drained = anyio.Event(), anyio.Event()

    async def tenants(call: SourceCall) -> AsyncIterator[AccountAt]:
        for number in range(int(call.cursor or 0), 20):
            if number == 15 and call.cursor is None:
                first.set()
                await drained.wait()
            yield AccountAt(f"tenant-{number}", str(number + 1))

    job = job_at(accounts=GeneratedAccounts(tenants, page_size=10))
    every = [prepared_for("trigger", [job], database_url, broker_url, prefix, **FAST) for _ in range(2)]
    await deploy(every[0])
    await due_now(session, job)
    trigger, stopping = Trigger(every[0], Health()), Stopping()
    async with anyio.create_task_group() as group:
        group.start_soon(trigger.start, group, stopping)
        await first.wait()
        stopping.request("SIGTERM")
        drained.set()
    row = await session.fetchrow("select * from matins.occurrence where claimed_by is not null")
    assert row is not None
    assert (row["state"], row["accounts_read"]) == ("claimed", 20)
    assert row["lease_until"] <= await session.fetchval("select clock_timestamp()")
    async with running(every[1]):
        await until(lambda: session.fetchval("select sealed_at from matins.occurrence where sealed_at is not null"))
    assert await session.fetchval("select count(*) from matins.ledger") == 20


async def test_publishing_waits_for_the_workers_and_goes_on(
    database_url: str, broker_url: str, prefix: str, session: Session, other_session: Session
) -> None:
    await fill(session, 100)
    job = job_at()
    prepared = prepared_for("trigger", [job], database_url, broker_url, prefix, **FAST, in_flight="10")
    await deploy(prepared)
    async with running(prepared):
        await until(lambda: _registered(session, 1))
        await due_now(session, job)
        await until(lambda: session.fetchval("select sum(through_position) = 10 from matins.publication"))
        async with working(prepared, other_session, [job]) as worker:
            await closed(session, "nightly", "succeeded")
            assert len(worker.accounts()) == 100


async def test_another_environments_database_is_refused(
    database_url: str, broker_url: str, prefix: str, session: Session
) -> None:
    prepared = prepared_for("trigger", [job_at()], database_url, broker_url, prefix, **FAST)
    await enter_environment(session, "production", create=True)
    assert (await serve(prepared)).code == REFUSED
    assert await session.fetchval("select count(*) from matins.job") == 0


async def test_it_waits_unready_for_a_deploy_that_is_still_to_come(
    database_url: str, broker_url: str, prefix: str, session: Session
) -> None:
    job = job_at()
    prepared = prepared_for("trigger", [job], database_url, broker_url, prefix, **FAST)
    await enter_environment(session, "test", create=True)
    async with running(prepared) as [trigger]:
        await until(lambda: _truth(trigger.health.ready().get("start") == "waiting for the servers"))
        await deploy(prepared)
        await until(lambda: _registered(session, 1))
        await until(lambda: _truth(not any(trigger.health.ready().values())))


async def test_a_faulty_job_is_named_and_the_others_run(
    database_url: str, broker_url: str, prefix: str, session: Session
) -> None:
    await fill(session, 1)
    job = job_at()
    prepared = prepared_for("trigger", [job], database_url, broker_url, prefix, **FAST)
    prepared = replace(prepared, loaded=Loaded(prepared.loaded.jobs, (), ("broken",)))
    await deploy(prepared)
    async with running(prepared) as [trigger]:
        await until(lambda: _registered(session, 1))
        assert trigger.health.ready()["jobs"] == "cannot run: broken"
        await until(lambda: session.fetchval("select count(*) > 0 from matins.occurrence where state = 'expected'"))


async def test_a_retired_job_alarms_nobody_the_others_run_and_it_comes_back(
    database_url: str, broker_url: str, prefix: str, session: Session
) -> None:
    retired, other = job_at(name="retired"), job_at(name="other")
    await register(session, retired, instance="deploy")
    await retire(session, "retired", ORDER)
    prepared = prepared_for("trigger", [retired, other], database_url, broker_url, prefix, **FAST)
    await deploy(prepared)
    async with running(prepared) as [trigger]:
        await until(lambda: _registered(session, 1))
        await until(lambda: _truth(trigger.tick.retired == {"retired"}))
        assert trigger.health.ready()["jobs"] is None
        await unretire(session, "retired", ORDER)
        await until(lambda: _truth(trigger.tick.revisions.keys() == {"retired", "other"}))
        await until(lambda: _truth(not trigger.tick.retired))
        await retire(session, "retired", ORDER)
        await until(lambda: _truth(trigger.tick.retired == {"retired"}))
        assert trigger.health.ready()["jobs"] is None


async def _truth(value: object) -> object:
    return value
