"""Sweepers, and accounts that were published, for the tests of the sweep."""

from collections.abc import Awaitable, Callable
from datetime import timedelta

from shared.broker import QueueDepth
from shared.job import Job
from shared.postgres import Database, Session
from tests.integration.trigger.support import DUE, HOUR, LEASE, MINUTE, Broker, claimed, fanned_out, fill, job_at
from trigger.claim import Claim
from trigger.publish import Publishing, publish_pass
from trigger.sweep import Sweeping

NOW = DUE + HOUR
SECOND = timedelta(seconds=1)
FULL = QueueDepth(messages=5, consumers=1)
EMPTY = QueueDepth(messages=0, consumers=1)


def looks(depth: QueueDepth | None) -> Callable[[], Awaitable[QueueDepth | None]]:
    """Give a look into a queue that finds always the same."""

    async def look() -> QueueDepth | None:
        return depth

    return look


def sweeping(
    database: Database, job: Job, depth: QueueDepth | None = FULL, *, now: object = NOW, holder: str = "one"
) -> Sweeping:
    return Sweeping(database, job.name, job.queue, looks(depth), holder, LEASE, MINUTE, now=now)  # type: ignore[arg-type] # an instant


async def published(
    database: Database, session: Session, count: int, job: Job | None = None
) -> tuple[Job, Claim, Broker]:
    """Fan out some accounts and publish them at NOW."""
    await fill(session, count)
    job = job or job_at()
    claim = await claimed(session, job)
    await fanned_out(database, job, claim)
    broker = Broker()
    await publish(database, job, broker, NOW)
    return job, claim, broker


async def publish(database: Database, job: Job, broker: Broker, now: object) -> None:
    work = Publishing(database, job, broker.send, "test.work", "one", LEASE, 100_000, now=now)  # type: ignore[arg-type] # an instant
    while (await publish_pass(work)).more:
        pass


async def settle(session: Session, claim: Claim) -> None:
    """Settle every account that is pending."""
    await session.execute(
        """update matins.ledger set state = 'succeeded', finished_at = $2, epoch = epoch + 1, attempts = 1
            where occurrence_id = $1 and state = 'pending'""",
        claim.id,
        NOW,
    )


async def unpublished(session: Session, claim: Claim) -> list[str]:
    rows = await session.fetch(
        """select account from matins.ledger where occurrence_id = $1 and state = 'pending' and epoch > 0
              and published_at is null
            order by account""",
        claim.id,
    )
    return [row["account"] for row in rows]
