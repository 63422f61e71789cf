"""The connection to the database breaks at a chosen statement: before it arrives, or before its answer does."""

import pytest

from shared import close
from shared.postgres import Session
from tests.support.ledger import ledger
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.postgres_wire import Cut, PostgresWire
from tests.support.processes import Deployment
from tests.support.relief import relieve
from trigger import decide, fan_out, publish
from worker import outside, settle

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 25
STATEMENTS = {
    "claim": decide.CLAIM,
    "page": fan_out.WRITE_PAGE,
    "seal": fan_out.SEAL,
    "watermark": publish.MOVE_WATERMARK,
    "settle": settle.SETTLE_SUCCEEDED,
    "start outside": outside.START_OUTSIDE,
    "settle outside": outside.SETTLE_OUTSIDE,
    "close": close.CLOSE_WRITE,
}
COMMITS = 6
JOBS = """
async def charge(call):
    with (HERE / "calls").open("a") as calls:
        calls.write(f"{call.account} {call.key}\\n")

jobs = [
    nightly("one", PerAccount(effect)),
    nightly("batched", PerAccount(effect, settle="batched")),
    nightly("outside", Outside(charge, key_valid_for=hours(24))),
]
"""


async def test_every_write_is_done_once_whether_it_or_its_answer_was_lost(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    cuts = [Cut(text.encode(), when) for text in STATEMENTS.values() for when in ("before", "after")]
    cuts += [Cut(b"commit", when) for _ in range(COMMITS) for when in ("before", "after")]
    async with PostgresWire(deployed.database_url, cuts) as wire:
        directly, deployed.database_url = deployed.database_url, wire.url
        deployed.settings |= {"statement_cache_size": "0"}
        services = [deployed.start(kind) for kind in ("trigger", "trigger", "worker", "worker")]
        rows = {job.name: await assert_night(session, deployed, job.name, ACCOUNTS) for job in deployed.jobs}
        assert [cut for cut in cuts if not cut.done] == []
        assert all(service.alive for service in services), "nobody had to be started again"
        deployed.database_url = directly
        await relieve(deployed)
    for name in ("one", "batched"):
        await assert_one_effect_each(session, rows[name], ACCOUNTS)
        assert {row["attempts"] for row in (await ledger(session, rows[name]["id"])).values()} == {1}
    called = [line.split() for line in (deployed.folder / "calls").read_text().splitlines()]
    assert len({tuple(one) for one in called}) == ACCOUNTS, "whoever was called twice was called under the same key"
    assert await count(session, "select count(*) from matins.ledger where state <> 'succeeded'") == 0
