"""What a process remembers of its signs of life, against what the database does."""

import anyio
import pytest

from shared.fleet import Instance, register_instance
from shared.restore import READ_BEATS, DatabaseWentBack, Witness
from tests.support.fleet import until
from tests.support.ledger import session_on
from tests.support.proxy import Proxy

INSTANCE = Instance("one", "worker", "test", "0", "", "test")


async def test_a_sign_of_life_that_overtakes_a_look_is_no_loss(database_url: str) -> None:
    async with (
        session_on(database_url) as session,
        Proxy(database_url) as wire,
        session_on(wire.url) as slow,
        anyio.create_task_group() as group,
    ):
        witness = Witness("one", await register_instance(session, INSTANCE, {}))
        process_id = slow.get_server_pid()
        await slow.fetchrow(READ_BEATS, "one")
        wire.to_client.hold()
        looked = "select query_start from pg_stat_activity where pid = $1 and state = 'idle'"
        before = await session.fetchval(looked, process_id)

        async def answered() -> bool:
            return bool(await session.fetchval(f"{looked} and query_start > $2", process_id, before))

        group.start_soon(witness.examine, slow)
        await until(answered)
        await witness.beat(session)
        wire.to_client.let_go()


async def test_a_sign_of_life_that_is_gone_is_a_loss(database_url: str) -> None:
    async with session_on(database_url) as session:
        witness = Witness("one", await register_instance(session, INSTANCE, {}))
        await witness.beat(session)
        await witness.examine(session)
        await session.execute("update matins.instance set beats = 0")
        with pytest.raises(DatabaseWentBack):
            await witness.examine(session)
        with pytest.raises(DatabaseWentBack):
            await witness.beat(session)
