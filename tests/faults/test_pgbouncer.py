"""Behind pgbouncer in transaction mode, with the documented setting: migrate, a night in every mode, the operator."""

import pytest

from examples.servers.pgbouncer import PgBouncer
from shared.postgres import Session
from tests.support.ledger import ledger
from tests.support.logins import as_login
from tests.support.nights import assert_night, assert_one_effect_each, count, until_no_alert
from tests.support.processes import Deployment
from tests.support.readiness import ready
from tests.support.relief import relieve

pytestmark = [pytest.mark.drill, pytest.mark.timeout(90)]

ACCOUNTS = 60
CONNECTIONS = 5
JOBS = """
async def fails_once(call):
    await effect(call)
    if call.attempt == 1 and call.account < "a000010":
        raise RuntimeError("once")


def plain(call):
    call.connection.execute(
        "insert into effect (account, occurrence) values ($1, $2)", call.account, str(call.occurrence))


async def chunk(call):
    await call.connection.execute(
        "insert into effect (account, occurrence) select unnest($1::text[]), $2", call.accounts, str(call.occurrence))
    return Handled(done=call.accounts)


async def charge(call):
    return call.key


async def numbers(call):
    for number in range(int(call.cursor or 0), 60):
        yield AccountAt(f"a{number:06d}", str(number + 1))

jobs = [
    nightly("one", PerAccount(fails_once), page_size=25),
    nightly("plain", PerAccount(plain, role="{role}"), page_size=25),
    nightly("batched", PerAccount(effect, settle="batched"), accounts=GeneratedAccounts(numbers, page_size=25)),
    nightly("chunk", SetBased(chunk, chunk_size=20, role="{role}"), page_size=25, coordination="leader"),
    nightly("outside", Outside(charge, key_valid_for=hours(24)), page_size=25),
]
"""


async def test_a_whole_night_behind_pgbouncer(deployed: Deployment, session: Session, role: str) -> None:
    urls = [deployed.database_url, *(as_login(deployed.database_url, kind) for kind in ("trigger", "worker"))]
    with PgBouncer(urls, CONNECTIONS) as bouncer:
        deployed.declare(JOBS.replace("{role}", role))
        await deployed.deploy(ACCOUNTS)
        directly, deployed.database_url = deployed.database_url, bouncer.url
        deployed.settings |= {"statement_cache_size": "0"}
        await session.execute(f"""grant insert on effect to "{role}"; grant select on account to "{role}";
            alter database "{deployed.database_url.rpartition("/")[2]}" set search_path = public""")
        await deployed.command("migrate")
        services = [deployed.start(kind) for kind in ("trigger", "trigger", "worker", "worker")]
        for job in deployed.jobs:
            row = await assert_night(session, deployed, job.name, ACCOUNTS)
            if job.name == "outside":
                results = {one["result"] for one in (await ledger(session, row["id"])).values()}
                assert len(results) == ACCOUNTS
            else:
                await assert_one_effect_each(session, row, ACCOUNTS)
        await ready(*services)
        await until_no_alert(session)
        assert "one" in await deployed.command("status")
        ours = """select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
                     and backend_type = 'client backend'"""
        assert await count(session, ours) <= CONNECTIONS
        deployed.database_url = directly
        await relieve(deployed)
        assert not [line for service in services for line in service.lines("a pass failed")]
        assert not [line for service in services for line in service.lines("work will be tried again")]
    await session.execute(f'drop owned by "{role}"')
