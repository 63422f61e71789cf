"""The billing example's tables in a database of the test's own, and its payment provider."""

from collections.abc import AsyncIterator, Iterator

import pytest

from examples.billing.data import make_schema
from examples.billing.payments import running_payments
from examples.billing.provider import Provider
from shared.postgres import Session
from tests.integration.examples.support import open_session


@pytest.fixture
async def billing(database_url: str) -> AsyncIterator[Session]:
    """A connection to a database with the example's tables, and no rows."""
    async with open_session(database_url) as connection:
        await make_schema(connection)
        yield connection


@pytest.fixture
def provider(monkeypatch: pytest.MonkeyPatch) -> Iterator[Provider]:
    """A payment provider that `charge` finds."""
    provider = Provider()
    with running_payments(provider) as address:
        monkeypatch.setenv("MATINS_EXAMPLE_PAYMENTS_URL", address)
        yield provider
