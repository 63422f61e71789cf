"""A night with three triggers and three workers: one of the three attempts claims, and everything is done once."""

from pathlib import Path

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.processes import Deployment, deployment

JOBS = """
async def chunk(call):
    await call.connection.execute(
        "insert into effect (account, occurrence) select unnest($1::text[]), $2", call.accounts, str(call.occurrence))
    return Handled(done=call.accounts)


async def outside(call):
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{call.key}\\n")

jobs = [
    nightly("one", PerAccount(effect)),
    nightly("batched", PerAccount(effect, settle="batched")),
    nightly("chunk", SetBased(chunk)),
    nightly("outside", Outside(outside, key_valid_for=hours(24))),
]
"""
ACCOUNTS = 600
# Nobody dies here: what protects from the dead must not mistake a busy machine for one.
CALM = {"claim_lease": "20s", "outside_lease": "20s", "resend_after": "60s", "broker_heartbeat": "20s"}


@pytest.mark.drill
@pytest.mark.timeout(120)
async def test_three_triggers_attempt_and_everything_is_done_once(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str
) -> None:
    async with (
        deployment(tmp_path, database_url, broker_url, prefix, **CALM) as deployed,
        session_on(database_url) as session,
    ):
        deployed.declare(JOBS)
        await deployed.deploy(ACCOUNTS, fall=False)
        services = [deployed.start(kind) for kind in ("trigger", "worker") for _ in range(3)]
        for service in services:
            await service.working()
        await until(lambda: all_registered(session, deployed))
        await deployed.fall()
        for job in deployed.jobs:
            row = await assert_night(session, deployed, job.name, ACCOUNTS)
            attempts = await session.fetch(
                "select won from matins.attempt where job = $1 and scheduled_at = $2", job.name, deployed.night
            )
            assert sorted(one["won"] for one in attempts) == [False, False, True], "one win of three attempts"
            if job.name != "outside":
                await assert_one_effect_each(session, row, ACCOUNTS)
        assert await count(session, "select count(*) from matins.ledger where attempts <> 1") == 0
        keys = (tmp_path / "calls").read_text().split()
        assert len(keys) == len(set(keys)) == ACCOUNTS, "each call was made once"
        for service in services:
            service.terminate()
        assert [await service.ended() for service in services] == [0] * 6


async def all_registered(session: Session, deployed: Deployment) -> bool:
    return await count(session, "select count(*) from matins.job") == len(deployed.jobs)
