"""Every statement in every package is accepted by the migrated database, and says what it is for."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from shared.postgres import Session
from tests.support.ledger import session_on
from tests.support.servers import fresh_database

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted(path for package in ("shared", "trigger", "worker") for path in ROOT.glob(f"{package}/**/sql/*.sql"))


def test_there_are_statements() -> None:
    assert len(FILES) > 30


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def session(administrator_url: str, template: str) -> AsyncIterator[Session]:
    """A session on one database for all statements: they are prepared, and never run."""
    async with fresh_database(administrator_url, template) as url, session_on(url) as opened:
        yield opened


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def package_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).parts[:-2])


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{package_of(path)}/{path.stem}")
async def test_a_statement_is_prepared_and_has_a_head(session: Session, path: Path) -> None:
    text = text_of(path)
    assert text.startswith("-- "), "a statement begins with what it decides"
    prepared = await session.prepare(text)
    head = "".join(line for line in text.splitlines() if line.startswith("--"))
    for number in range(1, len(prepared.get_parameters()) + 1):
        assert f"${number}" in head or " to $" in head, f"the head doesn't say what ${number} is"


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{package_of(path)}/{path.stem}")
def test_a_statement_is_loaded_by_its_package(path: Path) -> None:
    loaded = f'statement("{package_of(path)}", "{path.stem}")'
    modules = path.parents[1].glob("*.py")
    assert any(loaded in module.read_text(encoding="utf-8") for module in modules)
