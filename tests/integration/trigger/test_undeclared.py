"""Occurrences of jobs that are gone from the code still end."""

from dataclasses import replace

from shared.postgres import Database, Session
from tests.integration.trigger.support import (
    claimed,
    job_at,
)
from tests.integration.trigger.sweeps import (
    NOW,
    published,
    settle,
    sweeping,
)
from tests.integration.trigger.test_service import FAST, running
from tests.support.fleet import deploy, prepared_for, until
from tests.support.ledger import occurrence_row
from trigger.operate import Order, cancel
from trigger.sweep import Swept, sweep_pass, undeclared_jobs


async def test_those_with_something_active_are_named_with_their_queue(database: Database, session: Session) -> None:
    job, claim, _ = await published(database, session, 3)
    await claimed(session, job_at(name="other"))
    assert await undeclared_jobs(session, []) == [("nightly", job.queue), ("other", "other")]
    assert await undeclared_jobs(session, ["nightly"]) == [("other", "other")]
    await settle(session, claim)
    await sweep_pass(sweeping(database, job))
    assert await undeclared_jobs(session, ["other"]) == []


async def test_an_unsealed_one_is_left_until_it_is_cancelled(database: Database, session: Session) -> None:
    claim = await claimed(session, job_at())
    gone = replace(sweeping(database, job_at()), queue=None)
    assert await sweep_pass(gone) == Swept()
    await session.execute("update matins.occurrence set ending = 'cancel', ending_reason = 'ada'")
    assert await sweep_pass(gone) == Swept(closed=1)
    assert (await occurrence_row(session, claim.id))["state"] == "cancelled"


async def test_a_vanished_job_is_swept_and_closes_once_it_is_cancelled(
    database_url: str, broker_url: str, prefix: str, database: Database, session: Session
) -> None:
    _, claim, _ = await published(database, session, 3)
    await session.execute(
        """update matins.ledger set state = 'running', epoch = 1, lease_until = $1 where account = 'account-00001'""",
        NOW,
    )
    prepared = prepared_for("trigger", [job_at(name="other")], database_url, broker_url, prefix, **FAST)
    await deploy(prepared)
    async with running(prepared):
        await until(lambda: session.fetchval("select isolated from matins.ledger where account = 'account-00001'"))
        assert (await occurrence_row(session, claim.id))["state"] == "running"
        await cancel(session, claim.identity, Order("ann", "the job is gone", "test"))
        row = await until(
            lambda: session.fetchrow(
                "select * from matins.occurrence where closed_at is not null and id = $1", claim.id
            )
        )
    assert (row["state"], row["cancelled"]) == ("cancelled", 3)
