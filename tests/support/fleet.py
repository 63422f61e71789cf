"""A whole worker in the test's own event loop, on real servers, with jobs that the test declares."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import anyio

from schemas.message import MESSAGE_VERSION, WorkMessage, encode, kind_of
from shared import clock
from shared.broker import Publisher, declare_topology
from shared.fleet import Instance
from shared.health import Health
from shared.job import Job
from shared.load import Loaded
from shared.migrate import enter_environment
from shared.postgres import Session
from shared.settings import load_settings
from shared.start import Prepared, topology_of
from shared.stopping import Stopping
from tests.support.checker_history import record_history
from tests.support.ledger import session_on
from worker.occurrences import WorkOccurrence
from worker.service import Worker

LONGEST_WAIT_SECONDS = 60.0


def prepared_for(
    kind: str, jobs: Sequence[Job], database_url: str, broker_url: str, prefix: str, **settings: str
) -> Prepared:
    """Give what a process of `kind` starts with; `settings` are in the form of the environment, without the prefix."""
    sources = {
        "MATINS_ENVIRONMENT": "test",
        "MATINS_JOBS": "declared.by.test",
        "MATINS_DATABASE_URL": database_url,
        "MATINS_BROKER_URL": broker_url,
        "MATINS_PREFIX": prefix,
        "MATINS_GRACE_PERIOD": "5s",
    }
    loaded = load_settings(sources | {f"MATINS_{name.upper()}": value for name, value in settings.items()})
    by_name = {job.name: job for job in jobs}
    instance = Instance(uuid4().hex, kind, "test", "0", "", "test")
    return Prepared(loaded, Loaded(by_name, (), ()), instance, topology_of(loaded, by_name))


async def deploy(prepared: Prepared) -> None:
    """Do what migrate does at deploy time, and have every forbidden write recorded."""
    settings = prepared.settings
    async with session_on(settings.secret("database_url")) as session:
        await enter_environment(session, settings.environment, create=True)
        await session.execute("update matins.environment set topology = $1", prepared.topology.as_record())
        await record_history(session)
    await declare_topology(settings.secret("broker_url"), prepared.topology, timeout=20)


@asynccontextmanager
async def running_worker(prepared: Prepared) -> AsyncIterator[Worker]:
    """Have a worker at work meanwhile, and drain it at the end."""
    worker, stopping = Worker(prepared, Health()), Stopping()
    async with anyio.create_task_group() as group:
        group.start_soon(worker.start, group, stopping)
        try:

            async def consuming() -> object:
                return worker.consumer.ready

            await until(consuming)
            yield worker
        finally:
            stopping.request("the test is over")


async def until(condition: Callable[[], Awaitable[Any]]) -> Any:
    """Wait until a look at what only the servers or another process know gives something true, and give that.

    Raises TimeoutError with the condition's name when it has not for long.
    """
    with anyio.move_on_after(LONGEST_WAIT_SECONDS):
        while True:
            found = await condition()
            if found:
                return found
            await clock.sleep(0.02)
    message = f"not so within {LONGEST_WAIT_SECONDS:g} s: {getattr(condition, '__qualname__', condition)}"
    raise TimeoutError(message)


async def closed_state(session: Session, occurrence_id: int) -> str:
    """Wait for an occurrence to close, and give its state."""
    closed: str = await until(
        lambda: session.fetchval(
            "select state from matins.occurrence where id = $1 and closed_at is not null", occurrence_id
        )
    )
    return closed


@asynccontextmanager
async def running_publisher(prepared: Prepared) -> AsyncIterator[Publisher]:
    """Have a publisher of the test's own."""
    publisher = Publisher(lambda: prepared.settings.secret("broker_url"), name="test", heartbeat=20, timeout=10)
    async with anyio.create_task_group() as group:
        await group.start(lambda task_status: publisher.run(task_status=task_status))
        yield publisher
        await publisher.close()


async def send(
    publisher: Publisher,
    prepared: Prepared,
    job: Job,
    occurrence: WorkOccurrence,
    accounts: Sequence[str],
    *,
    generation: int = 1,
    isolated: bool = False,
) -> None:
    """Publish one message for accounts of an occurrence, as the trigger does."""
    message = WorkMessage(
        job=job.name,
        occurrence_id=occurrence.id,
        scheduled_at=occurrence.scheduled_at,
        accounts=tuple(accounts),
        generation=generation,
        isolated=isolated,
        published_at=datetime.now(UTC),
    )
    await send_body(publisher, prepared, job.queue, encode(message))


async def send_body(
    publisher: Publisher, prepared: Prepared, queue: str, body: bytes, headers: Mapping[str, str] | None = None
) -> None:
    """Publish any bytes to a work queue."""
    await publisher.publish(
        prepared.topology.work_exchange,
        prepared.topology.routing_key(queue),
        body,
        message_id=uuid4().hex,
        correlation_id="test",
        kind=kind_of(MESSAGE_VERSION),
        headers=headers or {},
    )
