"""Deployments of a test's own, on the session's servers."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from shared.postgres import Session
from tests.support.ledger import session_on
from tests.support.processes import Deployment, deployment


@pytest.fixture
async def deployed(tmp_path: Path, database_url: str, broker_url: str, prefix: str) -> AsyncIterator[Deployment]:
    """A deployment whose jobs the test declares; its processes end with the test."""
    async with deployment(tmp_path, database_url, broker_url, prefix) as made:
        yield made


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A connection to look with."""
    async with session_on(database_url) as connection:
        yield connection
