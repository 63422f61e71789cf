"""Reading an occurrence's accounts a page at a time, so that memory stays flat for a million of them.

A page ends with a token from which the next goes on; only the pager reads it. For SQL it holds the last row's cursor
and account, and the next page is what the database itself sorts behind both: a cursor of many equal values loses
nobody, and no text is compared here, where it could sort otherwise.
"""

import importlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol

import anyio

from shared.accounts import AccountAt, GeneratedAccounts, SourceCall, SqlAccounts
from shared.job import EachWorker, Job
from shared.job_roles import source_role
from shared.logs import logger
from shared.postgres import Database, Session, transaction
from shared.role_names import NO_OTHER_NAMES, RoleNames
from shared.runs_elsewhere import NotHere
from trigger.claim_outcome import Claim
from trigger.page_query import FaultySource, PageQuery, compose, substituted
from trigger.source_faults import described, is_ours

_log = logger(__name__)

PAGE_SECONDS = 600.0
CLOSE_SECONDS = 5.0
MAXIMUM_CURSOR_BYTES = 8 * 1024


@dataclass(frozen=True, slots=True)
class Page:
    """Accounts as the source gives them, and the token behind them; `last` when nothing can come after."""

    accounts: tuple[object, ...]
    cursor: str | None
    last: bool


class Pager(Protocol):
    """A source that was opened for one fan-out."""

    async def read(self, cursor: str | None) -> Page:
        """Give the page behind a token. Raises FaultySource, or whatever the source raises."""


@asynccontextmanager
async def open_pager(
    database: Database, job: Job, claim: Claim, names: RoleNames = NO_OTHER_NAMES
) -> AsyncIterator[Pager]:
    """Have the job's source open meanwhile. Raises FaultySource."""
    match job.accounts:
        case SqlAccounts() as source:
            role = source_role(job)
            yield SqlPager(database, source, role and names.of(role), claim)
        case GeneratedAccounts() as source:
            call = SourceCall(claim.identity, claim.window, claim.cursor)
            generator = _opened(source.generator, call)
            try:
                yield GeneratedPager(generator, source.page_size)
            finally:
                await _close(generator, job.name)
        case EachWorker():
            problem = f"{job.name} is run by every worker for itself: it has no accounts to read"
            raise FaultySource(problem)
        case NotHere():
            problem = f"{job.name} runs elsewhere: it has no accounts to read"
            raise FaultySource(problem)


async def _close(generator: AsyncIterator[AccountAt], job: str) -> None:
    if isinstance(generator, AsyncGenerator):
        closed = False
        with anyio.move_on_after(CLOSE_SECONDS):
            try:
                await generator.aclose()
                closed = True
            except BaseException as error:
                if is_ours(error):
                    raise
                _log.warning("the accounts' generator failed as it was closed", job=job, reason=described(error))
                return
        if not closed:
            _log.warning("the accounts' generator did not close in time", job=job, seconds=CLOSE_SECONDS)


