"""Deployments of a test's own, on the session's servers."""

from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest

from shared.postgres import Session
from tests.support.ledger import session_on
from tests.support.processes import Deployment, deployment
from tests.support.stepped_clock import Stepped, stepped_deployment


@pytest.fixture
async def deployed(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str, request: pytest.FixtureRequest
) -> AsyncIterator[Deployment]:
    """A deployment whose jobs the test declares; when the test is over it is judged, and its processes end."""
    async with deployment(tmp_path, database_url, broker_url, prefix) as made:
        yield made
        # A test that has failed is not judged: that would only hide why.
        made.judging.wanted &= request.node.stash.get(PASSED, False)


@pytest.fixture
async def stepped(
    tmp_path: Path, broker_url: str, prefix: str, request: pytest.FixtureRequest
) -> AsyncIterator[Stepped]:
    """A deployment on a database whose clock the test sets; it is judged as any other."""
    async with stepped_deployment(tmp_path, broker_url, prefix) as made:
        yield made
        made.deployed.judging.wanted &= request.node.stash.get(PASSED, False)


PASSED = pytest.StashKey[bool]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Keep whether a test has passed where its fixtures can see it."""
    report = yield
    if report.when == "call":
        item.stash[PASSED] = report.passed
    return report


@pytest.fixture
async def session(database_url: str) -> AsyncIterator[Session]:
    """A connection to look with."""
    async with session_on(database_url) as connection:
        yield connection
