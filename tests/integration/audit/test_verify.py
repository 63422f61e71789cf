"""Verifying: what was altered, removed, inserted or cut off is named, and nothing else is."""

from collections.abc import AsyncIterator

import anyio
import pytest

from shared.postgres import Session
from shared.terminal import Refused
from tests.integration.audit.trail import append, head, seal_all, seal_ready
from tests.support.fleet import until
from tests.support.ledger import database_on, session_on
from trigger.audit_anchor import read_anchors
from trigger.seal_audit import seal
from trigger.verify_audit import Verified, verify


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A session with a sealed trail of five rows, in two batches."""
    async with session_on(database_url) as opened:
        await append(opened, "one", "two", "three", "four", "five")
        assert await seal_all(opened, at_most=3) == 5
        yield opened


async def problems(session: Session, anchors: dict[int, bytes] | None = None) -> list[tuple[str, int | None]]:
    """Verify; give what is wrong, and with which row."""
    found = (await verify(session, anchors or {})).problems
    return [(one.what, one.audit_id) for one in found]


async def id_of(session: Session, reason: str) -> int:
    return int(await session.fetchval("select id from matins.audit where reason = $1", reason))


async def test_a_whole_trail_is_whole(session: Session) -> None:
    verified = await verify(session, {})
    last = await head(session)
    assert (verified.found, verified.rows, verified.position, verified.hash) == (0, 5, 5, last["hash"])
    assert verified.unsealed.rows == 0


@pytest.mark.parametrize(
    "change",
    [
        "reason = 'another'",
        "actor = 'bob'",
        "detail = '{\"a\": 1}'",
        "at = at + interval '1 microsecond'",
        "version = '9'",
        "occurrence_id = 1",
        "kind = 'claim'",
        "instance = null",
    ],
)
async def test_one_altered_row_is_named(session: Session, change: str) -> None:
    altered = await id_of(session, "three")
    await session.execute(f"update matins.audit set {change} where id = $1", altered)
    assert await problems(session) == [("altered", altered)]


async def test_the_first_of_several_is_named_first(session: Session) -> None:
    await session.execute("update matins.audit set reason = 'x' where reason in ('two', 'four')")
    found = (await verify(session, {})).problems
    assert [one.position for one in found] == [2, 4]


async def test_one_removed_row_is_named(session: Session) -> None:
    removed = await id_of(session, "three")
    await session.execute("delete from matins.audit where id = $1", removed)
    assert await problems(session) == [("removed", removed)]


async def test_one_removed_row_with_its_link_is_named_by_its_position(session: Session) -> None:
    removed = await id_of(session, "three")
    await session.execute("delete from matins.audit where id = $1", removed)
    await session.execute("delete from matins.audit_chain where audit_id = $1", removed)
    (found,) = (await verify(session, {})).problems
    assert (found.what, found.position) == ("removed", 3)


INSERTED = "insert into matins.audit (id, kind, xid) overriding system value "


@pytest.mark.parametrize(
    "insert",
    [
        f"{INSERTED} select 100, kind, xid from matins.audit where reason = 'two' returning id",
        f"{INSERTED} values (-7, 'claim', '0') returning id",
        f"{INSERTED} values (-7, 'claim', pg_current_xact_id()) returning id",
    ],
    ids=["a sealed transaction's", "before the chain", "an old number in a new transaction"],
)
@pytest.mark.parametrize("later", [False, True], ids=["at once", "after the sealer"])
async def test_one_row_inserted_behind_what_is_sealed_is_named(session: Session, insert: str, *, later: bool) -> None:
    inserted = await session.fetchval(insert)
    if later:
        await append(session, "six")
        await until(lambda: seal_ready(session))
    assert await problems(session) == [("inserted", inserted)]


async def test_a_link_written_anew_is_named(session: Session) -> None:
    await session.execute("update matins.audit set reason = 'x' where reason = 'three'")
    await session.execute(
        """update matins.audit_chain c set digest = sha256('x'), hash = sha256('y')
             from matins.audit a where a.id = c.audit_id and a.reason = 'x'"""
    )
    assert [what for what, _ in await problems(session)][:2] == ["broken", "altered"]


async def test_the_tail_is_counted_and_not_judged(session: Session, database_url: str) -> None:
    async with session_on(database_url) as long:
        transaction = long.transaction()
        await transaction.start()
        await append(long, "long")
        await append(session, "behind")
        await seal_ready(session)
        verified = await verify(session, {})
        assert (verified.found, verified.unsealed.rows) == (0, 1)
        assert verified.unsealed.oldest is not None
        await transaction.commit()
        verified = await verify(session, {})
        assert (verified.found, verified.unsealed.rows) == (0, 2)
        await seal_all(session)
        verified = await verify(session, {})
        assert (verified.found, verified.unsealed.rows, verified.rows) == (0, 0, 7)


async def test_a_cut_off_end_is_seen_with_an_anchor_alone(session: Session) -> None:
    last = await head(session)
    anchors = {last["position"]: last["hash"]}
    await session.execute("delete from matins.audit where reason in ('four', 'five')")
    await session.execute("delete from matins.audit_chain where position > 3")
    assert [what for what, _ in await problems(session)] == ["removed"], "the batch says where the end was"
    await session.execute("delete from matins.audit_seal where position > 3")
    assert await problems(session) == [], "nothing inside can show it"
    (found,) = (await verify(session, anchors)).problems
    assert (found.what, found.position) == ("anchor", 4)
    assert "cut off" in found.told


async def test_a_chain_written_anew_is_seen_with_an_anchor(session: Session) -> None:
    last = await head(session)
    anchors = {last["position"]: last["hash"]}
    assert await problems(session, anchors) == []
    await session.execute("delete from matins.audit_chain; delete from matins.audit_seal")
    await session.execute("update matins.audit set reason = 'x' where reason = 'three'")
    await seal_all(session)
    assert await problems(session) == []
    assert [what for what, _ in await problems(session, anchors)] == ["anchor"]


async def test_writers_in_long_and_short_transactions_raise_no_alarm(database_url: str) -> None:
    async with database_on(database_url, 12) as database:

        async def write(number: int) -> None:
            for turn in range(10):
                async with database.session() as session, session.transaction():
                    if number % 2:
                        await session.execute("select pg_current_xact_id()")
                        await anyio.lowlevel.checkpoint()
                    await append(session, f"{number} {turn}", "again")

        async def seal_often() -> None:
            async with database.session() as session:
                for _ in range(40):
                    await seal(session, "sealer", at_most=5)

        async with anyio.create_task_group() as group:
            for number in range(8):
                group.start_soon(write, number)
            for _ in range(3):
                group.start_soon(seal_often)
        async with database.session() as session:
            assert (await verify(session, {})).found == 0
            await seal_all(session)
            verified: Verified = await verify(session, {})
            assert (verified.found, verified.rows, verified.unsealed.rows) == (0, 160, 0)


async def test_an_anchor_that_is_none_is_refused(session: Session) -> None:
    with pytest.raises(Refused, match="neither HASH@POSITION nor a file"):
        read_anchors("here@5")
    last = await head(session)
    assert read_anchors(f"{last['hash'].hex()}@5") == {5: last["hash"]}
