"""Tables are altered and transactions collide amid a night, on a slow wire: run again at once, charged to nobody."""

import pytest

from shared.postgres import Session
from tests.support.fleet import until
from tests.support.ledger import ledger
from tests.support.nights import assert_night, assert_one_effect_each, count
from tests.support.processes import Deployment
from tests.support.proxy import Proxy
from tests.support.relief import relieve

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 200
DELAY = 0.01
OPEN = "select count(*) from matins.occurrence where state in ('claimed', 'running')"
ROWS = "create table lockable (id text primary key, touched integer not null default 0)"
ALTERATIONS = (
    "alter table account add column note text",
    "alter table effect add column note text",
    "create index on effect (account)",
    "alter table matins.occurrence add column added_in_next_release text",
    "alter table matins.ledger add column added_in_next_release integer not null default 0",
    "create index on matins.ledger (finished_at)",
    "select matins.ensure_ledger_partition(clock_timestamp() + interval '2 months')",
    "alter table account alter column id type varchar(100)",
    "analyze matins.ledger, matins.occurrence, account, effect",
)
# Each names every column of a row, so that its plan cannot outlive an added one; and none may fail a single time.
JOBS = """
async def reads(call):
    await call.connection.fetchrow("select * from account where id = $1", call.account)
    await call.connection.execute("select pg_sleep(0.05)")
    await effect(call)


async def chunk(call):
    for account in call.accounts:
        await call.connection.fetchrow("select * from account where id = $1", account)
    await call.connection.execute("select pg_sleep(0.05)")
    await call.connection.execute(
        "insert into effect (account, occurrence) select unnest($1::text[]), $2", call.accounts, str(call.occurrence))
    return Handled(done=call.accounts)


async def collides(call):
    mine, other = ("one", "other") if call.account == "a000000" else ("other", "one")
    if call.account in ("a000000", "a000001"):
        await call.connection.execute("update lockable set touched = touched + 1 where id = $1", mine)
        (HERE / mine).touch()
        while not (HERE / other).exists():
            await anyio.sleep(0.02)
        await call.connection.execute("update lockable set touched = touched + 1 where id = $1", other)
    await effect(call)

jobs = [
    nightly("reads", PerAccount(reads), max_tries=1),
    nightly("chunk", SetBased(chunk, chunk_size=5), max_tries=1),
    nightly("collides", PerAccount(collides), max_tries=1),
]
"""


async def test_conflicts_and_altered_tables_cost_nobody_a_try(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    await session.execute(ROWS)
    await session.execute("insert into lockable values ('one'), ('other'); grant select, update on lockable to public")
    async with Proxy(deployed.database_url) as wire:
        wire.to_server.delay = wire.to_client.delay = DELAY
        directly, deployed.database_url = deployed.database_url, wire.url
        for kind in ("trigger", "trigger", "worker", "worker"):
            deployed.start(kind, resend_after="1m")

        async def amid() -> bool:
            return await count(session, "select count(*) from effect where occurrence like 'reads:%'") >= 20

        await until(amid)
        for statement in ALTERATIONS:
            await session.execute(statement)
        assert await count(session, OPEN) == len(deployed.jobs), "all that happened amid the night"
        for job in deployed.jobs:
            row = await assert_night(session, deployed, job.name, ACCOUNTS)
            await assert_one_effect_each(session, row, ACCOUNTS)
            assert {one["attempts"] for one in (await ledger(session, row["id"])).values()} == {1}
        assert await count(session, "select sum(touched) from lockable") == 4, "a collision leaves no half"
        deployed.database_url = directly
        await relieve(deployed)
