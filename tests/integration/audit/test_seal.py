"""Sealing: every row is chained once, in the order in which nothing can come before it any more."""

from typing import Any

import anyio
import pytest

from schemas.audit import GENESIS, digest, link
from shared.postgres import Session
from tests.integration.audit.trail import append, chained, head, seal_all, seal_ready
from tests.support.fleet import until
from tests.support.ledger import database_on, session_on
from trigger.seal_audit import seal, seal_pass

ROWS = """select c.*, a.id, a.at, a.xid::text as xid, a.kind, a.job, a.occurrence_id, a.instance, a.version, a.actor,
                 a.actor_kind, a.reason, a.detail::text as detail
            from matins.audit_chain c join matins.audit a on a.id = c.audit_id order by c.position"""


async def is_whole(session: Session) -> bool:
    """Compute every link again."""
    former = GENESIS
    for number, row in enumerate(await session.fetch(ROWS), start=1):
        computed = digest(dict(row), row["salt"])
        former = link(former, computed)
        if (row["position"], row["digest"], row["hash"]) != (number, computed, former):
            return False
    return bool(former == (await head(session))["hash"])


async def test_rows_are_chained_once_in_batches(database_url: str) -> None:
    async with session_on(database_url) as session:
        ids = await append(session, *(f"reason {number}" for number in range(7)))
        first: Any = await until(lambda: seal(session, "sealer", at_most=3))
        assert (first.position, first.rows, first.more) == (3, 3, True)
        assert await seal_all(session, at_most=3) == 4
        assert await chained(session) == ids
        assert await is_whole(session)
        assert await seal(session, "sealer") is None
        ids += await append(session, "later")
        assert await seal_all(session) == 1
        assert await chained(session) == ids
        assert await is_whole(session)


async def test_what_was_begun_before_and_is_not_over_is_waited_for_and_then_sealed(database_url: str) -> None:
    async with session_on(database_url) as session, session_on(database_url) as long, session_on(database_url) as other:
        early = await append(session, "early")
        await seal_all(session)
        transaction = long.transaction()
        await transaction.start()
        (held,) = await append(long, "held")
        # Begun later, over before, and with a larger id.
        (behind,) = await append(other, "behind")
        assert await seal_ready(session) == 0, "what began later may still be preceded"
        assert await chained(session) == early
        await transaction.commit()
        assert await seal_all(session) == 2
        assert await chained(session) == [*early, held, behind]
        assert await is_whole(session)


async def test_a_transaction_that_took_its_number_first_and_its_row_last_comes_first(database_url: str) -> None:
    async with session_on(database_url) as session, session_on(database_url) as long:
        transaction = long.transaction()
        await transaction.start()
        await long.execute("select pg_current_xact_id()")
        (first,) = await append(session, "a smaller id, of a later transaction")
        (second,) = await append(long, "a larger id, of an earlier one")
        assert await seal_ready(session) == 0
        await transaction.commit()
        assert await seal_all(session, at_most=1) == 2
        assert await chained(session) == [second, first]


async def test_what_was_undone_leaves_no_hole(database_url: str) -> None:
    async with session_on(database_url) as session, session_on(database_url) as other:
        transaction = other.transaction()
        await transaction.start()
        await append(other, "undone")
        ids = await append(session, "done")
        await transaction.rollback()
        assert await seal_all(session) == 1
        assert await chained(session) == ids


async def test_ten_sealers_at_once_and_writers_beside_them_leave_one_whole_chain(database_url: str) -> None:
    async with database_on(database_url, 20) as database:

        async def write(number: int) -> None:
            for turn in range(20):
                async with database.session() as session, session.transaction():
                    await append(session, f"{number} {turn}")
                    if turn % 3 == 0:
                        await append(session, f"{number} {turn} again")

        async def seal_often() -> None:
            async with database.session() as session:
                for _ in range(30):
                    await seal(session, "sealer", at_most=7)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(write, number)
            for _ in range(10):
                group.start_soon(seal_often)
        async with database.session() as session:
            await seal_all(session)
            assert len(await chained(session)) == 8 * 27
            assert await session.fetchval("select count(*) from matins.audit") == 8 * 27
            assert await is_whole(session)


async def test_one_trigger_at_a_time_seals_and_says_what_the_head_is(
    database_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with database_on(database_url) as database, session_on(database_url) as session:
        await append(session, "one", "two")
        assert await until(lambda: seal_pass(database, "first")) == 2
        told = capsys.readouterr().out
        await append(session, "three")
        assert await seal_pass(database, "second") == 0, "the first has the right for a while"
        assert await until(lambda: seal_pass(database, "first")) == 1
        assert (await head(session))["sealed_by"] == "first"
    assert "audit sealed" in told


async def test_a_dump_in_another_server_begins_an_era_and_keeps_nothing_out(database_url: str) -> None:
    async with session_on(database_url) as session:
        # As a dump from a server with many transactions leaves it: rows that are sealed there, and some that are not.
        sealed = await append(session, "sealed elsewhere")
        await session.execute("update matins.audit set xid = (xid::text::bigint + 1000000)::text::xid8")
        await session.execute(
            """insert into matins.audit_chain select 1, id, sha256('1'), null, sha256('2') from matins.audit;
               insert into matins.audit_seal select 1, 1, false, 'elsewhere', 1, hash, 1, xid, 0, audit_id, xid, 'x'
                 from matins.audit_chain, matins.audit"""
        )
        (waiting,) = await append(session, "not sealed")
        await session.execute("update matins.audit set xid = '1000000000' where id = $1", waiting)
        (new,) = await append(session, "new")
        assert await seal_all(session, at_most=1) == 2
        assert sorted(await chained(session)) == [*sealed, waiting, new]
        last = await head(session)
        assert last["era"] == 2
        assert await seal_ready(session) == 0
        (newer,) = await append(session, "newer")
        assert await seal_all(session) == 1
        assert (await chained(session))[-1] == newer
        assert (await head(session))["era"] == 2


async def test_rows_from_before_the_chain_come_first(database_url: str) -> None:
    async with session_on(database_url) as session:
        new = await append(session, "new")
        old = await append(session, "old", "older")
        await session.execute("update matins.audit set xid = '0' where id = any ($1::bigint[])", old)
        assert await seal_all(session, at_most=1) == 3
        assert await chained(session) == [*old, *new]


async def test_what_runs_in_another_database_of_the_server_delays_nothing(
    database_url: str, administrator_url: str
) -> None:
    async with session_on(database_url) as session, session_on(administrator_url) as elsewhere:
        transaction = elsewhere.transaction()
        await transaction.start()
        await elsewhere.execute("select pg_current_xact_id()")
        ids = await append(session, "one", "two")
        assert await seal_all(session) == 2
        assert await chained(session) == ids
        await transaction.rollback()
        (third,) = await append(session, "three")
        assert await seal_all(session) == 1
        last = await head(session)
        assert (last["era"], (await chained(session))[-1]) == (1, third)