class SqlPager:
    """Pages of a query, each in a read-only transaction under the job's own role."""

    def __init__(self, database: Database, source: SqlAccounts, role: str | None, claim: Claim) -> None:
        self._database = database
        self._source = source
        self._role = role
        self._window = claim.window
        self._query: PageQuery | None = None

    async def read(self, cursor: str | None) -> Page:
        """Give the page behind a token."""
        async with self._database.session() as session, transaction(session, readonly=True):
            if self._role is not None:
                await session.execute("select set_config('role', $1, true)", self._role)
            query = self._query or await self._prepared(session)
            self._query = query
            limit = self._source.page_size
            window = query.window(self._window)
            nameless: tuple[object, ...] = ()
            if cursor is None:
                await self._refuse_equal_accounts(session, query)
                nameless = await self._nameless(session, query)
                rows = await session.fetch(query.first, *window, limit, timeout=PAGE_SECONDS)
            else:
                after = _key(cursor, query)
                rows = await session.fetch(query.following, *window, limit, *after, timeout=PAGE_SECONDS)
            await self._refuse_another_role(session)
        if not rows:
            return Page(nameless, cursor, last=True)
        token = json.dumps([rows[-1][name] for name in query.key], ensure_ascii=False)
        return Page(nameless + tuple(row["account"] for row in rows), token, last=len(rows) < limit)

    async def _prepared(self, session: Session) -> PageQuery:
        """Ask the server which columns the query gives, and compose the paging around it."""
        text, parameters = substituted(self._source.query)
        prepared = await session.prepare(text, timeout=PAGE_SECONDS)
        columns = {column.name: column.type for column in prepared.get_attributes()}
        account = columns.get("account")
        if account is None:
            raise FaultySource(f"the query gives no column `account`, but {', '.join(columns) or 'nothing'}")
        if account.schema != "pg_catalog" or account.name not in {"text", "varchar"}:
            raise FaultySource(f"column `account` is of type {account.name}; write account::text")
        cursor_type = None
        if "cursor" in columns:
            cursor_type = await session.fetchval("select format_type($1::oid, -1)", columns["cursor"].oid)
        return compose(text, parameters, cursor_type)

    async def _refuse_another_role(self, session: Session) -> None:
        """Refuse what was read once a query has given itself another role: a mistake, for SQL could also hide it."""
        if self._role is not None and await session.fetchval("select current_setting('role')") != self._role:
            raise FaultySource(f"the query of accounts has left its role {self._role}: it must not set it")

    async def _refuse_equal_accounts(self, session: Session, query: PageQuery) -> None:
        """Refuse a collation in which two accounts can be equal: the second would be lost at the end of a page."""
        window = query.window(self._window)
        if await session.fetchval(query.is_deterministic, *window, timeout=PAGE_SECONDS) is False:
            raise FaultySource('two accounts may be equal in the collation of column `account`; add collate "C"')

    async def _nameless(self, session: Session, query: PageQuery) -> tuple[object, ...]:
        """Look once for nulls, which no later comparison would find: of accounts (one for all), and of cursors."""
        found: Any = await session.fetchrow(query.nulls, *query.window(self._window), timeout=PAGE_SECONDS)
        if found["without_cursor"] is not None:
            raise FaultySource(f"column `cursor` is null for account {found['without_cursor'][:100]!r}; coalesce it")
        return (None,) if found["nameless"] else ()


class GeneratedPager:
    """Pages of an author's own generator, which stays open between them."""

    def __init__(self, generator: AsyncIterator[AccountAt], page_size: int) -> None:
        self._generator = generator
        self._page_size = page_size

    async def read(self, cursor: str | None) -> Page:
        """Give the next page; the generator was opened at the first page's token, and goes on by itself."""
        accounts: list[object] = []
        async for given in self._generator:
            moved = _checked_cursor(given, cursor)
            accounts.append(given.account)
            cursor = moved
            if len(accounts) == self._page_size:
                return Page(tuple(accounts), cursor, last=False)
        return Page(tuple(accounts), cursor, last=True)


def _checked_cursor(given: object, before: str | None) -> str:
    if not isinstance(given, AccountAt):
        raise FaultySource(f"the generator gives {type(given).__name__}; it must give AccountAt(account, cursor)")
    cursor: object = given.cursor
    if not isinstance(cursor, str) or "\0" in cursor:
        raise FaultySource(f"the generator's cursor must be text without NUL, not {type(cursor).__name__}")
    try:
        size = len(cursor.encode())
    except UnicodeEncodeError as error:
        raise FaultySource("the generator's cursor must be encodable as UTF-8") from error
    if size > MAXIMUM_CURSOR_BYTES:
        raise FaultySource(f"the generator's cursor has {size} bytes; at most {MAXIMUM_CURSOR_BYTES} are kept")
    if cursor == before:
        raise FaultySource(f"the generator's cursor does not move: {cursor[:100]!r} came twice")
    return cursor


def _key(token: str, query: PageQuery) -> list[Any]:
    """Read the last row's key from a token of this very kind of query."""
    try:
        key = json.loads(token)
    except ValueError:
        key = None
    if not isinstance(key, list) or len(key) != len(query.key):
        raise FaultySource(f"the stored cursor {token[:100]!r} is another source's: the job's accounts have changed")
    return key


def _opened(
    source: Callable[[SourceCall], AsyncIterator[AccountAt]] | str, call: SourceCall
) -> AsyncIterator[AccountAt]:
    function = _imported(source) if isinstance(source, str) else source
    try:
        generator: object = function(call)
    except BaseException as error:  # nothing of ours waits here, so whatever comes is the author's
        raise FaultySource(f"the generator cannot be called: {described(error)}") from error
    if not isinstance(generator, AsyncIterator):
        if isinstance(generator, Coroutine):
            generator.close()
        raise FaultySource(f"{source!r} is not an async generator function")
    return generator


def _imported(name: str) -> Callable[[SourceCall], AsyncIterator[AccountAt]]:
    module, _, attribute = name.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except BaseException as error:  # a module's code may raise anything, SystemExit too
        raise FaultySource(f"cannot import {name}: {described(error)}") from error
    function: Callable[[SourceCall], AsyncIterator[AccountAt]] = found
    return function
