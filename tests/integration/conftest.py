"""A pool and sessions on the test's own database."""

from collections.abc import AsyncIterator

import pytest

from shared.postgres import Database, Session
from tests.support.ledger import database_on, session_on


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """A pool, as a process has one."""
    async with database_on(database_url, size=10) as opened:
        yield opened


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A connection of the test's own."""
    async with session_on(database_url) as opened:
        yield opened


@pytest.fixture
async def other_session(database_url: str) -> AsyncIterator[Session]:
    """A second one, for races."""
    async with session_on(database_url) as opened:
        yield opened
