"""The database's disk is full amid a fan-out: every process waits, says so, and goes on by itself once there is room.

What is stated: nobody has to be started again, no account is charged, and all are ready within 30 seconds.
"""

import anyio
import pytest

from shared.postgres import Session
from tests.support.nights import assert_night, assert_one_effect_each, count, occurrence_of
from tests.support.processes import Deployment
from tests.support.readiness import ready, staying_alive, unready

pytestmark = [pytest.mark.drill, pytest.mark.timeout(120)]

RECOVERY_SECONDS = 30.0
ACCOUNTS = 400
# Longer than the claims that may be given up before an occurrence is.
SILENT_CLAIMS = 6
# What the server says when a file of a table cannot grow; tables that nothing is added to are written to all the same.
NO_ROOM = """
create table disk (is_full boolean not null);
insert into disk values (false);
create function need_room() returns trigger language plpgsql security definer as $$
begin
    if (select is_full from disk) and (tg_op = 'INSERT' or new.account > 'a000010') then
        raise disk_full using message = 'could not extend file: No space left on device';
    end if;
    return new;
end $$;
create trigger need_room before insert or update on matins.ledger for each row execute function need_room();
"""
JOBS = """
async def numbers(call):
    for number in range(int(call.cursor or 0), 400):
        await anyio.sleep(0.01)
        yield AccountAt(f"a{number:06d}", str(number + 1))

jobs = [nightly("night", PerAccount(effect), accounts=GeneratedAccounts(numbers, page_size=20))]
"""


async def test_the_database_has_no_room_left(deployed: Deployment, session: Session) -> None:
    deployed.declare(JOBS)
    await deployed.deploy(ACCOUNTS)
    await session.execute(NO_ROOM)
    trigger, worker = deployed.start("trigger"), deployed.start("worker")
    await trigger.logged("claimed")
    await session.execute("update disk set is_full = true")
    async with staying_alive([trigger, worker]):
        await unready(trigger, "fan-outs", "DiskFull")
        row = await occurrence_of(session, deployed, "night")
        assert row["accounts_read"] < ACCOUNTS, "amid the fan-out"
        for _ in range(SILENT_CLAIMS):
            await trigger.logged("taken over", epoch=row["epoch"] + 1)
            row = await occurrence_of(session, deployed, "night")
        await session.execute("update disk set is_full = false")
        with anyio.fail_after(RECOVERY_SECONDS):
            await ready(trigger, worker)
        row = await assert_night(session, deployed, "night", ACCOUNTS)
    await assert_one_effect_each(session, row, ACCOUNTS)
    assert await count(session, "select count(*) from matins.ledger where attempts <> 1") == 0
    assert row["fan_out_attempts"] == 0, "a full disk is no fault of the source"
