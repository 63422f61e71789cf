"""An operator's morning: what failed runs again, what should not run is cancelled, what nobody claimed is fired."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from schemas.occurrence import Identity
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.nights import until_no_alert
from tests.support.processes import Deployment, deployment

pytestmark = pytest.mark.timeout(180)

ACCOUNTS = 40
JOBS = """
async def bill(call):
    if (HERE / "down").exists() and call.account < "a000010":
        raise GiveUp("the tax service is down")
    await effect(call)


async def wait(call):
    await anyio.sleep(0.5)
    await effect(call)


jobs = [nightly("bill", PerAccount(bill)), nightly("slow", PerAccount(wait, concurrency=1))]
"""


@pytest.fixture
async def deployed(tmp_path: Path, database_url: str, broker_url: str, prefix: str) -> AsyncIterator[Deployment]:
    """Two jobs, one of which fails for ten accounts."""
    async with deployment(tmp_path, database_url, broker_url, prefix) as made:
        made.folder.joinpath("down").touch()
        made.declare(JOBS)
        await made.deploy(ACCOUNTS)
        yield made


async def test_a_morning(deployed: Deployment) -> None:
    bill, slow = (str(Identity(name, deployed.night)) for name in ("bill", "slow"))
    at = ("--at", deployed.night.isoformat())
    said = await deployed.command("fire", "slow", *at, "--reason", "before the fleet is up", "--actor", "ann")
    assert f"{slow} is claimed" in said
    deployed.start("trigger")
    deployed.start("worker")
    async with session_on(deployed.database_url) as session:

        async def closed() -> bool:
            state = await session.fetchval("select state from matins.occurrence where job = 'bill' order by id limit 1")
            return bool(state == "partial")

        await until(closed)
        said = await deployed.command("cancel", slow, "--reason", "it takes all night", "--wait")
        assert f"{slow}: cancelled (" in said
        well = deployed.start("trigger", "status")
        assert await well.ended() == 1
        assert "10 of 40 accounts did not succeed" in well.log.read_text()

        deployed.folder.joinpath("down").unlink()
        said = await deployed.command("rerun", bill, "--failed", "--reason", "the tax service is back", "--wait")
        assert "runs 10 accounts again, in generation 2" in said
        assert f"{bill}: succeeded (40 succeeded)" in said
        await until_no_alert(session)
        said = await deployed.command("status")
        assert "all is well" in said
        said = await deployed.command("show", bill)
        assert "the tax service is back" in said

        effects = await session.fetch("select account, count(*) from effect where occurrence = $1 group by 1", bill)
        assert sorted(tuple(row) for row in effects) == [(f"a{number:06d}", 1) for number in range(ACCOUNTS)]
        row = await session.fetchrow("select * from matins.occurrence where job = 'slow' and claimed_at is not null")
        assert row is not None
        assert row["total"] == row["succeeded"] + row["cancelled"] == ACCOUNTS
        assert (row["fired_by"], row["state"]) == ("ann", "cancelled")
