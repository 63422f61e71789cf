"""What a process remembers of a database that was put back is not taken for true."""

import dataclasses
from datetime import UTC, datetime

import anyio
import pytest

from schemas.message import WorkMessage
from shared import restore
from shared.fleet import Instance, register_instance
from shared.job import PerAccount
from shared.migrate import enter_environment
from shared.postgres import Session
from shared.restore import DatabaseWentBack, Witness, await_continuity, server_identity
from shared.stopping import Stopping
from tests.integration.operate.night import ORDER, nothing
from tests.support.ledger import DUE, database_on, job_with, running_occurrence, session_on
from trigger.reconcile import release
from worker.occurrences import Occurrences, WorkOccurrence

INSTANCE = Instance("witness", "worker", "test", "0", "", "test")


def message(occurrence: WorkOccurrence, job: str) -> WorkMessage:
    return WorkMessage(
        job=job,
        occurrence_id=occurrence.id,
        scheduled_at=DUE,
        generation=1,
        published_at=datetime.now(UTC),
        accounts=("a",),
    )


async def witness(session: Session) -> Witness:
    await enter_environment(session, "test", create=True)
    return Witness("witness", await register_instance(session, INSTANCE, {}))


async def held(session: Session) -> str | None:
    reason: str | None = await session.fetchval("select held_reason from matins.environment")
    return reason


async def test_an_id_that_names_another_occurrence_now_is_read_again(database_url: str) -> None:
    async with session_on(database_url) as session:
        lost, job = Occurrences(), job_with(PerAccount(nothing), "second")
        first = await running_occurrence(session, job_with(PerAccount(nothing), "first"), ["a"])
        assert await lost.find(session, message(first, "first")) == first
        second = await running_occurrence(session, job, ["a"])
        await session.execute("delete from matins.occurrence where id = $1", first.id)
        await session.execute(
            "insert into matins.occurrence overriding system value select * from ("
            "select (jsonb_populate_record(o, jsonb_build_object('id', $2::bigint, 'job', 'second', "
            "'variant', '+again'))).* from matins.occurrence o where o.id = $1) moved",
            second.id,
            first.id,
        )
        found = await lost.find(session, message(first, "second"))
        assert found is not None
        assert (found.id, found.identity.job) == (first.id, "second")
        assert await lost.find(session, message(first, "first")) is None, "a message of the lost one has no effect"


async def test_signs_of_life_that_are_gone_hold_everything(database_url: str) -> None:
    async with session_on(database_url) as session:
        one = await witness(session)
        for _ in range(3):
            await one.beat(session)
        remembered = await session.fetchrow("select seen_at, beats from matins.instance")
        assert remembered is not None
        await one.beat(session)
        await session.execute("update matins.instance set seen_at = $1, beats = $2", *remembered.values())
        with pytest.raises(DatabaseWentBack, match="of 4 signs of life of a process it remembers 3"):
            await one.beat(session)
        row = await session.fetchrow("select * from matins.environment")
        assert row is not None
        assert row["known_through"] == remembered["seen_at"]
        await release(session, ORDER)
        assert await held(session) is None


async def test_a_process_that_is_gone_holds_everything(database_url: str) -> None:
    async with session_on(database_url) as session:
        one = await witness(session)
        await one.beat(session)
        await session.execute("delete from matins.instance")
        with pytest.raises(DatabaseWentBack, match="it remembers none"):
            await one.beat(session)
        assert await session.fetchval("select known_through from matins.environment") == one.started_at


async def test_a_commit_in_doubt_is_no_loss(database_url: str) -> None:
    async with session_on(database_url) as session:
        one = await witness(session)
        await one.beat(session)
        await session.execute("update matins.instance set beats = beats + 1")
        await one.beat(session)
        await register_instance(session, INSTANCE, {"night": 2})
        await one.beat(session)
        assert await held(session) is None


async def test_after_a_failover_who_lived_through_it_vouches_for_who_starts(database_url: str) -> None:
    async with session_on(database_url) as session, database_on(database_url) as database:
        one = await witness(session)
        await one.beat(session)
        assert await session.fetchval("select server from matins.environment") == await server_identity(session)
        await session.execute("update matins.environment set server = '7/00000001'")
        async with anyio.create_task_group() as group:
            group.start_soon(await_continuity, database, "starts", Stopping())
            await one.beat(session)
        assert await held(session) is None


async def test_with_nobody_to_vouch_everything_is_held_and_the_release_knows_the_new_server(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(restore, "VOUCHED_WITHIN_SECONDS", 0.0)
    async with session_on(database_url) as session, database_on(database_url) as database:
        await enter_environment(session, "test", create=True)
        await await_continuity(database, "first", Stopping())
        assert await held(session) is None, "nothing is known of another server"
        await session.execute("update matins.environment set server = '7/00000001'")
        await await_continuity(database, "second", Stopping())
        assert "was last known on 7/00000001" in (await held(session) or "")
        await release(session, dataclasses.replace(ORDER, reason="it is the upgraded server"))
        await await_continuity(database, "third", Stopping())
        assert await held(session) is None


async def test_a_login_without_rights_may_ask_which_server_it_is(database_url: str, role: str) -> None:
    async with session_on(database_url) as session:
        known = await server_identity(session)
        assert known
        await session.execute(f'set role "{role}"')
        assert await server_identity(session) == known
