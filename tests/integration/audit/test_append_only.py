"""No service can change the trail or its chain; and a sealer that is killed anywhere leaves it whole."""

from collections.abc import AsyncIterator

import anyio
import pytest

from schemas.privileges import READER, TRIGGER, WORKER
from shared.postgres import DatabaseError, DriverError, InsufficientPrivilege, Session
from tests.integration.audit.trail import append, chained, seal_all
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.logins import NAMES, grant_rights, make_logins
from trigger.database_rights import quoted
from trigger.seal_audit import seal
from trigger.verify_audit import verify

KILLED = (DatabaseError, DriverError, OSError)
TABLES = ("audit", "audit_chain", "audit_seal")
COLUMNS = {"audit": "reason = 'x'", "audit_chain": "salt = null", "audit_seal": "rows = 0"}
VERBS = ("update matins.{table} set {column}", "delete from matins.{table}", "truncate matins.{table}")


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """An administrator's session on a sealed trail, with the roles and their rights."""
    async with session_on(database_url) as opened:
        await make_logins(opened)
        await grant_rights(opened, {})
        await append(opened, "one", "two", "three")
        await seal_all(opened)
        yield opened


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("role", [TRIGGER, WORKER, READER])
async def test_no_service_can_change_or_empty_it(session: Session, role: str, table: str, verb: str) -> None:
    await session.execute(f"set role {quoted(NAMES.of(role))}")
    with pytest.raises(InsufficientPrivilege):
        await session.execute(verb.format(table=table, column=COLUMNS[table]))
    await session.execute("reset role")
    assert (await verify(session, {})).found == 0


@pytest.mark.parametrize("role", [TRIGGER, WORKER])
@pytest.mark.parametrize("column", ["id", "at", "xid", "version"])
async def test_no_service_can_date_a_row_or_say_where_it_stands(session: Session, role: str, column: str) -> None:
    await session.execute(f"set role {quoted(NAMES.of(role))}")
    with pytest.raises(InsufficientPrivilege):
        await session.execute(f"insert into matins.audit (kind, {column}) overriding system value values ('x', null)")


async def test_a_trigger_seals_and_a_reader_verifies(session: Session) -> None:
    await append(session, "four")
    await session.execute(f"set role {quoted(NAMES.of(TRIGGER))}")
    await seal_all(session)
    await session.execute(f"set role {quoted(NAMES.of(READER))}")
    verified = await verify(session, {})
    assert (verified.found, verified.rows, verified.unsealed.rows) == (0, 4, 0)


@pytest.mark.parametrize(
    "lock",
    [
        "matins.audit_seal in access exclusive mode",
        "matins.audit in access exclusive mode",
        "matins.audit_chain in share mode",
        "matins.audit_seal in share mode",
    ],
    ids=["before the head is read", "before the rows are read", "before the links are written", "before the batch is"],
)
async def test_killed_between_any_two_statements_it_leaves_nothing_half_done(
    session: Session, database_url: str, lock: str
) -> None:
    await append(session, "four", "five")
    async with session_on(database_url) as holding, session_on(database_url) as sealing:
        pid = await sealing.fetchval("select pg_backend_pid()")
        held = holding.transaction()
        await held.start()
        await holding.execute(f"lock table {lock}")

        async def seal_until_killed() -> None:
            # What others run on the server meanwhile has to be over before there is anything to seal.
            with pytest.raises(KILLED):
                await until(lambda: seal(sealing, "killed"))

        async with anyio.create_task_group() as group:
            group.start_soon(seal_until_killed)
            waits = "select 1 from pg_stat_activity where pid = $1 and wait_event_type = 'Lock'"
            await until(lambda: session.fetchval(waits, pid))
            await session.execute("select pg_terminate_backend($1)", pid)
        await held.rollback()
    assert len(await chained(session)) == 3
    assert (await verify(session, {})).found == 0
    await seal_all(session)
    verified = await verify(session, {})
    assert (verified.found, verified.rows, verified.position) == (0, 5, 5)
