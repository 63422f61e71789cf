"""Which version of messages is published: the oldest that a live worker reads, and never a newer one than one's own."""

import pytest

from schemas.message import MESSAGE_VERSION
from shared.fleet import Spoken
from shared.postgres import Session
from tests.support.ledger import session_on


async def lives(session: Session, name: str, version: int, *, kind: str = "worker", stopped: bool = False) -> None:
    await session.execute(
        """insert into matins.instance (id, kind, host, version, message_version, tzdata_version, stopped_at)
           values ($1, $2, 'test', '0', $3, 'test', case when $4 then clock_timestamp() end)""",
        name,
        kind,
        version,
        stopped,
    )


@pytest.mark.parametrize(
    ("others", "oldest", "newest"),
    [
        ([], MESSAGE_VERSION, MESSAGE_VERSION),
        ([(MESSAGE_VERSION + 1, False)], MESSAGE_VERSION, MESSAGE_VERSION + 1),
        ([(0, False), (MESSAGE_VERSION, False)], 0, MESSAGE_VERSION),
        ([(0, True), (MESSAGE_VERSION, False)], MESSAGE_VERSION, MESSAGE_VERSION),
    ],
)
async def test_it_follows_the_live_workers(
    database_url: str, others: list[tuple[int, bool]], oldest: int, newest: int
) -> None:
    async with session_on(database_url) as session:
        await lives(session, "trigger", 0, kind="trigger")
        for number, (version, stopped) in enumerate(others):
            await lives(session, f"worker-{number}", version, stopped=stopped)
        spoken = Spoken()
        assert spoken.oldest == 1, "before the first look, what every release reads"
        await spoken.listen(session)
        assert (spoken.oldest, spoken.newest) == (oldest, newest)
