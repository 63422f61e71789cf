"""One database with a stepped clock for all runs of a module, and a quiet log."""

from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
import structlog

from tests.model.database import Server, model_server


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(administrator_url: str) -> AsyncIterator[Server]:
    """The database that the runs of a module share, one after the other."""
    async with model_server(administrator_url) as opened:
        yield opened


@pytest.fixture(autouse=True)
def quiet_log() -> Iterator[None]:
    """Have no line written: thousands of faults would each have one."""
    kept = structlog.get_config()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(50))
    yield
    structlog.configure(**kept)
