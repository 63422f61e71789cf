"""Deleting the beginning of the audit trail: the rest verifies from the recorded point on."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import pytest

from shared.migrate import enter_environment
from shared.postgres import Session
from shared.terminal import Refused
from tests.integration.audit.trail import append, chained, head, seal_all
from tests.integration.operate.night import ORDER, nightly
from tests.support.ledger import DUE, running_occurrence, session_on
from trigger.prune_audit import PRUNE_AUDIT_ROWS, prune_audit
from trigger.verify_audit import verify

BEFORE = datetime(2025, 6, 1, tzinfo=UTC)


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A session on a sealed trail of three old rows, a new one, an old one and a new one."""
    async with session_on(database_url) as opened:
        await enter_environment(opened, "test", create=True)
        for number, at in enumerate(
            ("2025-01-01", "2025-01-02", "2025-01-03", "2025-07-01", "2025-01-04", "2025-07-02")
        ):
            await opened.execute(
                "insert into matins.audit (kind, reason, at) values ('called', $1, $2)",
                f"{number}",
                datetime.fromisoformat(at).replace(tzinfo=UTC),
            )
        await seal_all(opened, at_most=2)
        yield opened


async def test_the_beginning_goes_and_the_rest_verifies(session: Session) -> None:
    last = await head(session)
    pruned = await prune_audit(session, BEFORE, ORDER)
    assert (pruned.rows, pruned.position) == (3, 3), "what comes behind the first that is kept stays"
    assert await session.fetchval("select count(*) from matins.audit where kind = 'called'") == 3
    entry: Any = await session.fetchrow("select * from matins.audit where kind = 'audit_pruned'")
    assert (entry["actor"], entry["detail"]["position"], entry["detail"]["hash"]) == ("ann", 3, pruned.hash.hex())
    verified = await verify(session, {last["position"]: last["hash"]})
    assert (verified.found, verified.rows, verified.pruned_through, verified.position) == (0, 3, 3, 6)
    await append(session, "later")
    await seal_all(session)
    assert (await verify(session, {})).found == 0
    with pytest.raises(Refused, match="pruned through position 3"):
        await verify(session, {2: bytes(32)})


async def test_what_is_altered_behind_the_point_is_still_named(session: Session) -> None:
    await prune_audit(session, BEFORE, ORDER)
    await session.execute("update matins.audit set reason = 'x' where reason = '4'")
    (found,) = (await verify(session, {})).problems
    assert (found.what, found.position) == ("altered", 5)


async def test_all_of_it_can_go_and_the_chain_goes_on(session: Session) -> None:
    pruned = await prune_audit(session, datetime(2026, 1, 1, tzinfo=UTC), ORDER)
    assert (pruned.rows, pruned.position) == (6, 6)
    assert await chained(session) == []
    await seal_all(session)
    verified = await verify(session, {})
    assert (verified.found, verified.rows, verified.position) == (0, 1, 7), "the act's own entry"


async def test_what_an_interrupted_prune_has_left_is_no_part_of_it_and_goes_later(session: Session) -> None:
    await prune_audit(session, datetime(2025, 1, 2, tzinfo=UTC), ORDER)
    # As if the next one had been killed between its entry and the last of its steps.
    hashed = await session.fetchval("select hash from matins.audit_chain where position = 3")
    await session.execute(
        "insert into matins.audit (kind, detail) values ('audit_pruned', $1)", {"position": 3, "hash": hashed.hex()}
    )
    assert await session.fetchval(PRUNE_AUDIT_ROWS, 2, 10) == 1
    assert (await verify(session, {})).found == 0
    await prune_audit(session, BEFORE, ORDER)
    assert (await verify(session, {})).found == 0
    assert await session.fetchval("select min(position) from matins.audit_chain") == 4


async def test_a_dry_run_changes_nothing(session: Session) -> None:
    assert (await prune_audit(session, BEFORE, ORDER, dry_run=True)).rows == 3
    assert len(await chained(session)) == 6
    assert await session.fetchval("select count(*) from matins.audit where kind = 'audit_pruned'") == 0


async def test_a_trail_that_is_not_whole_stays(session: Session) -> None:
    await session.execute("update matins.audit set reason = 'x' where reason = '1'")
    with pytest.raises(Refused, match="not whole"):
        await prune_audit(session, BEFORE, ORDER)
    assert len(await chained(session)) == 6


async def test_what_is_not_over_keeps_its_trail(session: Session) -> None:
    await running_occurrence(session, nightly(), ["a"], scheduled_at=datetime(2025, 1, 1, 2, tzinfo=UTC))
    with pytest.raises(Refused, match="invoice-run:2025-01-01T02:00Z"):
        await prune_audit(session, BEFORE, ORDER)
    with pytest.raises(Refused, match="still to come"):
        await prune_audit(session, DUE.replace(year=2999), ORDER)
