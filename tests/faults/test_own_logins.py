"""A night of jobs with roles and logins of their own, under least-privileged services, with a worker killed in it."""

import pytest

from shared.postgres import Session
from tests.support.checker_deployment import judge_deployment
from tests.support.fleet import until
from tests.support.logins import PASSWORD, with_login
from tests.support.nights import assert_night, assert_one_effect_each, occurrence_of, settled
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

ACCOUNTS = 300
JOBS = """
import asyncpg

ROLE, LOGIN, URL = {role!r}, {login!r}, {url!r}


async def roll_up(call):
    await call.connection.execute(
        "insert into effect (account, occurrence) select one, $2 from unnest($1::text[]) one",
        list(call.accounts), str(call.occurrence))
    return Handled(done=call.accounts)


async def on_another_driver(call):
    connection = await asyncpg.connect(URL, timeout=20)
    try:
        async with connection.transaction():
            await connection.execute(
                "insert into effect (account, occurrence) values ($1, $2)", call.account, str(call.occurrence))
            await connection.execute("select matins.settle($1)", call.ticket)
    finally:
        await connection.close()


jobs = [
    nightly("in-a-role", PerAccount(effect, role=ROLE)),
    nightly("own", PerAccount(effect, login=LOGIN, chunk_size=5)),
    nightly("own-chunks", SetBased(roll_up, login=LOGIN, chunk_size=20)),
    nightly("own-driver", Outside(on_another_driver, login=LOGIN, key_valid_for=hours(24), concurrency=4)),
]
"""


async def test_jobs_with_roles_and_logins_of_their_own_have_each_effect_once(
    deployed: Deployment, session: Session
) -> None:
    role, login = f"{deployed.prefix}_role", f"{deployed.prefix}_login"
    url = with_login(deployed.database_url, login)
    deployed.settings[f"login_url_{login}"] = url
    deployed.declare(JOBS.format(role=role, login=login, url=url))
    try:
        await deployed.deploy(ACCOUNTS)
        await session.execute(
            f"alter role {login} password '{PASSWORD}';"
            f"grant select on account to {role}, {login}; grant insert on effect to {role}, {login}"
        )
        deployed.start("trigger")
        victim, _ = deployed.start("worker"), deployed.start("worker")

        async def in_the_middle() -> bool:
            row = await occurrence_of(session, deployed, "own-driver")
            return row["claimed_at"] is not None and await settled(session, row) > ACCOUNTS / 10

        await until(in_the_middle)
        victim.kill()
        for job in deployed.jobs:
            row = await assert_night(session, deployed, job.name, ACCOUNTS)
            await assert_one_effect_each(session, row, ACCOUNTS)
        # Here and not behind the test, since the roles must be there until everything is at rest.
        await judge_deployment(deployed)
        deployed.judging.wanted = False
    finally:
        deployed.end()
        await session.execute(f"drop owned by {role}, {login}; drop role {role}, {login}")
