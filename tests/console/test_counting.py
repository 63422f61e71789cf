"""What takes long is read behind the pages: nobody waits for it, and it is never what the database does most."""

from collections.abc import AsyncIterator

import anyio
import pytest

from shared.postgres import DatabaseUnavailable, Session, is_transient
from shared.terminal import Refused
from tests.console.reading import shown
from tests.console.serving import serving
from tests.integration.operate.night import nightly
from tests.support.fleet import until
from tests.support.ledger import running_occurrence, session_on
from trigger.console.keeping import Keeping, Kept, Unseen

WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
PAGE = "/occurrences/invoice-run:2026-08-25T02:00Z"


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    async with session_on(database_url) as opened:
        yield opened


class Slow:
    """Something that is read for as long as a test wants; time passes when the test says so."""

    def __init__(self) -> None:
        self.now = 100.0
        self.begun = 0
        self.at_once = 0
        self.most_at_once = 0
        self.error: Exception | None = None
        self._over = anyio.Semaphore(0)

    async def read(self) -> int:
        self.begun += 1
        number = self.begun
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await self._over.acquire()
        self.at_once -= 1
        if self.error is not None:
            raise self.error
        return number

    async def end(self, took: float) -> None:
        """Let one reading end, `took` seconds later."""
        self.now += took
        self._over.release()
        await anyio.wait_all_tasks_blocked()


def look(keeping: Keeping, slow: Slow, name: str = "it") -> Kept | None:
    return keeping.glimpse(name, slow.read, fresh_for=2.0, within=25.0)


async def test_nothing_is_waited_for_and_a_sixth_of_the_time_at_most_is_spent_on_it() -> None:
    slow = Slow()
    keeping = Keeping(is_transient, lambda: slow.now)
    async with anyio.create_task_group() as group:
        group.start_soon(keeping.run)
        await anyio.wait_all_tasks_blocked()
        assert look(keeping, slow) is None
        await anyio.wait_all_tasks_blocked()
        assert look(keeping, slow) is None, "it is being read"
        await slow.end(took=10)
        kept = look(keeping, slow)
        assert kept is not None
        assert (kept.value, slow.begun) == (1, 1)
        slow.now += 49
        assert look(keeping, slow) is not None
        await anyio.wait_all_tasks_blocked()
        assert slow.begun == 1, "five times as long as it took it is left alone"
        slow.now += 2
        again = look(keeping, slow)
        await anyio.wait_all_tasks_blocked()
        assert (again and again.value, slow.begun) == (1, 2), "what was read last is given meanwhile"
        await slow.end(took=10)
        newest = look(keeping, slow)
        assert newest is not None
        assert newest.value == 2
        group.cancel_scope.cancel()


async def test_what_fails_is_not_tried_more_often_than_what_succeeds() -> None:
    slow = Slow()
    slow.error = DatabaseUnavailable("it is away")
    keeping = Keeping(is_transient, lambda: slow.now)
    async with anyio.create_task_group() as group:
        group.start_soon(keeping.run)
        await anyio.wait_all_tasks_blocked()
        assert look(keeping, slow) is None
        await anyio.wait_all_tasks_blocked()
        await slow.end(took=20)
        for _ in range(9):
            with pytest.raises(Unseen, match="it is away"):
                look(keeping, slow)
            slow.now += 10
        await anyio.wait_all_tasks_blocked()
        assert slow.begun == 1
        slow.now += 20
        with pytest.raises(Unseen):
            look(keeping, slow)
        await anyio.wait_all_tasks_blocked()
        assert slow.begun == 2
        group.cancel_scope.cancel()


async def test_what_was_refused_is_told_to_who_looks_next() -> None:
    slow = Slow()
    slow.error = Refused("there is no such thing")
    keeping = Keeping(is_transient, lambda: slow.now)
    async with anyio.create_task_group() as group:
        group.start_soon(keeping.run)
        await anyio.wait_all_tasks_blocked()
        look(keeping, slow)
        await anyio.wait_all_tasks_blocked()
        await slow.end(took=1)
        with pytest.raises(Refused, match="no such thing"):
            look(keeping, slow)
        group.cancel_scope.cancel()


async def test_of_many_that_are_looked_at_one_is_read_at_a_time() -> None:
    slow = Slow()
    keeping = Keeping(is_transient, lambda: slow.now)
    async with anyio.create_task_group() as group:
        group.start_soon(keeping.run)
        await anyio.wait_all_tasks_blocked()
        for number in range(5):
            assert look(keeping, slow, f"number {number}") is None
        for _ in range(5):
            await anyio.wait_all_tasks_blocked()
            await slow.end(took=1)
        assert (slow.begun, slow.most_at_once) == (5, 1)
        group.cancel_scope.cancel()


async def test_a_page_does_not_wait_for_a_count_that_is_held_up(database_url: str, session: Session) -> None:
    occurrence = await running_occurrence(session, nightly(), ["a", "b"])
    async with serving(database_url) as console, session_on(database_url) as other:
        # A count reads the ledger, and so waits for whoever has locked that altogether; the page reads nothing of it.
        holding = other.transaction()
        await holding.start()
        await other.execute("lock table matins.ledger in access exclusive mode")
        for _ in range(3):
            found = shown((await console.get(PAGE)).text)
            assert "is being counted" in found.text
        waiting = (
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
        )
        assert await session.fetchval(waiting) == 1, "it is counted once for all who look"
        await holding.rollback()

        async def counted() -> bool:
            return "0 of 2 are done" in shown((await console.get(PAGE)).text).text

        await until(counted)
    assert occurrence.id
