"""A trigger dies in the middle of a hundred thousand accounts: the next one goes on at the cursor."""

import pytest

from shared.postgres import Session
from tests.support.holds import holding
from tests.support.nights import assert_night, assert_one_effect_each, occurrence_of
from tests.support.processes import Deployment

pytestmark = [pytest.mark.drill, pytest.mark.timeout(150)]

ACCOUNTS = 100_000
READ = 40_000
JOBS = """
async def roll_up(call):
    await call.connection.execute(
        "insert into effect (account, occurrence) select unnest($1::text[]), $2", call.accounts, str(call.occurrence))
    return Handled(done=call.accounts)

jobs = [nightly("night", SetBased(roll_up, chunk_size=1000), page_size=5000)]
"""


async def test_a_hundred_thousand_accounts_are_gone_on_with_at_the_cursor(
    deployed: Deployment, session: Session
) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    lease, many = "10s", "100000"
    condition = f"new.accounts_read > {READ}"
    async with holding(deployed.database_url, "matins.occurrence", "update", condition) as hold:
        victim = deployed.start("trigger", in_flight=many)
        await hold.reached(victim)
        await hold.crash(victim)
        await hold.let_go()
    assert (await occurrence_of(session, deployed, "night"))["accounts_read"] == READ
    deployed.start("trigger", claim_lease=lease, resend_after="1m", in_flight=many)
    deployed.start("worker")
    row = await assert_night(session, deployed, "night", ACCOUNTS)
    assert (row["accounts_read"], row["epoch"]) == (ACCOUNTS, 2)
    await assert_one_effect_each(session, row, ACCOUNTS)
